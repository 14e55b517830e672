"""The live linear bandit: against replay, which uses its rows, secure noise, late rewards and files."""

from __future__ import annotations

import copy
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from equinoise.bandits import linear
from equinoise.bandits.linear import LinearBandit, live
from equinoise.bandits.linear.live import Selection
from equinoise.mechanisms import VectorCounter

POLICIES = [*linear.POLICIES]


def setting(policy, n=60):
    private = {"epsilon": 3.0, "horizon": n, "longest": 2.0, "noise": "float"}
    return {"policy": policy, "ridge": 0.7, "delta": 0.1, **(private if policy == "private-oful" else {})}


def contexts(n, seed=0):
    """Contexts of which the first has the largest L1 norm, 2."""
    return np.stack(
        [np.ones(n), np.append(1.0, np.random.default_rng([7, seed]).uniform(-1.0, 1.0, n - 1))], axis=1
    )


def played(bandit, x, seed=0):
    """Play all rounds; arm 0 pays where x > 0, arm 1 where x < 0. Return the log."""
    rng, rows = np.random.default_rng([8, seed]), []
    for one in x:
        shown = bandit.request(one)
        reward = float(rng.random() < (0.9 if (shown.arm in (0, "a")) == (one[1] > 0.0) else 0.2))
        bandit.update(shown, reward)
        rows.append((shown.arm, reward, *one))
    return pd.DataFrame(rows, columns=["arm", "reward", "one", "x"])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_replay_of_its_log_uses_every_row(policy, seed):
    x = contexts(60, seed)
    log = played(LinearBandit(3, 2, seed=seed, **setting(policy)), x, seed)
    how = {name: value for name, value in setting(policy).items() if name not in ("longest", "noise")}
    log = pd.concat([log, pd.DataFrame({"arm": [0, 1, 2], "reward": 0.0, "one": 1.0, "x": 0.0})])  # all arms
    even = dict.fromkeys(range(3), 1.0 / 3.0)
    how |= {"horizon": 60, "propensity": even, "seed": seed}
    shown = linear.replay(frame=log, contexts=["one", "x"], **how)
    assert shown.rows.tolist() == [*range(60)]


def test_estimates_are_those_of_a_ridge_regression():
    bandit = LinearBandit(["a", "b"], 2, ridge=0.3, bounds=(-1.0, 3.0))
    x, told = contexts(40), {"a": ([], []), "b": ([], [])}
    rng = np.random.default_rng(3)
    for one in x:
        shown = bandit.request(np.stack([one, -one]))
        reward = rng.uniform(-1.0, 3.0)
        bandit.update(shown, reward)
        told[shown.arm][0].append(one if shown.arm == "a" else -one)
        told[shown.arm][1].append((reward + 1.0) / 4.0)
    for k, (of, y) in enumerate(told.values()):
        gram = 0.3 * np.eye(2) + np.array(of).T @ np.array(of)
        np.testing.assert_allclose(bandit.gram_inverse[k], np.linalg.inv(gram), rtol=1e-9)
        np.testing.assert_allclose(bandit.theta_hat[k], np.linalg.solve(gram, np.array(of).T @ y), rtol=1e-9)
    np.testing.assert_allclose(bandit.estimate, bandit.theta_hat, rtol=1e-9)
    frame, rows = bandit.coefficients(), bandit.to_frame()
    assert frame["arm"].tolist() == ["a", "a", "b", "b"]
    assert frame["stderr"].tolist() == pytest.approx(
        0.5 * np.sqrt(np.diagonal(bandit.gram_inverse, axis1=1, axis2=2)).ravel()
    )
    assert rows["pulls"].sum() == 40 and rows["mean"].between(-1.0, 3.0).all()
    assert np.isnan(LinearBandit(2, 1).coefficients()[["theta_hat", "stderr"]]).all(axis=None)


def test_late_rewards_are_those_of_the_order_in_which_they_were_told():
    late, x = LinearBandit(2, 2), contexts(6)
    shown = [late.request(one) for one in x]
    assert late.to_frame()["pending"].tolist() == [6, 0]  # nothing is told: the first of equals
    late.cancel(shown[0])
    for i in (3, 1, 5):
        late.update(shown[i], 0.25 * i / 5.0)
    gram = np.eye(2) + sum(np.outer(x[i], x[i]) for i in (3, 1, 5))
    np.testing.assert_allclose(late.gram_inverse[0], np.linalg.inv(gram), rtol=1e-12)
    right = sum(0.05 * i * x[i] for i in (3, 1, 5))
    np.testing.assert_allclose(late.estimate[0], np.linalg.solve(gram, right), rtol=1e-9)
    with pytest.raises(ValueError, match="open selection of this bandit"):
        late.update(shown[3], 0.5)
    with pytest.raises(ValueError, match="open selection of this bandit"):
        late.update(LinearBandit(2, 2).request(x[0]), 0.5)
    for other in (True, False, 0.0, np.False_):  # equal to an arm, and none
        with pytest.raises(TypeError, match="arm must be an integer"):
            late.update(other, 1.0)
    late.update(np.int64(0), 1.0)  # the oldest that is open
    assert [*late._open] == [4]


