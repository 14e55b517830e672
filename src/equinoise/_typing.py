"""The names that annotations use, in one place; what is heavy to import is for type checkers alone."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame
else:
    Axes = DataFrame = Figure = object

__all__ = ["Any", "Callable", "Collection", "Hashable", "Iterable", "Iterator", "Mapping", "NamedTuple"]
__all__ += ["Executor", "PathLike", "Self", "Sequence", "TypeVar", "Unpack"]
__all__ += ["Array", "ArrayLike", "Axes", "DataFrame", "Figure", "Flags", "Floats", "Ints", "Words"]

Array = NDArray[Any]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
