"""Named arrays in one file: NumPy's ``.npz``, never a pickle, whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise._files import replacing

__all__ = ["load_arrays", "save_arrays"]

_META = "meta_json"


def save_arrays(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    meta: Mapping[str, Any],
    mode: int | None = None,
) -> None:
    """Write arrays, and what JSON can hold, under the exact name `path`.

    Parameters
    ----------
    path : str or path
    kind : str
        What the file holds and in which version; :func:`load_arrays` asks for the same.
    arrays : mapping of str to array
    meta : mapping
        Numbers, strings, None, and lists and dicts of them.
    mode : int, optional
        Permissions of the file, 0o600 for what nobody else may read.
    """
    text = json.dumps({"kind": kind, **meta}, ensure_ascii=True)
    everything = {**arrays, _META: np.frombuffer(text.encode("ascii"), dtype=np.uint8)}
    with replacing(path, mode) as file:
        np.savez(file, allow_pickle=False, **everything)


def load_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what :func:`save_arrays` wrote: (arrays, meta), the arrays read-only.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        When there is no such file to read.
    ValueError
        When the file is cut short, damaged, or holds something else than `kind`.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            meta = json.loads(archive[_META].tobytes())
            if meta.pop("kind") != kind:
                raise ValueError("it is of another kind or version")
            arrays = {name: archive[name] for name in archive.files if name != _META}
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # a damaged archive fails in many ways, of zip, of zlib, of NumPy
        raise ValueError(f"path {os.fspath(path)!r} does not hold a whole {kind}: {error}") from error
    for array in arrays.values():
        array.flags.writeable = False
    return arrays, meta
