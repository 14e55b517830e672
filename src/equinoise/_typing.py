"""Names of types that the whole package uses; what is heavy to import is imported by type checkers alone."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame
else:
    Axes = DataFrame = Figure = object

__all__ = ["Array", "ArrayLike", "Axes", "DataFrame", "Figure", "Flags", "Floats", "Ints", "Words"]

Array = NDArray[Any]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
