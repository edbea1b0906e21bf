import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdica.errors import HdicaError
from hdica.ingredients.priors import make_prior, shares
from hdica.ingredients.schedules import make_schedule, make_signal
from hdica.ingredients.starts import make_start

PRIORS = [
    "dense",
    "gaussian",
    {"sparse": 0.3},
    {"sparse_sign": 0.3},
    {"bernoulli_gaussian": 0.2},
    {"atoms": [-1, 2, 0.5], "weights": [1, 1, 2]},
]
STARTS = [
    {"overlap": 0.6},
    {"overlap": -0.3},
    {"overlap": 0.6, "exact": True},
    {"normal": {"mean": 0.5**0.5, "var": 0.5}},
    {"normal": {"mean": 2, "var": 1}},
]


@pytest.mark.parametrize("spec", PRIORS, ids=str)
@pytest.mark.parametrize("n", [7, 100, 1001])
def test_feature_has_length_exactly_sqrt_n(spec, n):
    xi = make_prior(spec).feature(np.random.default_rng(0), n)
    assert xi.shape == (n,)
    assert math.isclose(xi @ xi, n, rel_tol=1e-13)


@pytest.mark.parametrize("spec", PRIORS, ids=str)
def test_prior_nodes_have_unit_second_moment(spec):
    nodes = make_prior(spec).nodes
    assert math.isclose(float(nodes.mean(nodes.points**2)), 1, rel_tol=1e-12)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.integers(1, 10_000))
@settings(deadline=None)
def test_shares_add_up_and_are_within_one_of_exact(weights, n):
    w = np.array(weights) / sum(weights)
    counts = shares(w, n)
    assert counts.sum() == n
    assert np.all(np.abs(counts - w * n) < 1)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("start", STARTS, ids=str)
def test_overlap_at_the_start_has_the_stated_mean_and_spread(prior, start):
    law, begin, n, trials = make_prior(prior), make_start(start), 400, 2000
    rng = np.random.default_rng(5)
    q = np.empty(trials)
    for i in range(trials):
        xi = law.feature(rng, n)
        x = begin.estimate(rng, xi)
        assert math.isclose(x @ x, n, rel_tol=1e-12)
        q[i] = xi @ x / n
    expected, spread = begin.overlap(law), begin.spread(law)
    error = 4.5 * q.std() / math.sqrt(trials)
    assert abs(q.mean() - expected) < error + 2 / n
    # A variance of 2000 near-normal numbers is known to 3.2 %; 5/n covers the finite-n term.
    assert n * q.var() == pytest.approx(spread, rel=0.15 + 5 / n, abs=1e-9)


def test_exact_start_has_its_overlap_at_every_n():
    begin, rng = make_start({"overlap": 0.3, "exact": True}), np.random.default_rng(0)
    for n in (5, 50, 500):
        xi = make_prior("gaussian").feature(rng, n)
        assert math.isclose(xi @ begin.estimate(rng, xi) / n, 0.3, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("make", "spec", "part"),
    [
        (make_start, {"overlap": 1.2}, "-1 <= Q0 <= 1"),
        (make_start, {"overlap": math.nan}, "-1 <= Q0 <= 1"),
        (make_start, {"overlap": "a"}, "-1 <= Q0 <= 1"),
        (make_start, {"overlap": 0.5, "exact": 1}, "true or false"),
        (make_start, {"normal": {"mean": 0, "var": 0}}, "is not known"),
        (make_start, {"normal": {"mean": 0, "var": -1}}, "is not known"),
        (make_start, {}, "is not known"),
        (make_prior, {"sparse": 0}, "0 < rho <= 1"),
        (make_prior, {"sparse": True}, "0 < rho <= 1"),
        (make_prior, "sparse", "is not known"),
        (make_prior, {"atoms": [0], "weights": [1]}, "not all atoms zero"),
        (make_schedule, -1, "> 0"),
        (make_schedule, 0, "> 0"),
        (make_schedule, math.inf, "> 0"),
        (make_schedule, "t - 1", "not positive at t = 0"),
        (make_signal, "t - 1", "not a number >= 0 at t = 0"),
        (make_schedule, "import os", "not a formula"),
        (make_schedule, {"steps": {"times": [1], "values": [1]}}, "one value more"),
        (make_schedule, {"steps": {"times": [2, 1], "values": [1, 1, 1]}}, "increasing times"),
        (make_schedule, None, "allowed"),
    ],
)
def test_bad_values_are_refused_with_one_sentence(make, spec, part):
    with pytest.raises(HdicaError) as refused:
        make(spec)
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


