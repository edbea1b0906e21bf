"""Rules that descend along a nonlinearity and keep the norm are online ICA, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.ingredients.save import NOTHING
from hdica.systems.online_rule.descent import descent
from hdica.systems.rules.methods import ONE, methods

TIMES = [0, 1, 3]
SAME = [
    ("-tau*u**3", "x**3", "uniform", "dense"),
    ("tau*tanh(2*u)", "-tanh(2*x)", "laplace", {"sparse": 0.3}),
    ("-(u**3 - 3*u)*tau", "x**3 - 3*x", {"sum": [{"law": "uniform", "weight": 0.7},
                                                 {"law": "laplace", "weight": 0.3}]}, "dense"),
]  # fmt: skip


def rule(update: str = "-tau*u**3", **fields: object) -> hdica.OnlineRule:
    usual = {"normalise": "norm", "constants": {"tau": 0.05}, "start": {"overlap": 0.4}}
    return hdica.OnlineRule(update=update, **(usual | fields))


@pytest.mark.parametrize("method", ["chain", "vector"])
@pytest.mark.parametrize(("update", "f", "source", "prior"), SAME)
def test_it_has_the_bits_of_online_ica(update, f, source, prior, method: str) -> None:
    laws = {"source": source, "prior": prior}
    ica = hdica.OnlineICA(tau=0.05, nonlinearity=f, start={"overlap": 0.4, "exact": True}, **laws)
    way = {"n": 41, "times": TIMES, "seeds": range(3), "method": method}
    ours, theirs = hdica.simulate(rule(update, **laws), **way), hdica.simulate(ica, **way)
    assert np.array_equal(ours.Q, theirs.Q)
    assert np.array_equal(ours.cosine, ours.Q)
    assert np.all(ours.P == 1)


@pytest.mark.parametrize(
    "other",
    [
        rule("-tau*u**3*v**2"),
        rule("-tau*u**3 + tau**2*u"),
        rule(normalise="none"),
        rule(entrywise="-tau*x"),
        rule(spike=1.0),
        rule("-tau*where(u > 1, u, 0)"),
        rule("-0.05*u**3"),
        rule("-tau*u**3 + tau*z", noise={"z": "gaussian"}),
        rule("-tau*u**3/(1 + t)"),
    ],
    ids=lambda one: one.update,
)
def test_other_rules_are_none(other: hdica.OnlineRule) -> None:
    assert descent(rule()) is not None
    assert descent(other) is None


def test_it_escapes_as_online_ica_does() -> None:
    ica = hdica.OnlineICA(tau=0.04, source="rademacher", start={"overlap": 0, "exact": True})
    own = rule(source="rademacher", constants={"tau": 0.04}, start={"overlap": 0.0})
    ours, theirs = hdica.escape_time(own, n=40), hdica.escape_time(ica, n=40)
    assert ours.equals(theirs)
    with pytest.raises(hdica.HdicaError, match="OnlineRule"):
        hdica.escape_time(rule("-tau*u**3*v**2"), n=40)


def test_points_of_both_kinds_keep_their_places() -> None:
    way = {"n": 20, "times": TIMES, "seeds": range(2), "method": "chain"}
    mixed = hdica.simulate(rule(), over={"normalise": ["none", "norm"]}, **way)
    for kind in ("none", "norm"):
        alone = hdica.simulate(rule(normalise=kind), **way)
        assert np.array_equal(mixed.sel(normalise=kind).Q, alone.Q), kind


@pytest.mark.parametrize("name", ["chain", "vector"])
def test_kernels_of_all_rules_have_the_same_law(name: str) -> None:
    """Overlaps at t = 3 by either kernel, and those of another step size as a control."""
    runs = 400
    general = next(one for one in methods(ONE) if one.name == name)

    def by_general(tau: float) -> np.ndarray:
        points = ((rule(constants={"tau": tau}), seed) for seed in range(runs))
        each = (general.run(one, np.array([3.0]), 12, seed, NOTHING) for one, seed in points)
        return np.array([float(one.values["Q"][0]) for one in each])

    ours = hdica.simulate(rule(), n=12, times=[3], seeds=runs, method=name).Q.values.ravel()
    assert stats.ks_2samp(ours, by_general(0.05)).pvalue > 1e-4
    assert stats.ks_2samp(ours, by_general(0.1)).pvalue < 1e-4
