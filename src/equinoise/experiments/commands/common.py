"""What the commands' results share: ``run.json``, and files by an exhibit's tables and figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from equinoise import _files, _results
from equinoise.report import figures
from equinoise.report.exhibit import Exhibit, csv_bytes

__all__ = ["document", "files"]


def document(experiment: str, parameters: Any, seconds: float, **parts: Any) -> dict[str, Any]:
    """Return what ``run.json`` holds: how it was made, and then `parts`.

    Parameters
    ----------
    experiment : str
        Name of the command.
    parameters : dataclass
        With a ``seed``, which may be None for 0.
    seconds : float
        How long it took.
    **parts
        Made plain: arrays become lists.
    """
    made = _results.provenance(asdict(parameters), seed=parameters.seed or 0, seconds=seconds)
    plain: dict[str, Any] = _results.plain({"experiment": experiment, **made, **parts})
    return plain


def files(exhibit: Exhibit, document: Any) -> dict[str, bytes]:
    """Return an exhibit's tables as ``STEM.csv``, its figures as ``STEM.png``, and ``run.json``, as bytes."""
    return {
        **{f"{stem}.csv": csv_bytes(table.frame) for stem, table in exhibit.tables.items()},
        **{f"{stem}.png": figures.png(picture.figure) for stem, picture in exhibit.figures.items()},
        "run.json": _files.json_bytes(document),
    }
