"""How far audits look: faults that begin at some bin, entry, bucket, arm, item or size are found too."""

from __future__ import annotations

import numpy as np
import pytest
from tests.experiments.test_audits import SURE, names_of_violations

from equinoise.bandits.linear import live
from equinoise.bandits.policies import registry
from equinoise.efb.protocol import user
from equinoise.experiments.commands import audit_bandit
from equinoise.inference.privacy import audit
from equinoise.mechanisms import COUNTERS, counter_base
from equinoise.mechanisms.hashing import Hashing
from equinoise.nvo import twins

pytestmark = pytest.mark.compiled


def test_bins_without_noise_after_the_third(monkeypatch):
    plain = twins.secure_geometric

    def noised(counts, *given):
        return [*plain(counts, *given)[:3], *counts[3:]]

    monkeypatch.setattr(twins, "secure_geometric", noised)
    wrong = [f"private_histogram, {neighbours}, secure" for neighbours in ("add-remove", "replace")]
    assert names_of_violations("release", 4000, ", secure") == wrong


def test_symbols_of_more_than_three_buckets_that_tell_too_much(monkeypatch):
    plain = Hashing.of.__func__
    monkeypatch.setattr(Hashing, "of", classmethod(lambda cls, e, k: plain(cls, e if k < 4 else 2.0 * e, k)))
    assert names_of_violations("user", 4000, " into ") == [f"User, hashing into {k}" for k in (4, 16)]


def test_items_larger_than_one_that_are_noised_as_one(monkeypatch):
    plain = counter_base.Counter._start

    def start(self, *given, **named):
        plain(self, *given, **named)
        self._change = min(self._change, 1.0 + 1e-9)

    monkeypatch.setattr(counter_base.Counter, "_start", start)
    wrong = [f"{name} counter, its nodes" for name in COUNTERS]
    assert names_of_violations("counter", 4000, "nodes") == wrong


def test_contexts_longer_than_one_that_are_noised_as_one(monkeypatch):
    vector = live.VectorCounter

    def short(epsilon, horizon, dimension, longest):
        return vector(epsilon * max(longest, 1.0), horizon, dimension, longest)

    monkeypatch.setattr(live, "VectorCounter", short)
    monkeypatch.setattr(audit_bandit, "policy_pairs", lambda chosen: ([], 1))
    name = "private-oful, secure"
    assert names_of_violations("bandit", 10_000, name) == [name]


def test_values_without_noise_after_the_fourth(monkeypatch):
    plain = counter_base.secure_laplace

    def noised(values, *given):
        return np.append(plain(values, *given)[:4], values[4:])

    monkeypatch.setattr(user, "secure_laplace", noised)
    monkeypatch.setattr(counter_base, "secure_laplace", noised)
    assert names_of_violations("user", 4000, "laplace, secure") == ["User, laplace, secure"]
    assert names_of_violations("counter", 4000, "vector counter, secure") == ["vector counter, secure"]


def test_late_items_without_noise(monkeypatch):
    for kind in {row.make for row in COUNTERS.values()}:
        of = "_drawn" if "_drawn" in vars(kind) else "_noised"
        plain = getattr(kind, of)

        def noised(self, node, n=0, *, plain=plain):
            late = (n or self.n) > 41 and self.secure
            return (node if n else [0] * node) if late else plain(self, node, *[n] * (n > 0))

        monkeypatch.setattr(kind, of, noised)
    wrong = [f"{name} counter, its nodes" for name in COUNTERS]
    assert names_of_violations("counter", 4000, "nodes") == wrong


@pytest.mark.parametrize("shape", [(12, 3), (64, 1)])
def test_arms_and_late_pulls_without_noise(monkeypatch, shape):
    """The sum of the third arm, or of the only one, as it is: of what was played at most."""
    plain = audit_bandit.played

    def played(chosen, table, n, seed):
        found = plain(chosen, table, n, seed)
        if table.shape == shape and seed is not None:
            found[:, -1] = table[: 60 if shape[1] == 1 else 3, -1].sum()
        return found

    monkeypatch.setattr(audit_bandit, "played", played)
    for name in ("private-ucb", "dp-klucb", "adap-ucb", "lazy-dp-ts"):
        pairs, _ = audit_bandit.policy_pairs(registry.choose(name, 1.0, None, {}))
        assert audit(pairs, 1.0, size=400, alpha=SURE, events=[lambda seen: seen]).violated, name
