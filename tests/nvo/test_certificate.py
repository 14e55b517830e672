"""The certificate: figures that agree with the profile, four limits in sentences, and JSON."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys

import numpy as np
import pytest

import equinoise
from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.release.certificate import above, certificate, statement, words
from equinoise.nvo.release.composition import compose


def make(bounds=(140, 200), scale=0.6, epsilon=1.0):
    values = [150, 160, 160, 170, 171, 172, 180, 190]
    histogram = Histogram.from_values(values, 21, bounds=bounds)
    game = NoiseGame(histogram, epsilon, np.array([scale, 0.3]))
    counts = np.zeros((21, 2), dtype=np.int64)
    counts[:, 0] = histogram.counts
    return game.profile(counts, "by hand")


def test_its_figures_are_the_profile_s():
    profile = make()
    assert profile.certified
    found = certificate(profile, rows=5)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["n"], found["bins"], found["scales"], found["epsilon"]) == (8, 21, 2, 1.0)
    assert (found["certified"], found["satisfied"], found["method"]) == (True, 8, "by hand")
    assert found["realised_epsilon"] == {
        "removal": profile.realised_epsilon,
        "addition": profile.realised_epsilon_addition,
    }
    assert 0 < found["realised_epsilon"]["addition"] < found["realised_epsilon"]["removal"] <= 1.0
    total = compose(profile.game.noise, profile.counts, profile.evaluation, 5)
    assert found["composed"] == {
        "rows": 5,
        "delta": 1e-5,
        "removal": total.removal,
        "addition": total.addition,
        "epsilon": max(total.removal, total.addition),
        "median": total.median,
        "method": total.method,
    }
    assert found["bounds"] == {"low": 140.0, "high": 200.0, "source": "public"}
    assert found["range"] == list(profile.game.histogram.range)
    assert found["versions"]["equinoise"] == equinoise.__version__
    assert set(found["versions"]) == {"equinoise", "numpy", "numba", "python"}


def test_as_many_rows_as_records_and_the_system_s_randomness_by_default():
    found = make().certificate()
    assert found["rows"] == found["composed"]["rows"] == 8
    assert found["seed"] == found["sampling"] == "operating system"
    assert not any("seed" in sentence for sentence in found["warnings"])


def test_a_seed_is_named_and_called_not_private():
    found = certificate(make(), seed=0)
    assert found["seed"] == 0
    assert found["sampling"] == "seeded: not private"
    assert any("seed 0 and is not private" in sentence for sentence in found["warnings"])


def test_there_are_four_limits_in_fixed_words():
    found = certificate(make(), rows=5)
    frozen, bounds, draws, relations = found["limits"]
    assert "without someone" in frozen
    assert "secret" in frozen
    assert "140 to 200 count as public" in bounds
    assert "All rows together tell more than one" in draws
    assert "5 rows were asked for" in draws
    assert "removal" in relations
    assert all("\n" not in sentence and sentence.endswith(".") for sentence in found["limits"])
    assert certificate(make(scale=0.9), rows=5)["limits"] == found["limits"]
    assert "the number of records is known" in certificate(make())["limits"][2]
    assert "epsilon counts twice" in certificate(make())["limits"][2]
    assert "twice" not in draws
    asked = {"epsilon": 1.0, "total_epsilon": None, "rows": None}
    replaced = words(asked, [None], method="histogram, replace")[1][1]  # epsilon is for that already
    assert "is known." in replaced
    assert "twice" not in replaced
    assert "fixed and secret" in certificate(make(), total=2.0)["limits"][0]


def test_bounds_from_the_data_are_marked():
    found = certificate(make(bounds=None, scale=2.0))
    assert found["bounds"] == {"low": 150.0, "high": 190.0, "source": "the data's own"}
    assert "150" not in found["limits"][1]  # for it is a record's
    assert "Give bounds" in found["limits"][1]
    assert "whether all values are whole numbers" in found["limits"][1]  # which one of them can change
    assert any("bounds" in sentence for sentence in found["warnings"])
    assert not any("bounds" in sentence for sentence in certificate(make())["warnings"])


def test_what_is_not_certified_promises_nothing():
    profile = make(scale=1e-6)
    found = certificate(profile)
    assert not found["certified"]
    assert found["promise"].startswith("Nothing is promised: 4 of 8 records")
    assert found["realised_epsilon"]["removal"] == "inf"
    assert json.dumps(found, allow_nan=False)


def promise(epsilon=None, total=None, delta=0.0):
    asked = {"epsilon": epsilon, "total_epsilon": total, "rows": 3}
    return words(asked, [(0.0, 9.0)], delta=delta)[0]


def test_the_promise_is_what_was_asked_for():
    assert "at most e^1.5, or 4.49." in promise(1.5)
    assert "at most e^800." in promise(800.0)
    assert "by at most 51%." in promise(0.41)
    assert "all rows together to epsilon 2, except with probability 0.00001." in promise(total=2.0)
    assert "to epsilon 0.5 and delta 1e-06." in promise(0.5, delta=1e-6)


def test_no_promise_is_of_less_than_was_asked_for():
    """All digits of epsilon, delta and bounds, and what follows from them is rounded up."""
    asked = {"epsilon": 1.23456789, "total_epsilon": None, "rows": 3, "columns": ("a", "b", "c")}
    said, limits = words(asked, [(0.0, 1234567.5)])
    assert "to epsilon 1.23456789: " in said and "at most e^1.23456789, or 3.44." in said
    assert "The bounds 0 to 1234567.5 count as public" in limits[1]
    assert "add up, to 3.70370367 for a row" in limits[-1]
    assert "to epsilon 0.123449 and delta 1.2345678e-09." in promise(0.123449, delta=1.2345678e-9)
    assert "to epsilon 2.00004, except" in promise(total=2.00004)
    found = certificate(make(scale=1e-6, epsilon=0.123449))
    assert found["promise"].startswith("Nothing is promised") and " epsilon 0.123449." in found["promise"]


@pytest.mark.parametrize("number", [1.0, 0.3, 5.0644, 1.0001e-15, 123456.7, 1e300])
def test_what_is_at_most_is_rounded_up(number):
    assert number <= float(above(number, 3)) <= 1.01 * number
    assert (above(0.0, 3), float(above(math.inf, 3))) == ("0", math.inf)


def test_others_get_what_was_asked_for():
    asked = {"epsilon": None, "total_epsilon": 2.0, "bounds": None, "rows": None, "seed": 3, "bins": 7}
    asked["method"] = "nvo"
    found = statement(asked, b"a\n1\n", 1, b"png")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["sample"] == {"sha256": hashlib.sha256(b"a\n1\n").hexdigest(), "rows": 1}
    assert found["picture"] == {"sha256": hashlib.sha256(b"png").hexdigest()}
    assert asked.items() <= found.items()
    assert found["sampling"] == "seeded: not private"
    assert len(found["warnings"]) == 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert found["limits"] == words(asked, [None])[1]


def test_without_the_accountant_there_is_a_looser_bound(monkeypatch):
    profile = make()
    close = certificate(profile)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    loose = certificate(profile)
    assert loose["composed"]["method"] == "Rényi divergence"
    assert loose["composed"]["epsilon"] >= close["composed"]["epsilon"]
    assert math.isfinite(loose["composed"]["epsilon"])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rows": 0}, ValueError, "rows must"),
        ({"rows": 2.5}, TypeError, "rows must"),
        ({"seed": -1}, ValueError, "seed must"),
        ({"delta": 0.0}, ValueError, "delta must"),
    ],
)
def test_wrong_arguments(options, error, words):
    with pytest.raises(error, match=words):
        certificate(make(), **options)
