"""Linear programs by HiGHS (Huangfu and Hall, 2018), each from where the last one ended."""

import math

import numpy as np

from equinoise._typing import Any, Floats, NamedTuple

_ITERATIONS = 3  # times the rows: from another basis no more, then from none
_NEVER = 100  # times the rows: what takes more does not end
_SCALING = 4  # HiGHS's scaling by the largest value of a row: with its default some programs never end


class Basis(NamedTuple):
    """HiGHS's own statuses of variables and rows, object[n] and object[m]: as numbers they take long."""

    columns: Any
    rows: Any


class Minimum(NamedTuple):
    """Of a program: the variables x float64[n], multipliers of the rows float64[m], and the basis."""

    x: Floats
    multipliers: Floats
    basis: Basis


class Solver:
    """An instance of HiGHS. It remembers nothing that is of use: what it starts from it is told."""

    def __init__(self) -> None:
        import highspy

        plain: Any = highspy.Highs.__base__  # which prints no line when it is made
        self.highs, self.of, self.basic = plain(), highspy, highspy.HighsBasisStatus.kBasic
        for name, value in (("output_flag", False), ("threads", 1), ("simplex_scale_strategy", _SCALING)):
            self.highs.setOptionValue(name, value)

    def minimum(
        self, cost: Floats, columns: Floats, matrix: Any, rows: Floats, seconds: float, basis: Basis | None
    ) -> Minimum | None:
        """Return where cost x is least with x and matrix x, sparse by rows, within limits, or None.

        columns float64[n, 2] are limits of x, rows float64[m, 2] of matrix x. None: none keeps them in time.
        """
        by_rows, least = int(self.of.MatrixFormat.kRowwise), int(self.of.ObjSense.kMinimize)
        sizes = len(columns), len(rows), matrix.nnz, by_rows, least, 0.0
        limits = cost, *columns.T.copy(), *rows.T.copy()
        entries = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data
        self.highs.passModel(*sizes, *limits, *entries, np.zeros(len(cost), dtype=np.int32))  # none is whole
        end = self.highs.getRunTime() + seconds
        self.highs.setOptionValue("time_limit", end if math.isfinite(end) else self.of.kHighsInf)
        if basis is None or not self._runs(basis):
            self.highs.clearSolver()
            self._runs(None)
        if self.highs.getModelStatus() != self.of.HighsModelStatus.kOptimal:
            return None
        found, ended = self.highs.getSolution(), self.highs.getBasis()
        statuses = (np.array(part, dtype=object) for part in (ended.col_status, ended.row_status))
        return Minimum(np.array(found.col_value), np.array(found.row_dual), Basis(*statuses))

    def _runs(self, basis: Basis | None) -> bool:
        """Run from a basis, which may have too many or too few basic variables; return whether that ended."""
        most = _NEVER
        if basis is not None:
            start = self.of.HighsBasis()
            start.col_status, start.row_status = basis.columns.tolist(), basis.rows.tolist()
            start.valid = start.alien = True
            self.highs.setBasis(start)
            most = _ITERATIONS
        self.highs.setOptionValue("simplex_iteration_limit", most * self.highs.getNumRow())
        self.of.Highs.resetGlobalScheduler(True)  # one for all of a thread: it refuses another number
        self.highs.run()
        self.of.Highs.resetGlobalScheduler(True)
        kinds = self.of.HighsModelStatus
        return self.highs.getModelStatus() in (kinds.kOptimal, kinds.kInfeasible)
