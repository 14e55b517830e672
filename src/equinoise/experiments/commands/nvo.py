"""A release of one column: from a file to a certified profile and a sample of it."""

import math
import secrets
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from equinoise import _checks, _files, _results, replicates
from equinoise._typing import Any, Array, Axes, Callable, Floats
from equinoise.experiments.commands import common
from equinoise.experiments.nvo import source
from equinoise.nvo import Histogram, NoiseGame, Profile, registry, twins
from equinoise.nvo.columns import Column, read_column
from equinoise.nvo.game import checked_restarts
from equinoise.nvo.noise import RULES, positive, refuse_large
from equinoise.nvo.release import certificate, composition, folder as folder, ledger as ledger, rows as drawn
from equinoise.report import figures
from equinoise.report.exhibit import csv_bytes, frame_of

SEARCHES = {name: row for name, row in registry.SEARCHES.items() if row.profile}
_SECONDS = {"none": 0.0, "fast": 10.0, "full": math.inf}  # that may be spent on a bound
_MOST_BINS = 10**5  # beyond, all that is compared takes minutes
_NUMBERS = 12  # of 8 bytes that a row takes, with the text of it
_FARTHEST = 1e150  # from zero: what has no finite square has no deviation
_NARROWEST = 1e-300  # bin: numbers that are hardly above 0 have few digits
_PLACED = ("bounds", "margin", "whole", "spike", "clamp", "rows", "bins", "seed")
_ASKED = ("epsilon", "total_epsilon", "method", *_PLACED)  # for, in what others get
_DESCRIBED: dict[str, Callable[[Floats], Any]] = {"mean": np.mean, "standard deviation": np.std}
_DESCRIBED |= {f"quantile {q}%": partial(np.quantile, q=q / 100) for q in (5, 25, 50, 75, 95)}
_WIDER, _FAR = 1.5, 0.1  # times the data's standard deviation: a sample's own, and its distance
_MEASURES = ("realised_epsilon", "realised_epsilon_addition", "kl", "sd_l1", "jaccard", "cosine")


@dataclass(frozen=True)
class Parameters:
    """What a release depends on, checked when made: the command's options; scales in the column's units.

    ``columns`` are all that are released together, where there are several.
    """

    path: str
    column: str
    epsilon: float | None = None
    total_epsilon: float | None = None
    bounds: tuple[float, float] | None = None
    rows: int | None = None
    bins: int = 101
    margin: float | str | None = None
    whole: bool = False
    spike: float | None = None
    scales: str | int | tuple[float, ...] = "default"
    method: str = "nvo"
    search: str = "anneal"
    restarts: int = 1
    seed: int | None = None
    resolve: int | str = 25
    drop_missing: bool = False
    sep: str = ","
    decimal: str = "."
    na: str | None = None
    clamp: bool = False
    verbose: bool = False
    bound: str = "fast"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.total_epsilon is None):
            raise ValueError("epsilon must be given, or else total_epsilon, and not both")
        for name in ("epsilon", "total_epsilon"):
            if getattr(self, name) is not None:
                _checks.epsilon(getattr(self, name), name, allow_infinite=False)
        _checks.choice("search", self.search, SEARCHES)
        _checks.choice("bound", self.bound, _SECONDS)
        checked_restarts(self.restarts, 1)
        if isinstance(self.resolve, str):
            _checks.choice("resolve", self.resolve, ("all", "a number of records"))
        else:
            _checks.integer("resolve", self.resolve, 0)
        if _checks.choice("method", self.method, ("nvo", *twins.METHODS)) != "nvo":
            for name in ("bounds", "rows"):  # as many rows as records would tell of each of these
                if getattr(self, name) is None:
                    raise ValueError(f"{name} must be given for method={self.method!r}, and public")
        _checks.integer("bins", self.bins, 2, _MOST_BINS)
        for name, low, high in (("rows", 1, drawn.MAX_ROWS), ("seed", 0, None)):
            if getattr(self, name) is not None:
                _checks.integer(name, getattr(self, name), low, high)
        _results.check_memory(self.rows or 0, _NUMBERS, "rows")


