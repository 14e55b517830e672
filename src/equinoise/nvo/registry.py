"""What is registered by name: searches with their options, and families of noise."""

from collections.abc import Mapping
from dataclasses import dataclass

from equinoise._checks import Option

INTERRUPTED = "the search was interrupted: this is the best profile so far"
_PAPER = "Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach, "


@dataclass(frozen=True)
class Search:
    """A way to a profile, or to a bound.

    The label is what a profile says of how it was found, the method one of a game, called with these options
    by name. `profile` says whether it returns a profile, of any size of game: what a release can choose.
    """

    label: str
    method: str
    source: str
    options: Mapping[str, Option]
    profile: bool = True


@dataclass(frozen=True)
class Family:
    """A family of noise: classes of the game and of its masses, as ``module:name``, and what is promised."""

    game: str
    noise: str
    promise: str
    source: str


SEARCHES: dict[str, Search] = {
    "anneal": Search(
        label="annealing",
        method="anneal",
        source="ours; Kirkpatrick, Gelatt, Vecchi (1983), Optimization by Simulated Annealing",
        options={
            "steps": Option("integer", 9_000_000, "proposals", low=0, high=10**10),
            "replicate": Option("integer", 0, "which of the seed's streams to use", low=0, high=2**63 - 1),
        },
    ),
    "best-response": Search(
        label="best response",
        method="best_response",
        source=_PAPER + "Algorithm 1",
        options={
            "start": Option("choice", "largest", "the profile to start from", choices=("largest", "random")),
            "restarts": Option("integer", 1, "runs, of which the best is kept", low=1, high=10**6),
            "max_rounds": Option("integer", 10_000, "rounds after which a run gives up", low=1),
        },
    ),
    "genetic": Search(
        label="genetic search",
        method="genetic",
        source=_PAPER + "appendix B, approximate enumeration",
        options={
            "generations": Option("integer", 200, "generations after the first", low=0, high=10**6),
            "population": Option("integer", 500, "profiles of a generation", low=2, high=10**6),
            "parents": Option("integer", 10, "the best, of which children are made", low=2),
            "mutation": Option("number", 0.05, "probability of a record to change", low=0.0, high=1.0),
            "kept": Option("integer", 5, "the best that live on", low=0),
        },
    ),
    "exhaustive": Search(
        label="exhaustive search",
        method="exhaustive",
        source="all profiles, as in Nijenhuis, Wilf (1978), Combinatorial Algorithms, chapter 5",
        options={},
        profile=False,
    ),
    "bound": Search(
        label="lower bound",
        method="lower_bound",
        source="ours; a convex relaxation in branch and bound",
        options={
            "nodes": Option("integer", 32, "convex programs to solve at most", low=1, high=10**6),
            "enough": Option("number", float("inf"), "a bound to stop at", low=0.0),
            "seconds": Option("number", float("inf"), "time after which to stop", low=0.0),
        },
        profile=False,
    ),
}

FAMILIES: dict[str, Family] = {
    "laplace": Family(
        game="equinoise.nvo.game:NoiseGame",
        noise="equinoise.nvo.noise:LaplaceNoise",
        promise="epsilon",
        source=_PAPER + "section 4",
    ),
    "gaussian": Family(
        game="equinoise.nvo.gaussian:GaussianGame",
        noise="equinoise.nvo.gaussian:GaussianNoise",
        promise="(epsilon, delta)",
        source="Balle, Wang (2018), Improving the Gaussian Mechanism for Differential Privacy, theorem 5",
    ),
    "pairs": Family(
        game="equinoise.nvo.pairs:PairGame",
        noise="equinoise.nvo.pairs:ProductNoise",
        promise="epsilon",
        source="ours; the game of one column, on a grid of two",
    ),
}
