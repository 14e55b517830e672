"""Several runs side by side: one frame in which each has a name."""

from equinoise import _checks
from equinoise._typing import Any, DataFrame, Mapping, Sequence, TypeVar
from equinoise.efb.self_play import SelfPlayRun
from equinoise.efb.simulate import EfbRun

_WHAT = ("game", "learner", "mechanism", "tuning", "epsilon", "horizon", "seed")
Run = TypeVar("Run", EfbRun, SelfPlayRun)


def compare(runs: Sequence[Run] | Mapping[str, Run]) -> DataFrame:
    """Return the frames of several runs as one, whose first column ``run`` names each.

    Runs of the same seed, horizon and game face the same random draws. For one figure,
    ``for run in runs: ax = run.plot(ax)`` from ``ax = None`` on.

    Parameters
    ----------
    runs : sequence of EfbRun or of SelfPlayRun, or mapping from names to them
        Without names a run is called by what not all have in common of game, learner, mechanism, tuning,
        epsilon, horizon and seed, and by its number where that does not tell. TypeError or ValueError for
        anything else.

    Examples
    --------
    >>> from equinoise.efb import simulate
    >>> from equinoise.games import load
    >>> runs = [simulate(*load("bandit(3)"), horizon=10, epsilon=epsilon) for epsilon in (1, 4)]
    >>> compare(runs)["run"].unique().tolist()
    ['epsilon 1', 'epsilon 4']
    """
    import pandas as pd

    given = list(runs.values()) if isinstance(runs, Mapping) else runs
    if not isinstance(given, Sequence) or not all(isinstance(run, EfbRun | SelfPlayRun) for run in given):
        raise TypeError(f"runs must be those of simulate or of self_play, got {_checks.shown(runs)}")
    if len({type(run) for run in given}) != 1:
        raise ValueError(f"runs must be some of one kind, got {_checks.shown(given)}")
    frames = [run.to_frame() for run in given]
    names = list(runs) if isinstance(runs, Mapping) else _names(frames)
    for name, frame in zip(names, frames, strict=True):
        frame.insert(0, "run", name)
    joined: DataFrame = pd.concat(frames, ignore_index=True)
    return joined


def _names(frames: Sequence[DataFrame]) -> list[str]:
    """Call each run by what not all have in common, from the last row of its frame."""
    rows: list[Any] = [{**row, "horizon": row["trials"]} for row in (frame.iloc[-1] for frame in frames)]
    told = [key for key in _WHAT if key in rows[0] and len({row[key] for row in rows}) > 1]
    words = [
        ", ".join(f"{k} {row[k]:g}" if k == "epsilon" else f"{k} {row[k]}" for k in told) for row in rows
    ]
    return (
        words
        if told and len(set(words)) == len(words)
        else [f"{i} {word}".strip() for i, word in enumerate(words)]
    )
