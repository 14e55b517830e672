"""Audits of a group of mechanisms, as the command shows them."""

import time
from concurrent.futures import Executor
from dataclasses import dataclass

from equinoise import _checks, _files
from equinoise._typing import Any, DataFrame
from equinoise.experiments import audits
from equinoise.experiments.commands import common
from equinoise.inference.privacy import Audit
from equinoise.report import exhibit

_MOST = 10**8  # draws


@dataclass(frozen=True)
class Parameters:
    """What the audits depend on, checked when made.

    All bounds of a group hold together except with probability `alpha`. OpenDP's noise is slow: of what it
    noises there is a tenth of the draws.
    """

    which: str
    epsilon: float = 1.0
    draws: int = 20_000
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.choice("which", self.which, audits.AUDITS)
        _checks.number("epsilon", self.epsilon, 0.01, 10.0)
        _checks.integer("draws", self.draws, 4000, _MOST)
        _checks.number("alpha", self.alpha, 0.0, 1.0, open_low=True, open_high=True)
        _checks.integer("seed", self.seed, 0)


@dataclass(frozen=True, eq=False)
class Found:
    """What was found, mechanism by mechanism."""

    parameters: Parameters
    rows: list[Audit]
    seconds: float

    @property
    def violated(self) -> list[str]:
        """The names of the mechanisms whose claim is shown to be wrong."""
        return [row.mechanism for row in self.rows if row.violated]

    def to_frame(self) -> DataFrame:
        """Return one row per mechanism: mechanism, pairs, epsilon, lower, how, violated."""
        import pandas as pd

        names = ("mechanism", "pairs", "epsilon", "lower")
        how = [{"how": "exact" if row.exact else "sampled", "violated": row.violated} for row in self.rows]
        pairs = zip(self.rows, how, strict=True)
        return pd.DataFrame([{n: getattr(row, n) for n in names} | more for row, more in pairs])

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds."""
        rows = self.to_frame().to_dict("records")
        return common.document("audit", self.parameters, self.seconds, rows=rows)

    def files(self) -> dict[str, bytes]:
        """Return ``audit.csv`` and ``run.json`` as bytes."""
        made = _files.json_bytes(self.document())
        return {"audit.csv": exhibit.csv_bytes(self.to_frame()), "run.json": made}


def find(made: Parameters, executor: Executor | None = None) -> Found:
    """Audit a group of mechanisms."""
    begun, mapped = time.perf_counter(), map if executor is None else executor.map
    how = made.which, made.epsilon, made.draws, made.seed, made.alpha
    return Found(made, audits.run(*how, mapped), time.perf_counter() - begun)