def test_schedules_give_tau_of_t():
    t = np.array([0.0, 1.0, 3.0])
    assert make_schedule(0.2).value(t).tolist() == [0.2] * 3
    assert make_schedule("0.3").constant == 0.3
    assert make_schedule("a/(1 + t)", {"a": 0.4}).value(t).tolist() == [0.4, 0.2, 0.1]
    steps = make_schedule({"steps": {"times": [1.0, 2.0], "values": [3, 2, 1]}})
    assert steps.value(t).tolist() == [3, 2, 1]
    assert steps.breaks == (1.0, 2.0)


@pytest.mark.parametrize(
    ("spec", "floor"),
    [
        ("0.1*(1 - t/50)", "needs a floor: max(0.1*(1 - t/50), 0.0001)"),
        ("2*exp(-t) - 1e-9", "needs a floor: max(2*exp(-t) - 1e-9, 0.001)"),
    ],
)
def test_a_schedule_that_falls_to_zero_within_a_run_is_refused_with_the_floor_to_write(spec, floor):
    refused = make_schedule(spec).refuses(60.0)
    assert floor in refused
    assert "\n" not in refused


def test_steps_to_zero_are_refused_with_a_floor():
    with pytest.raises(HdicaError, match="such as 0.0001"):
        make_schedule({"steps": {"times": [10], "values": [0.5, 0]}})


@pytest.mark.parametrize(
    ("make", "spec", "last", "words"),
    [
        (make_schedule, "0.1 - 0.001*t", 99.9, ""),
        (make_schedule, "0.1 - 0.001*t", 150.0, "positive at t = 100 and is -0.05 at t = 150;"),
        (make_schedule, "0.1*sqrt(1 - t)", 0.9, ""),
        (make_schedule, "0.1*sqrt(1 - t)", 3.0, "positive at t = 1 and is no number at t = 3)"),
        (make_schedule, "0.1 + 0.11*sin(t)", 4.0, ""),
        (make_schedule, "0.1 + 0.11*sin(t)", 9.0, "positive at t = 4.28269 and is"),
        (make_schedule, "exp(t)", 500.0, "e+200 at t = 461, which is not allowed (at most 1e+200)"),
        (make_schedule, "exp(t)", 800.0, "at t = 460.8, which is not"),
        (make_signal, "2 - t", 2.0, ""),
        (make_signal, "2 - t", 3.0, "stops being a number >= 0 at t = 2 and is -1 at t = 3)"),
        (make_signal, 0.0, 1e9, ""),
    ],
)
def test_a_schedule_is_allowed_until_it_stops_being_one(make, spec, last, words):
    refused = make(spec).refuses(last)
    assert words in refused
    assert bool(refused) == bool(words)


@pytest.mark.parametrize("spec", ["0.1*exp(-t/10)", "2*exp(-t)", "0.1*exp(-t**2) + 0*t"])
def test_a_step_size_that_is_positive_and_underflows_late_is_allowed(spec):
    assert np.all(make_schedule(spec).value(np.linspace(0, 20, 5)) > 0)


@pytest.mark.parametrize("spec", ["log(t)", "t", "sqrt(t - 1)", "-exp(-t)"])
def test_a_schedule_that_never_was_a_step_size_is_offered_no_floor(spec):
    with pytest.raises(HdicaError, match="not positive at t =") as refused:
        make_schedule(spec)
    assert "floor" not in str(refused.value)


def test_the_floor_that_is_suggested_is_allowed():
    floored = "(0.1*(1 - t/50) + 0.0001 + abs(0.1*(1 - t/50) - 0.0001))/2"  # max, by abs
    tau = make_schedule(floored).value(np.array([0.0, 25.0, 60.0]))
    assert tau == pytest.approx([0.1, 0.05, 0.0001])


@pytest.mark.parametrize("spec", [1e308, {"steps": {"times": [1], "values": [1, 1e250]}}])
def test_a_number_whose_powers_are_none_is_no_step_size_and_no_signal(spec):
    for make in (make_schedule, make_signal):
        with pytest.raises(HdicaError, match=r"is not allowed \(at most 1e\+200\)"):
            make(spec)
        growing = make("exp(t)")
        assert growing.refuses(400.0) == ""
        assert "(at most 1e+200)" in growing.refuses(500.0)
