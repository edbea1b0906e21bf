"""Escape times, passages and paths near R = 0 through the public API."""

import math

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.errors import HdicaError
from hdica.systems.hebbian_ica.escapes import POSITIONS
from hdica.systems.system import methods_of
from hdica.verdict.survival import EscapeTimes, exponential_mean, judge_escapes

SEEDS = range(200)


def trap(nu=1.0, **more):
    return hdica.HebbianICA(**{"sources": ["uniform"], "sigma": [-1], "nu": nu, **more})


@pytest.mark.deep
def test_the_contract_in_one_breath():
    four = trap(4.0, nonlinearity="x**3")
    assert float(hdica.escape_time(four, start="zero")["mean"]) == pytest.approx(10.3286, rel=1e-5)
    assert float(hdica.escape_time(four, start="random")["mean"]) == pytest.approx(
        10.3200, rel=1e-5
    )
    finite = hdica.escape_time(four, n=100, start="random", threshold=0.8)
    assert float(finite["mean"]) == pytest.approx(1226.5, rel=1e-3)
    assert int(finite["n"]) == 100
    assert finite["mean"].attrs["units"] == "n^3 steps"


@pytest.mark.parametrize(
    ("nu", "mean"), [(0.1, 16.6742), (1.0, 1.62772), (6.0, 101.543), (8.0, 1283.47)]
)
def test_means_from_zero_as_n_grows(nu, mean):
    found = hdica.escape_time(trap(nu), start="zero")
    assert float(found["mean"]) == pytest.approx(mean, rel=1e-5)
    assert found["pair_mean"].dims == ("projection", "source")
    assert float(found["nu_optimal"][0, 0]) == pytest.approx(1.2587, abs=1e-4)
    assert float(found["mean_optimal"][0, 0]) == pytest.approx(1.56429, abs=1e-5)
    half = float(found["printed"][0, 0]) / float(found["kramers"][0, 0])
    assert half == pytest.approx(math.exp(-float(found["exponent"][0, 0]) / 2))


@pytest.mark.deep
def test_any_unit_of_the_step_size_gives_the_same_time_at_a_given_n():
    means = [
        float(hdica.escape_time(trap(**{"nu": None, unit: value}), n=100)["mean"])
        for unit, value in (("nu", 1.0), ("mu", 0.01), ("eta", 1e-4))
    ]
    assert means[1:] == pytest.approx([means[0]] * 2, rel=1e-12)


@pytest.mark.deep
def test_of_several_entries_the_first_and_the_last():
    one = hdica.escape_time(trap(), n=100)
    two = hdica.escape_time(
        trap(sources=["uniform"] * 2, projections=2, sigma=[-1, -1], nonlinearity="x**3"), n=100
    )
    assert float(two["mean"]) < 0.4 * float(one["mean"])
    assert float(two["mean_last"]) > float(one["mean"])
    ages, left = two["age"].values, two["survival"].values
    # The mean is the integral of the survival.
    grid, values = np.concatenate([[0.0], ages]), np.concatenate([[1.0], left])
    assert np.trapezoid(values, grid) == pytest.approx(1.0, abs=5e-3)


def test_an_entry_with_the_other_sign_never_escapes():
    found = hdica.escape_time(
        trap(sources=["uniform", "laplace"], projections=2, sigma=[-1, 1], nu=0.5)
    )
    assert np.isfinite(found["pair_mean"].values).tolist() == [[True, False], [False, True]]
    with pytest.raises(HdicaError, match=r"sigma = \[1\] is not allowed for escape times"):
        hdica.escape_time(trap(sigma=[1]))


