"""Slices of replicates: the bits of one run, joined from anywhere, whatever the policy or the learner."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import shutil

import numpy as np
import pytest

from equinoise import bandits, efb, games, replicates
from equinoise.bandits.policies.registry import POLICIES

MEANS = np.linspace(0.2, 0.8, 24).reshape(12, 2)


def bandit(policy, **options):
    epsilon = 0.5 if POLICIES[policy].needs_epsilon else None
    return bandits.simulate(policy, MEANS, horizon=30, epsilon=epsilon, n_checkpoints=2, seed=3, **options)


def linear(policy, **options):
    theta = np.arange(48.0).reshape(12, 2, 2) / 100
    own = {"n_arms": 2, "dimension": 2, "horizon": 20, "epsilon": 1.0, "theta": theta, "n_checkpoints": 2}
    return bandits.linear.simulate(policy, **own, **options)


def learner(name, **options):
    tree, environment = games.load("kuhn_poker")
    epsilon = 2.0 if efb.LEARNERS[name].private else math.inf
    return efb.simulate(
        tree, environment, horizon=20, epsilon=epsilon, learner=name, n_checkpoints=2, **options
    )


def self_play(game, **options):
    return efb.self_play(game, horizon=20, epsilon=2.0, n_checkpoints=2, **options)


RUNS = [
    *(functools.partial(bandit, policy) for policy in POLICIES),
    *(functools.partial(linear, policy) for policy in bandits.linear.POLICIES),
    *(functools.partial(learner, name) for name in efb.LEARNERS),
    functools.partial(self_play, "kuhn_poker"),
]


def of_replicates(run, n):
    """The arrays of a result that have an entry for each of n replicates, by name."""
    values = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    flat = {
        name: [v] if isinstance(v, np.ndarray) else v
        for name, v in values.items()
        if isinstance(v, np.ndarray | tuple)
    }
    return {name: [v for v in vs if isinstance(v, np.ndarray) and len(v) == n] for name, vs in flat.items()}


@pytest.mark.parametrize("simulate", RUNS, ids=lambda run: str(run.args[0]))
def test_a_slice_has_the_bits_of_the_whole_run_and_slices_merge_to_it(tmp_path, simulate):
    whole = simulate(n_replicates=12)
    parts = [
        simulate(n_replicates=range(*span), resume=tmp_path / str(span[0]))
        for span in ((5, 9), (0, 5), (9, 12))
    ]
    assert [part.first_replicate for part in parts] == [5, 0, 9]
    wanted = of_replicates(whole, 12)
    assert wanted["regret"]
    for part, span in zip(parts, (slice(5, 9), slice(0, 5), slice(9, 12)), strict=True):
        for name, arrays in of_replicates(part, span.stop - span.start).items():
            if name in wanted and len(arrays) == len(wanted[name]):
                for one, all_of_them in zip(arrays, wanted[name], strict=True):
                    np.testing.assert_array_equal(one, all_of_them[span])
    rows = parts[0].to_frame().reset_index(drop=True)
    frame = whole.to_frame()
    same = frame[frame["replicate"].between(5, 8)].reset_index(drop=True)
    assert rows.equals(same)
    assert replicates.merge([tmp_path / n for n in "950"], tmp_path / "whole") == range(12)
    before = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    merged = simulate(n_replicates=12, resume=tmp_path / "whole")
    assert {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()} == before
    for name, arrays in of_replicates(merged, 12).items():
        for one, other in zip(arrays, wanted[name], strict=True):
            np.testing.assert_array_equal(one, other)


def task(value, start, stop):
    return {"value": np.arange(start, stop) * value}


def run(folder, span, value=2.0, **options):
    return replicates.run(functools.partial(task, value), span, resume=folder, **options)["value"]


def test_a_slice_is_a_range_of_consecutive_replicates():
    np.testing.assert_array_equal(
        replicates.run(functools.partial(task, 1), range(3, 7), block=2)["value"], [3, 4, 5, 6]
    )
    for wrong in (range(0), range(3, 3), range(5, 3), range(0, 6, 2), range(-1, 2), range(6, 0, -1)):
        with pytest.raises(ValueError, match="n_replicates must be a range of consecutive"):
            replicates.run(functools.partial(task, 1), wrong)


def test_slices_may_share_one_folder(tmp_path):
    run(tmp_path, range(4, 9), block=2)
    run(tmp_path, range(4), block=3)
    np.testing.assert_array_equal(run(tmp_path, range(2, 12)), np.arange(2, 12) * 2.0)
    assert len(list(tmp_path.glob("*.npz"))) == 3 + 2 + 3


def test_merging_refuses_gaps_overlaps_other_runs_and_damage(tmp_path):
    a, b, c, d = (tmp_path / name for name in "abcd")
    run(a, range(4), block=2)
    run(a, range(4), block=3)
    run(b, range(4, 8), block=2)
    run(c, range(6, 9))
    run(d, range(4, 8), value=3.0)

    def refused(words, *folders, to="new"):
        with pytest.raises(ValueError, match=words):
            replicates.merge(folders, tmp_path / to)
        assert not (tmp_path / "new").exists()

    refused(r"/a' and '.*/c': replicates 4 to 5 are in none$", c, a)
    refused(r"/b' and '.*/c': replicates 6 to 7 are in both$", a, b, c)
    refused("replicates 0 to 3 are in both", a, a)
    refused(
        r"^folders must be of the run of '.*/a', got '.*/d' of another: value is 3.0 there and 2.0 here", a, d
    )
    refused("^folders must be at least one, got none")
    with pytest.raises(TypeError, match=r"^folders must be a list of paths"):
        replicates.merge(str(a), tmp_path / "new")
    with pytest.raises(TypeError, match=r"^folders must be a list of paths, got None"):
        replicates.merge(None, tmp_path / "new")
    refused("^folder must be an empty one, got '.*/d'", a, b, to="d")
    shutil.copytree(d, tmp_path / "hole")
    run(tmp_path / "hole", range(9, 12), value=3.0)
    refused(
        r"^folders must be slices side by side, got '.*/hole': replicates 8 to 8 are in none$",
        tmp_path / "hole",
    )
    block = b / "replicates-000000004-000000006.npz"
    whole = block.read_bytes()
    block.write_bytes(whole[:-9])
    refused("replicates 4 to 5 are in none", a, b)
    block.write_bytes(whole)
    assert replicates.merge([b, a], tmp_path / "new") == range(8)
    assert replicates.merge([b], tmp_path / "part") == range(4, 8)
    (tmp_path / "nothing").mkdir()
    shutil.copy(a / "run.json", tmp_path / "nothing/run.json")
    with pytest.raises(ValueError, match=r"folders must have finished replicates, got none in '.*nothing'"):
        replicates.merge([a, tmp_path / "nothing"], tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        replicates.merge([a, tmp_path / "absent"], tmp_path / "other")


def test_rows_of_each_replicate_are_those_of_the_whole_run():
    with pytest.raises(ValueError, match="means must have one row for each of the 13 replicates"):
        bandit("ucb", n_replicates=range(3, 13))
    with pytest.raises(ValueError, match="means must have one row for each of the 11 replicates"):
        bandit("ucb", n_replicates=11)
    with pytest.raises(ValueError, match=re.escape("theta must have shape (13, 2, 2)")):
        linear("oful", n_replicates=range(3, 13))
    assert len(bandit("ucb", n_replicates=range(4)).true_means) == 4


def test_a_saved_slice_of_a_game_stays_one(tmp_path):
    part = learner("dp-efb", n_replicates=range(3, 5))
    part.save(tmp_path / "run.npz")
    assert efb.EfbRun.load(tmp_path / "run.npz").first_replicate == 3
