"""How large a game may be: the budgets of a walk, and playouts that see what no walk would finish."""

import contextlib
import math
import random
import sys
import time

from equinoise import _checks
from equinoise._typing import Any, Callable, Iterable, Iterator
from equinoise.games.walk.others import TERMINAL
from equinoise.games.walk.record import Record

#: Where a walk gives up unless told otherwise: about ten seconds on a game of OpenSpiel, and a gigabyte.
MAX_HISTORIES = 1_000_000
MAX_BYTES = 2**30
BUDGETS = ("max_histories", "max_bytes", "max_seconds", "progress")
_STEP = 1024  # histories from one look at the budgets to the next
_SMALL, _DEEP = 16_384, 300  # histories, and moves on one path, below which a game is simply walked
_SHARE = 20  # of the histories so far, for which playouts may meet one
_MOST = 30_000  # that one playout meets
_WIDEST = 8  # histories that a playout keeps at a time
_STAKES = (0.9, 0.3, 0.03, 0.003)
_SURE = 1e12

Expand = Callable[[Any], tuple[int, Iterable[Any]]]


class Limits:
    """The budgets of one walk: histories, bytes of what it keeps (about), seconds.

    A random playout estimates the number of histories without bias: it counts all children on its way, times
    how many it could have kept for each that it did. While there are at most m histories, the product over
    playouts of ``1 + c (estimate/m - 1)`` is a supermartingale for every stake c in (0, 1), and so is the
    mean over stakes: the chance that it ever reaches 1e12 is at most 1e-12. Where it does, the game is
    refused, long before the walk has met m histories. The playouts are the same each time.

    References
    ----------
    .. [1] Knuth (1975), Estimating the efficiency of backtrack programs, Mathematics of Computation 29.
    .. [2] Ville (1939), Etude critique de la notion de collectif: the inequality.
    """

    def __init__(
        self,
        max_histories: object = MAX_HISTORIES,
        max_bytes: object = MAX_BYTES,
        max_seconds: object = math.inf,
        progress: object = False,
    ) -> None:
        self.max_histories = _checks.integer("max_histories", max_histories, minimum=1)
        self._max_bytes = _checks.number("max_bytes", max_bytes, 0.0, open_low=True, finite=False)
        self._max_seconds = _checks.number("max_seconds", max_seconds, 0.0, open_low=True, finite=False)
        self._shown = _checks.flag("progress", progress) and sys.stderr.isatty()
        self._begun = time.monotonic()
        self._random = random.Random(0)
        self._estimates: list[float] = []
        self._products = [1.0] * len(_STAKES)
        self._counted = 0
        self._reached = ""

    def check(self, done: int, depth: int, record: Record, source: Any, expand: Expand) -> int:
        """Refuse the game after so many histories, or return at how many the walk must ask again."""
        self._reached = (
            f"the walk stopped after {done} histories, with {record.n_infosets} infosets and "
            f"{record.n_actions} actions of player {record.player}, {len(record.leaf_payoff)} leaves, "
            f"{depth} moves deep"
        )
        self._show(f"{done:,} histories")
        if done >= self.max_histories:
            raise self.refusal("max_histories")
        if record.n_bytes + 400 * depth > self._max_bytes:
            raise self.refusal("max_bytes")
        if time.monotonic() - self._begun > self._max_seconds:
            raise self.refusal("max_seconds")
        if done >= _SMALL or depth > _DEEP:
            self._play(done / _SHARE, source, expand)
        return min(done + _STEP, self.max_histories)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Refuse a game for which there is no memory, and leave the terminal's line as it was."""
        try:
            yield
        except MemoryError:
            raise self.refusal("memory") from None
        finally:
            self._show("")

    def _show(self, text: str) -> None:
        if self._shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def refusal(self, what: str, size: str = "") -> ValueError:
        """Return the error of a game that is too large, which says how far the walk came."""
        return ValueError(f"{what} must be larger for this game{size}: {self._reached}")

    def _play(self, counts: float, source: Any, expand: Expand) -> None:
        """Play out until so many histories are counted; refuse a game that is surely too large.

        The playouts keep more and more histories at a time, of which some go on where others end.
        """
        enough = 1e3 * _SURE * self.max_histories
        while self._counted < counts:
            estimate = weight = 1.0
            counted, states, most = 0, [source.root()], min(1 + len(self._estimates), _WIDEST)
            while states and counted < _MOST and estimate < enough:
                moves = [(state, i) for state in states for i in range(expand(state)[0])]
                estimate += weight * len(moves)
                if len(moves) > most:
                    weight *= len(moves) / most
                    moves = self._random.sample(moves, most)
                counted += len(moves)
                children = [source.child(state, i) for state, i in moves]
                states = [child for child in children if source.kind(child) != TERMINAL]
            self._counted += counted
            self._estimates.append(estimate)
            gain = estimate / self.max_histories - 1.0
            self._products = [p * (1.0 + c * gain) for p, c in zip(self._products, _STAKES, strict=True)]
            if sum(self._products) >= _SURE * len(_STAKES):
                about = f"{sum(self._estimates) / len(self._estimates):.0e}"
                raise self.refusal("max_histories", f" of {about} histories or more, as playouts show")