@pytest.mark.compiled
def test_secure_noise_is_all_that_choices_hear_of_rewards():
    """The estimate is V^-1 times the private sum of y x, whose noise is that of a vector counter."""
    pytest.importorskip("opendp")
    given = {"policy": "private-oful", "epsilon": 2.0, "horizon": 8, "longest": 2.0}
    bandit, x = LinearBandit(2, 2, **given), contexts(8)
    for i, one in enumerate(x):
        bandit.update(bandit.request(one), i % 2)
    for k, counter in enumerate(bandit._counters):
        np.testing.assert_allclose(bandit.estimate[k], bandit.gram_inverse[k] @ counter.value, rtol=1e-9)
        assert counter.secure and counter.n == bandit.pulls[k] and counter.sensitivity == 2.0
        assert bandit._learner.noise_bonus[k, 0] == counter.width(0.05 / 2)
        assert not np.allclose(bandit.estimate[k], bandit.theta_hat[k])
    assert not bandit._learner.moment.any() and not bandit._learner.clipped.any()  # the kernels saw no reward
    with pytest.raises(ValueError, match="horizon of 8 rounds is over"):
        bandit.request(x[0])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_file_goes_on_as_if_nothing_had_stopped(tmp_path, policy):
    x, path = contexts(60), tmp_path / "bandit.npz"
    whole, first = (LinearBandit(["a", "b", "c"], 2, seed=1, **setting(policy)) for _ in range(2))
    played(whole, x[:30])
    played(first, x[:30])
    pending = [bandit.request(x[30]) for bandit in (whole, first)]
    first.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = LinearBandit.load(path)
    again.update(Selection(pending[1].number, pending[1].arm, again._line), 0.5)
    whole.update(pending[0], 0.5)
    assert played(again, x[31:], 1).equals(played(whole, x[31:], 1))
    assert again.estimate.tobytes() == whole.estimate.tobytes()
    with pytest.raises(TypeError, match="save and load"):
        copy.copy(again)
    first.request(x[0])
    again.save(path)
    with pytest.raises(ValueError, match="overwrite"):
        first.save(path)
    damaged = path.read_bytes()
    path.write_bytes(damaged[:-40])
    with pytest.raises(ValueError, match="LinearBandit"):
        LinearBandit.load(path)


@pytest.mark.compiled
def test_secure_counters_are_in_the_file(tmp_path):
    pytest.importorskip("opendp")
    bandit, x = LinearBandit(2, 2, policy="private-oful", epsilon=1.0, horizon=9, longest=2.0), contexts(9)
    for one in x[:5]:
        bandit.update(bandit.request(one), 1.0)
    bandit.save(tmp_path / "bandit")
    again = LinearBandit.load(tmp_path / "bandit")
    assert [counter.state() for counter in again._counters] == [c.state() for c in bandit._counters]
    assert again.estimate.tobytes() == bandit.estimate.tobytes()
    again._counters[0] = VectorCounter(2.0, 9, 2, 2.0)
    with pytest.raises(RuntimeError, match=r"cannot be saved; the file is as it was: counters must be"):
        again.save(tmp_path / "other")


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_bandit_whose_change_broke_off_is_not_saved(secure, when, monkeypatch, tmp_path):
    """It could not be loaded, and would be in the place of a file that can."""
    private = {"policy": "private-oful", "epsilon": 1.0, "horizon": 9, "longest": 2.0}
    if secure:
        pytest.importorskip("opendp")
    bandit, learn = LinearBandit(2, 2, **(private if secure else {})), live.kernels.learn
    bandit.update(bandit.request([1.0, 0.5]), 1.0)
    bandit.save(tmp_path / "bandit")
    kept = (tmp_path / "bandit").read_bytes()

    def fail(*arguments):
        if when == "after":
            learn(*arguments)
        raise MemoryError

    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(live.kernels, "learn", fail)
        bandit.update(bandit.request([1.0, 0.5]), 1.0)
    if when == "after" or secure:  # else nothing has changed
        with pytest.raises(RuntimeError, match="a change of this bandit broke off"):
            bandit.save(tmp_path / "bandit")
        assert (tmp_path / "bandit").read_bytes() == kept
    else:
        bandit.save(tmp_path / "bandit")
    assert LinearBandit.load(tmp_path / "bandit").rounds in (1, 2)