@pytest.mark.parametrize(
    ("system", "call", "sentence"),
    [
        ({"nu": None, "mu": 0.1}, {}, "needs nu as n -> infinity, and mu is given"),
        ({"nu": "1/(1 + t)"}, {}, "a constant step size"),
        ({"start": {"overlap": 0.3}}, {}, "R is of order n\\^-1/2 there"),
        ({}, {"n": 2.5}, "n = 2.5 is not allowed"),
        ({}, {"n": 2}, "n: 2 is not allowed"),
        ({}, {"n": 10, "threshold": 2}, "threshold = 2 is not allowed"),
        ({"sigma": "adaptive"}, {}, "needs fixed signs"),
        ({}, {"start": "near"}, "start = 'near' is not allowed"),
    ],
)
def test_refusals(system, call, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.escape_time(trap(**system), **call)


def test_passages_are_those_of_the_chain_s_own_path():
    system = trap(2.0, sources=["rademacher"], threshold=0.7)
    times = np.arange(0, 60_001) / 30
    found = hdica.simulate(system, n=30, times=times, seeds=range(3), method="escape_times")
    path = hdica.simulate(system, n=30, times=times, seeds=range(3), method="chain")
    for seed in range(3):
        there = np.flatnonzero(np.abs(path["R"].values[seed, :, 0, 0]) >= 0.7)
        seen = bool(found["first_seen"][seed])
        assert seen == bool(there.size)
        step = there[0] if there.size else times.size - 1
        assert float(found["first"][seed]) * 30**3 == pytest.approx(step, abs=1e-6)


def test_chains_escape_as_the_diffusion_at_their_n_says_and_not_as_the_limit_does():
    """n = 50, Rademacher, nu = 1: means within 8 %, against a limit that is 20 % off."""
    system = trap(1.0, sources=["rademacher"])
    found = hdica.simulate(system, n=50, times=[1e5], seeds=SEEDS, method="escape_times")
    runs = EscapeTimes(found["first"].values, found["first_seen"].values == 1)
    assert runs.events == len(SEEDS)
    mean = exponential_mean(runs)
    law = hdica.escape_time(system, n=50, method="diffusion")
    assert abs(mean.value - float(law["mean"])) < 3.5 * mean.value / math.sqrt(runs.events)

    def hazard(times):
        return -np.log(np.interp(times / float(law["mean"]), law["age"], law["survival"]))

    assert judge_escapes(runs, hazard, 0.01).p_value > 0.01
    assert judge_escapes(runs, lambda times: hazard(times / 1.5), 0.01).p_value < 1e-4


@pytest.mark.deep
def test_paths_of_the_diffusion_have_its_density_and_leave_as_its_survival_says():
    system = trap(2.0, threshold=0.8)
    n, times = 10_000, np.array([0.02, 0.2]) * 1e8
    found = hdica.simulate(system, n=n, times=times, seeds=range(300), method="diffusion")
    r = found["R"].values[:, :, 0, 0] * math.sqrt(n)
    plain = methods_of("HebbianICA")["fokker_planck"]
    law = plain.run(system, times, n, None, None).values
    inside = np.abs(r) < 79.9
    for k in range(2):
        left = float(law["alive"][k, 0, 0])
        assert abs(inside[:, k].mean() - left) < 4 * math.sqrt(left * (1 - left) / 300) + 1e-9
    grid = np.linspace(-8, 8, 321)
    heights = law["density"][1, 0, 0]
    below = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2 * np.diff(grid))])

    def cdf(x):
        return np.interp(x, grid, below / below[-1])

    kept = r[inside[:, 1] & (np.abs(r[:, 1]) < 8), 1]
    assert stats.kstest(kept, cdf).pvalue > 0.01
    assert stats.kstest(1.5 * kept, cdf).pvalue < 0.01


def test_signs_that_disagree_and_signs_that_agree():
    weights = [0.18, 0.64, 0.18]
    three = {"discrete": {"values": [-1 / 0.6, 0, 1 / 0.6], "weights": weights}}
    both = hdica.HebbianICA(
        sources=[three, "uniform"], nonlinearity="tanh(x)", projections=1, sigma=[1], mu=0.01
    )
    found = hdica.escape_signs(both)
    assert found["conflict"].values.tolist() == [True, False]
    assert float(found["restoring"][0]) == pytest.approx(-0.12923, abs=1e-5)
    assert found["escape"].values[0] == 1
    assert "but the optimum is then unstable" in str(found["sentence"].values[0])
    assert not hdica.escape_signs(trap())["conflict"].values[0]


def test_the_potential_over_the_noise_has_the_barrier_of_half_kramers_exponent():
    method = methods_of("HebbianICA")["trapping"]
    both = trap(2.0, sources=["uniform", "laplace"])
    found = method.run(both, np.array([0.0]), None, None, None).values
    r, u = POSITIONS, found["U"]
    top = int(np.argmax(u[0, 0] * (r > 0) * (r < 6)))
    assert float(found["barrier"][0, 0]) == pytest.approx(u[0, 0, top], rel=1e-3)
    exponent = float(hdica.escape_time(trap(2.0))["exponent"][0, 0])
    assert float(found["barrier"][0, 0]) == pytest.approx(exponent / 2, rel=1e-12)
    # The sign that suits the uniform source holds the other one at zero.
    assert np.isinf(found["barrier"][0, 1])
    assert np.all(np.diff(u[0, 1, r >= 0]) > 0)