def prepare(parameters: Parameters) -> tuple[Column, Histogram]:
    """Read the column and bin it, so that whatever is wrong with either shows before any work."""
    how = {name: getattr(parameters, name) for name in ("sep", "decimal", "drop_missing", "na", "verbose")}
    column = read_column(parameters.path, parameters.column, **how)
    if parameters.bounds is not None:
        column = column.within(*parameters.bounds, clamp=parameters.clamp, verbose=parameters.verbose)
    own = column.values  # with public bounds, whether the file has them all as integers must not show
    values = own if parameters.bounds is None else own.astype(np.float64)
    ends = "values" if parameters.bounds is None else "bounds"
    if max(map(abs, parameters.bounds or (float(own.min()), float(own.max())))) > _FARTHEST:
        raise ValueError(f"{ends} must be at most {_FARTHEST:g} in size")  # without the data's own
    places: Any = {name: getattr(parameters, name) for name in ("bounds", "margin", "spike")}
    histogram = Histogram.from_values(values, parameters.bins, **places, whole=parameters.whole or None)
    if (histogram.range[1] - histogram.range[0]) / parameters.bins < _NARROWEST:
        raise ValueError(f"{ends} must leave bins that are wider than {_NARROWEST:g}")
    epsilon = parameters.epsilon or (parameters.total_epsilon or math.nan) / (parameters.rows or histogram.n)
    game = NoiseGame(histogram, epsilon, _normalised(parameters.scales, histogram))
    if parameters.search != "best-response" or parameters.bound != "none":
        refuse_large(game.noise, np.flatnonzero(histogram.counts))
    checked_restarts(parameters.restarts, histogram.n_bins * len(game.scales))
    if parameters.method != "nvo":  # which may lack OpenDP
        twins.make(parameters.method, histogram, epsilon, None, 1, parameters.seed)
    return column, histogram


def _normalised(scales: Any, histogram: Histogram) -> Any:
    """Return scales as :class:`NoiseGame` takes them."""
    return positive("scales", scales) / source.length(histogram) if isinstance(scales, tuple) else scales


def _search(game: NoiseGame, method: str, seed: int, start: int, stop: int) -> dict[str, Array]:
    """Search from the seeds of some replicates."""
    found = [getattr(game, method)(seed + r) for r in range(start, stop)]
    return {key: np.stack([getattr(one, key) for one in found]) for key in ("counts", "converged", "rounds")}


def solve(
    histogram: Histogram,
    epsilon: float,
    *,
    scales: Any = "default",
    search: str = "anneal",
    restarts: int = 1,
    seed: int = 0,
    block: int = 1,
    executor: Executor | None = None,
    progress: bool | str = False,
) -> Profile:
    """Search from `restarts` seeds and return the best profile: most records satisfied, then the least KL.

    `block` of them follow each other in one thread.
    """
    how = SEARCHES[_checks.choice("search", search, SEARCHES)]
    game = NoiseGame(histogram, epsilon, scales)
    n = checked_restarts(restarts, histogram.n_bins * len(game.scales))
    task = partial(_search, game, how.method, seed)
    found = replicates.run(task, n, block=block, executor=executor, progress=progress)
    profiles = [
        game.profile(counts, how.label, seed=seed + r, converged=bool(converged), rounds=int(rounds))
        for r, (counts, converged, rounds) in enumerate(zip(*found.values(), strict=True))
    ]
    return max(profiles, key=lambda profile: (profile.n_satisfied, -profile.kl))