def test_threads_end_with_exact_numbers():
    bandit, x = LinearBandit(2, 2), contexts(200)

    def work(part):
        for one in part:
            bandit.update(bandit.request(one), 1.0)

    threads = [threading.Thread(target=work, args=(x[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.pulls.sum() == bandit.rounds == 200
    gram = 2.0 * np.eye(2) + x.T @ x  # the ridge of both arms
    np.testing.assert_allclose(sum(np.linalg.inv(part) for part in bandit.gram_inverse), gram, rtol=1e-9)


@pytest.mark.parametrize("before", [0, 10**8 - 1000])
def test_widths_are_made_for_any_number_of_pulls_and_take_no_room(before, tmp_path):
    bandit = LinearBandit(1, 1, delta=0.1)
    bandit._learner.pulls[0, 0] = bandit._rounds = before
    bandit.save(tmp_path / "bandit")
    tracemalloc.start()
    bandit = LinearBandit.load(tmp_path / "bandit")
    for _ in range(30):
        bandit.update(bandit.request([1.0]), 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = 0.5 * np.sqrt(np.log((1.0 + before + 30) / 0.1)) + 1.0
    assert bandit._learner.bonus[0, 0] == pytest.approx(expected, rel=1e-12)
    assert peak < 2**20


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("n_arms must be at least one name, none of them twice", {"n_arms": ["a", "a"]}),
        ("n_arms must be an integer", {"n_arms": 0}),
        ("dimension must be", {"dimension": 0}),
        ("n_arms times dimension squared", {"dimension": 10**5}),
        ("policy must be one of", {"policy": "ucb"}),
        ("epsilon must be given with policy='private-oful'", {"policy": "private-oful"}),
        ("longest must be given with", {"policy": "private-oful", "epsilon": 1.0, "horizon": 9}),
        ("horizon must be None without", {"horizon": 9}),
        ("ridge must be", {"ridge": 0.0}),
        ("delta must be", {"delta": 1.0}),
        ("delta must be", {"delta": 5e-324}),
        ("sigma must be", {"sigma": np.nan}),
        ("bounds must be", {"bounds": (1.0, 0.0)}),
        ("noise must be one of", {"noise": "none"}),
    ],
)
def test_wrong_arguments_are_named(said, arguments):
    with pytest.raises((TypeError, ValueError), match=said):
        LinearBandit(**{"n_arms": 2, "dimension": 2} | arguments)


@pytest.mark.parametrize("wrong", [[1.0], [1.0, np.nan], np.ones((3, 2)), [1.0, 1e7], "x", [1e6, 1e6]])
def test_wrong_contexts_change_nothing(wrong):
    bandit = LinearBandit(2, 2, ridge=1e-9)
    with pytest.raises((TypeError, ValueError), match=r"contexts|ridge"):
        bandit.request(wrong)
    shown = bandit.request([1.0, 0.0])
    for reward in (np.nan, 2.0, "1", None):
        with pytest.raises((TypeError, ValueError), match="reward must"):
            bandit.update(shown, reward)
    with pytest.raises(TypeError, match="arm must be an integer"):
        bandit.update("a", 1.0)
    with pytest.raises(ValueError, match="arm must be one of"):
        bandit.update(2, 1.0)
    with pytest.raises(ValueError, match="has none"):
        bandit.update(1, 1.0)
    assert bandit.rounds == 1 and bandit.pulls.tolist() == [0, 0]
    private = LinearBandit(2, 2, policy="private-oful", epsilon=1.0, horizon=5, longest=1.0, noise="float")
    with pytest.raises(ValueError, match="L1 norm of at most 1"):
        private.request([0.7, 0.7])


def test_secure_counters_have_all_that_noise_goes_by():
    pytest.importorskip("opendp")
    given = {"epsilon": 0.5, "horizon": 10}
    bandit = LinearBandit(2, 3, policy="private-oful", longest=2.0, **given)
    options = [counter.state()["options"] for counter in bandit._counters]
    assert options == [{**given, "dimension": 3, "sensitivity": 2.0}] * 2
