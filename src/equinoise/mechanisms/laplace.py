"""The Laplace mechanism: density exp(-|x|/b)/(2b) added to each value, b = sensitivity / epsilon."""

import functools
import math

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, ArrayLike, Callable, Floats, Ints

LARGEST_SCALE = 1e300  # 37 times as much is still a number, and no draw is larger


def laplace(scale: float, size: int, seed: int | None = None) -> Floats:
    """Draw Laplace noise for a simulation, and not for a real person's data.

    The low bits of a float64 sum show what was added [2]_; see :func:`secure_laplace`.

    Parameters
    ----------
    scale : float
        b, from 0 to 1e300; the variance is 2 b^2.
    size : int
        How many draws.
    seed : int, optional
        The same seed gives the same draws; None takes randomness from the operating system.

    Returns
    -------
    float64[size]

    Raises
    ------
    TypeError, ValueError
        For an argument that is no number or out of its range.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity in private data
       analysis, TCC, Proposition 1.
    .. [2] Mironov (2012), On significance of the least significant bits for differential privacy, CCS.

    Examples
    --------
    >>> draws = laplace(2.0, 100_000, seed=1)
    >>> bool(abs(draws.var() / 8 - 1) < 0.05)
    True
    """
    scale = _checks.number("scale", scale, 0.0, LARGEST_SCALE)
    _results.check_memory(n := _checks.integer("size", size, 0, _checks.MOST), 1, "size")
    out = np.empty(n)
    from equinoise._random import SAMPLE, fill_laplace, stream_key

    fill_laplace(stream_key(seed), 0, SAMPLE, scale, out)
    return out


def secure_laplace(values: ArrayLike, sensitivity: float, epsilon: float) -> Floats:
    """Add Laplace noise that may leave a real person's device, with OpenDP.

    The noise comes from the operating system's randomness and is added exactly on a grid, so no low bit
    betrays the input. OpenDP's own privacy map must confirm that two value vectors at L1 distance
    `sensitivity` are told apart by at most `epsilon`, or nothing is released.

    Parameters
    ----------
    values : float64[n]
        Finite.
    sensitivity, epsilon : float
        The largest L1 distance between two neighbours' values, and epsilon: positive and finite.

    Returns
    -------
    float64[n]
        The values plus noise of scale sensitivity / epsilon.

    Raises
    ------
    ValueError
        For NaN and infinity among others, since OpenDP would noise a NaN as a zero.
    ImportError
        When OpenDP is not installed.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity in private data
       analysis, TCC, Proposition 1.

    Examples
    --------
    >>> noised = secure_laplace([1.0, 2.0], sensitivity=1.0, epsilon=1e6)
    >>> noised.round(3)
    array([1., 2.])
    """
    given = _checks.array("values", values, np.float64, (None,))
    distance = _checks.number("sensitivity", sensitivity, 0.0, open_low=True)
    budget = _checks.epsilon(epsilon, allow_infinite=False)
    return np.array(_measurement(distance, budget)(given.tolist()), dtype=np.float64)


def secure_geometric(counts: ArrayLike, sensitivity: int, epsilon: float) -> Ints:
    """Add two-sided geometric noise to counts int64[n], as :func:`secure_laplace` to values, exactly."""
    given: Ints = _checks.array("counts", counts, np.int64, (None,))
    budget = _checks.epsilon(epsilon, allow_infinite=False)
    if sensitivity / budget > 2.0**57:
        raise ValueError(f"epsilon must leave the noise within 64 bits, got {epsilon!r}")
    return np.array(_measurement(sensitivity, budget, "i64")(given.tolist()), dtype=np.int64)


@functools.lru_cache(maxsize=64)
def _measurement(sensitivity: float, epsilon: float, kind: str = "f64") -> Callable[[list[Any]], list[Any]]:
    """Return OpenDP's mechanism at the smallest scale that its privacy map accepts."""
    try:
        import opendp.prelude as module
    except ImportError as error:
        how = 'pip install "equinoise[secure]" (noise="float" is for simulations only)'
        raise ImportError(f"noise for a real report needs OpenDP: {how}") from error
    dp: Any = module
    if [int(part) for part in dp.__version__.split(".") if part.isdecimal()] < [0, 14, 2]:
        why = "whose whole numbers have another law than its privacy map says: install opendp>=0.14.2"
        raise ImportError(f"noise for a real report must not be of OpenDP {dp.__version__}, {why}")
    dp.enable_features("contrib")
    if not 0.0 < (scale := sensitivity / epsilon) < math.inf:
        raise ValueError(f"epsilon must give a finite noise scale sensitivity/epsilon, got {epsilon!r}")
    entry = dp.atom_domain(T=kind, nan=False) if kind == "f64" else dp.atom_domain(T=kind)
    domain = dp.vector_domain(entry), dp.l1_distance(T=kind)
    for _ in range(4):  # the map rounds upwards: a step or two in the last place satisfies it
        measurement = dp.m.make_laplace(*domain, scale=scale)
        if measurement.map(sensitivity) <= epsilon:
            return measurement  # type: ignore[no-any-return]
        scale = math.nextafter(scale * (1.0 + 2.0**-52), math.inf)
    raise ValueError(f"epsilon must be one that OpenDP's privacy map can confirm, got {epsilon!r}")