@dataclass(frozen=True, eq=False)
class Release:
    """A release, or why there is none.

    `others` are Laplace mechanisms. No certified profile has a smaller KL than `lower_bound`, infinite where
    there is proven to be none. The sample, int64[rows] or float64[rows], is None where nothing is released.
    """

    parameters: Parameters
    column: Column
    profile: Profile
    others: dict[str, Profile]
    lower_bound: float | None
    certificate: dict[str, Any]
    beside: list[dict[str, Any]]
    resolved: composition.Resolved | None
    sample: Array | None
    seconds: float

    def rows(self) -> list[dict[str, Any]]:
        """Return the table: one row per mechanism, NVO first, which alone has ``lower_bound`` and ``gap``."""
        table: list[dict[str, Any]] = []
        for name, profile in {"NVO": self.profile, **self.others}.items():
            row = {"mechanism": name, "satisfied": profile.n_satisfied, "lower_bound": None, "gap": None}
            table.append(row | {measure: getattr(profile, measure) for measure in _MEASURES})
        if self.lower_bound is not None and self.profile.certified:
            table[0]["gap"] = self.profile.kl - self.lower_bound
        table[0]["lower_bound"] = self.lower_bound
        return table

    def described(self) -> list[tuple[str, Any, float]]:
        """Return measures of the values in their units, their figures in the data and in the sample."""
        from scipy.stats import wasserstein_distance

        both = self.column.values.astype(np.float64), np.asarray(self.sample, dtype=np.float64)
        table: list[Any] = [(name, *map(float, map(f, both))) for name, f in _DESCRIBED.items()]
        table.append(("width of a bin", None, source.length(self.profile.histogram) / self.parameters.bins))
        return [*table, ("Wasserstein distance", None, float(wasserstein_distance(*both)))]

    def cautions(self) -> list[str]:
        """Return in clauses where the sample is far from the data, for their steward."""
        rows = {name: figures for name, *figures in self.described()}
        (sd, now), (_, far) = rows["standard deviation"], rows["Wasserstein distance"]
        said, small = [], 1e-9 * source.length(self.profile.histogram)  # what may be rounding alone
        if now > _WIDER * sd + small:
            said.append(f"the sample's standard deviation is {now:.4g}, and {sd:.4g} in the data")
        if far > _FAR * sd > small:
            chance = self.certificate["rows"] ** -0.5
            found = f"the sample is {far / sd:.2g} standard deviations from the data (Wasserstein)"
            said.append(f"{found}, where chance alone makes it about {chance:.1g}")
        if not (self.profile.histogram.integers or (self.column.values % 1).any()):
            said.append("all values are whole numbers, and rows are so with --whole alone")
        return said

    def failing(self) -> list[dict[str, Any]]:
        """Return the bins that fail, the worst first: ``value``, ``records``, their largest ``epsilon``."""
        judged = self.profile.evaluation
        wrong = np.where(judged.satisfied, 0, self.profile.counts)
        bins = np.flatnonzero(wrong.any(axis=1))
        values = self.profile.game.histogram.to_units(bins)
        worst = np.where(wrong > 0, judged.epsilon, 0.0).max(axis=1)
        rows = zip(values.tolist(), wrong[bins].sum(axis=1).tolist(), worst[bins].tolist(), strict=True)
        table = [dict(zip(("value", "records", "epsilon"), row, strict=True)) for row in rows]
        return sorted(table, key=lambda row: -row["epsilon"])

    def reason(self) -> str:
        """Return in one clause why there is no sample."""
        total, game, rows = self.parameters.total_epsilon, self.profile.game, self.certificate["rows"]
        level = certificate.exact(total or game.epsilon)
        if total is not None:
            within = f"all {rows:,} rows stay within {level} and every record is satisfied"
            return f"no epsilon per row was found with which {within}"
        wrong = f"{game.n - self.profile.n_satisfied:,} of {game.n:,}"
        return f"{wrong} records are not satisfied at epsilon {level}"

    def losses(self) -> list[tuple[str, float | None, float | None]]:
        """Return what a record loses at most, as what happens to it, epsilon of one row, and of all rows."""
        one, whole = self.certificate["realised_epsilon"], self.certificate["composed"]
        found: list[tuple[str, float | None, float | None]] = [
            ("removal, the worst record", float(one["removal"]), float(whole["removal"])),
            ("addition of one more", float(one["addition"]), float(whole["addition"])),
        ]
        if whole["median"] is not None:  # with many bins it is not looked for
            found.insert(1, ("  half of the records", None, float(whole["median"])))
        if self.resolved is not None:
            what = f"solved again without one of {self.resolved.records:,}"
            what += ", at this epsilon" * (self.parameters.epsilon is None)
            found.insert(-1, (what, self.resolved.epsilon, self.resolved.composed))
        return found

    def document(self) -> dict[str, Any]:
        """Return what ``private/run.json`` holds: how it was made, the table, and the certificate."""
        parts: Any = {"released": self.sample is not None, "table": self.rows(), "failing": self.failing()}
        parts |= {"certificate": self.certificate, "beside": self.beside}
        parts["values"] = self.sample is not None and self.described()
        parts["resolved"] = self.resolved and self.resolved._asdict()
        return common.document("nvo", self.parameters, self.seconds, seed=self.profile.seed, **parts)

    def files(self) -> dict[str, bytes]:
        """Return the files of the release as bytes, by their paths in its folder.

        Those in ``private/`` have a row per record in the order of FILE, and show what is released.
        """
        histogram, unit = self.profile.histogram, self.column.name
        scales = {"row": self.column.row_of, "value": self.column.values, "bin": histogram.bin_of}
        scales["midpoint"] = histogram.to_units(histogram.bin_of)  # in units of the data, as the scale
        scales["scale"] = self.profile.scale_of * source.length(histogram)
        profiles = {"NVO": self.profile, **self.others}
        released = common.titled(lambda ax: source.released(ax, profiles, unit), "What is released")
        noise = common.titled(lambda ax: source.noise(ax, self.profile, self.others, unit), "Noise by value")
        private = [csv_bytes(frame_of(scales)), figures.png(released), figures.png(noise)]
        private.append(_files.json_bytes(self.document()))
        shown = shared(self.parameters, unit, self.column.sep, np.asarray(self.sample))
        return shown | {f"private/{name}": each for name, each in zip(folder.PRIVATE, private, strict=True)}


