"""The runs of experiments 1 and 2 of Neel and Roth (2018), and what the paper says of them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EXPERIMENT_1", "EXPERIMENT_2", "Spec"]


class Spec(NamedTuple):
    """One run of an experiment, and what the paper says of it.

    Attributes
    ----------
    label : str
    policy : str
    means : tuple of float
    epsilon : float or None
    width : {"counter", "published"}
        Of the policies that have one.
    published : float or None
        Mean absolute bias.
    published_largest : float or None
        The largest bias, with its sign.
    published_at_zero : int or None
        Arms whose 95% interval holds zero.
    why : str
        Why ours differs.
    shown : bool
        Whether the figure shows it.
    """

    label: str
    policy: str
    means: tuple[float, ...]
    epsilon: float | None = None
    width: str = "counter"
    published: float | None = None
    published_largest: float | None = None
    published_at_zero: int | None = None
    why: str = ""
    shown: bool = False

    @property
    def setting(self) -> dict[str, object]:
        """What was run, by the names of the arguments."""
        names = ("policy", "means", "epsilon", "width")
        return {name: getattr(self, name) for name in names}


def _falling(first: float, gap: float, n: int) -> tuple[float, ...]:
    return tuple(round(first - gap * i, 10) for i in range(n))


_CONTROL = "control: the bias and the regret of learning nothing"
_20 = _falling(1.0, 0.05, 20)
EXPERIMENT_1 = (
    Spec(
        "ucb",
        "ucb",
        _20,
        published=0.0698,
        published_largest=-0.14,
        published_at_zero=4,
        why="the paper does not print its index; one that is narrower explores less and has more bias",
        shown=True,
    ),
    Spec(
        "private-ucb, published width, ε = 0.05",
        "private-ucb",
        _20,
        0.05,
        "published",
        published=0.00176,
        published_at_zero=20,
        why="play is round-robin and no arm has a bias: what is left is the luck of the replicates",
        shown=True,
    ),
    Spec(
        "private-ucb, counter width, ε = 0.05",
        "private-ucb",
        _20,
        0.05,
        why="ours: a width as small as the counter's noise allows is still round-robin at this epsilon",
    ),
    Spec("uniform", "uniform", _20, why=_CONTROL, shown=True),
    Spec(
        "private-ucb, published width, ε = 400",
        "private-ucb",
        _20,
        400.0,
        "published",
        why="control: the noise is nearly gone, and the bias is still small",
    ),
    Spec(
        "width-only, published width, ε = 400",
        "width-only",
        _20,
        400.0,
        "published",
        why="control: without any noise the width alone gives the same bias and the same regret",
        shown=True,
    ),
    Spec(
        "noise-only, ε = 400",
        "noise-only",
        _20,
        400.0,
        why="control: without the width the noise leaves the bias of plain ucb",
        shown=True,
    ),
)

_5, _5_LOWER, _5_WIDE = _falling(1.0, 0.05, 5), _falling(0.9, 0.05, 5), _falling(1.0, 0.1, 5)
_GAP = "the text says a gap of 0.05; the paper's figures show arms from 0.6 to 1, and at that gap ours agrees"
_START = "the text does not say where the means begin"
_FIGURES = "the arms of the paper's figures: here published and ours agree"
EXPERIMENT_2 = (
    Spec("ucb, gap 0.05", "ucb", _5, published=0.011, why=_GAP),
    Spec(
        "private-ucb, published width, ε = 400, gap 0.05",
        "private-ucb",
        _5,
        400.0,
        "published",
        published=0.0015,
        published_at_zero=5,
        why=_GAP,
    ),
    Spec("uniform, gap 0.05", "uniform", _5, why=_CONTROL),
    Spec("ucb, gap 0.05, means from 0.9", "ucb", _5_LOWER, published=0.011, why=_START),
    Spec(
        "private-ucb, published width, ε = 400, gap 0.05, means from 0.9",
        "private-ucb",
        _5_LOWER,
        400.0,
        "published",
        published=0.0015,
        why=_START,
    ),
    Spec("ucb, gap 0.1", "ucb", _5_WIDE, published=0.011, why=_FIGURES, shown=True),
    Spec(
        "private-ucb, published width, ε = 400, gap 0.1",
        "private-ucb",
        _5_WIDE,
        400.0,
        "published",
        published=0.0015,
        published_at_zero=5,
        why=_FIGURES,
        shown=True,
    ),
    Spec("uniform, gap 0.1", "uniform", _5_WIDE, why=_CONTROL, shown=True),
)