def shared(parameters: Parameters, column: str, sep: str, sample: Array) -> dict[str, bytes]:
    """Return the files for others, which follow from the sample and from what was asked for alone."""
    written: Any = {"sep": sep, "decimal": parameters.decimal, "lineterminator": "\n"}
    table = frame_of({column: sample}).to_csv(index=False, **written).encode()
    names = _ASKED + ("scales", "search", "restarts") * (parameters.method == "nvo")
    names += ("columns",) * bool(parameters.columns)
    asked = {name: value for name, value in asdict(parameters).items() if name in names}
    places, counts = np.unique(sample, return_counts=True)

    def draw(ax: Axes) -> None:
        ax.vlines(places, 0.0, counts / len(sample), color="0.5", linewidth=2.0, label="sample")
        figures.finish(ax, figures.printable(column), "share of the rows")

    picture = figures.png(common.titled(draw, f"A sample of {len(sample):,} rows"))
    said = certificate.statement(asked | {"column": column}, table, len(sample), picture)
    return dict(zip(folder.PUBLIC, (table, _files.json_bytes(said), picture), strict=True))


def release(
    column: Column,
    histogram: Histogram,
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Release:
    """Solve the game, compare, certify, and draw; `working` makes a spinner of the name of what is done."""
    begun = time.perf_counter()
    rows = histogram.n if parameters.rows is None else parameters.rows
    how: dict[str, Any] = {"search": parameters.search, "restarts": parameters.restarts}
    seed = drawn.seed_of(column.name, parameters.seed)
    start = secrets.randbits(63) if seed is None else seed  # or others could search again, and compare
    how |= {"scales": _normalised(parameters.scales, histogram), "seed": start}

    def found(epsilon: float) -> Profile:
        bar = progress and f"{parameters.search}, epsilon {epsilon:.4g}"
        return solve(histogram, epsilon, **how, executor=executor, progress=bar)

    within = True
    if parameters.epsilon is not None:
        profile = found(parameters.epsilon)
    else:
        budget = composition.epsilon_for_total(found, parameters.total_epsilon or math.nan, rows)
        profile, within = budget.profile, budget.composition is not None
    seconds = _SECONDS[parameters.bound]
    with working("bounding what any profile can reach"):
        enough = profile.kl if profile.certified else math.inf
        lower_bound = profile.game.lower_bound(enough=enough, seconds=seconds) if seconds else None
        others = {f"Laplace, {rule}": profile.game.laplace(rule) for rule in RULES}
    with working(f"composing {rows:,} rows"):
        released: Any = profile
        if parameters.method != "nvo":
            asked = parameters.epsilon, parameters.total_epsilon
            released = twins.make(parameters.method, histogram, *asked, rows, seed)
        said = parameters.rows, parameters.seed
        facts = certificate.certificate(released, *said, total=parameters.total_epsilon)
        whole = facts["composed"]["epsilon"] if released is profile else profile.composed(rows).epsilon
        beside = twins.beside(profile, rows, float(whole))
    good = released.certified and (within or released is not profile)
    resolved, number = None, None if parameters.resolve == "all" else int(parameters.resolve)
    if number != 0 and good and released is profile:
        again = partial(solve, epsilon=profile.game.epsilon, **how, block=parameters.restarts)
        bar = progress and "solving again without a record"
        with ThreadPoolExecutor(replicates.workers()) if executor is None else nullcontext(executor) as pool:
            resolved = composition.resolve(profile, number, rows, solve=again, executor=pool, progress=bar)
    sample = released.sample(rows, seed) if good else None
    seconds = time.perf_counter() - begun
    return Release(parameters, column, profile, others, lower_bound, facts, beside, resolved, sample, seconds)
