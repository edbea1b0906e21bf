"""Escape from R = 0 at n by the exact equation: against chains, and the diffusion beside it."""

import math

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.errors import HdicaError

ZERO = {"overlap": 0, "exact": True}


def trap(nu, source="rademacher", **more):
    given = {"sources": [source], "sigma": "escape", "nu": nu, "start": "zero"}
    return hdica.HebbianICA(**(given | more))


def ica(nu, source="rademacher", start=ZERO):
    return hdica.OnlineICA(nu=nu, source=source, start=start)


CELLS = [
    # system, n, runs, the diffusion's mean over the exact one, whether runs tell the two apart
    (trap(2.0), 50, 1000, 0.821, True),
    (trap(2.0, "uniform"), 60, 200, 0.714, True),
    (trap(1.0, "laplace"), 60, 1000, 1.015, False),
    (trap(2.0, start="random"), 100, 200, 0.969, False),
    (ica(3.0), 50, 300, 1.922, True),
    (ica(2.0, start={"overlap": 0}), 100, 200, 1.013, False),
    (ica(2.0, "uniform"), 60, 100, 1.138, False),
]


def named(cell):
    system, n, *_ = cell
    source = system.source if isinstance(system, hdica.OnlineICA) else system.sources[0]
    return f"{type(system).__name__} {source} {system.nu} {n}"


@pytest.mark.deep
@pytest.mark.parametrize("cell", CELLS, ids=named)
def test_seven_cells_of_chains_have_the_exact_law(cell):
    """Mean and law of runs, by standard errors and by Kolmogorov and Smirnov; controls fail."""
    system, n, runs, factor, apart = cell
    law = hdica.escape_time(system, n=n, method="exact")
    mean = float(law["mean"])
    other = float(hdica.escape_time(system, n=n, method="diffusion")["mean"])
    assert other / mean == pytest.approx(factor, rel=0.05)
    last = 40 * max(mean, 1.0) * n**2
    found = hdica.simulate(system, times=[last], n=n, seeds=runs, method="escape_times")
    assert np.all(found["first_seen"] == 1)
    times = found["first"].values
    error = times.std(ddof=1) / math.sqrt(runs)
    assert abs(times.mean() - mean) < 3 * error
    if apart:
        assert abs(times.mean() - other) > 3.5 * error

    def reached(at):
        ages, alive = np.append(0.0, law["age"]), np.append(1.0, law["survival"])
        return 1 - np.interp(at / mean, ages, alive)

    assert stats.kstest(times, reached).pvalue > 1e-3
    assert stats.kstest(times * (1 + 10 / math.sqrt(runs)), reached).pvalue < 1e-3
    assert times.std() == pytest.approx(float(law["sd"]), rel=4 / math.sqrt(runs))


@pytest.mark.deep
def test_ten_per_cent_off_is_seen():
    system, n, runs = trap(0.6, "uniform"), 20, 3000
    law = hdica.escape_time(system, n=n)
    found = hdica.simulate(system, times=[300.0 * n**2], n=n, seeds=runs, method="escape_times")
    assert np.all(found["first_seen"] == 1)
    times, mean = found["first"].values, float(law["mean"])
    assert abs(times.mean() - mean) < 3 * times.std() / math.sqrt(runs)

    def reached(at):
        return 1 - np.interp(at / mean, law["age"], law["survival"])

    assert stats.kstest(times, reached).pvalue > 1e-3
    for off in (0.9, 1.1):
        assert stats.kstest(times * off, reached).pvalue < 1e-6


@pytest.mark.deep
@pytest.mark.parametrize(
    ("nu", "exact", "diffusion"),
    [(1.0, 1.7890, 1.7658), (2.0, 4.1754, 3.873), (4.0, 1226.5, 585.3)],
)
def test_the_trap_of_figure_3(nu, exact, diffusion):
    """Uniform source, n = 100, a random start: at nu = 4 the diffusion has half of the time."""
    found = hdica.escape_time(trap(nu, "uniform", start="random"), n=100)
    assert found.attrs["method"] == "escape_exact"
    assert float(found["mean"]) == pytest.approx(exact, rel=1e-3)
    assert float(found["error"]) < 2e-4
    other = hdica.escape_time(trap(nu, "uniform", start="random"), n=100, method="diffusion")
    assert float(other["mean"]) == pytest.approx(diffusion, rel=2e-3)


@pytest.mark.deep
def test_as_n_grows_the_exact_time_is_that_of_the_limit():
    limit = float(hdica.escape_time(trap(1.0))["mean"])
    off = {n: float(hdica.escape_time(trap(1.0), n=n)["mean"]) / limit - 1 for n in (50, 100, 200)}
    assert off[50] / off[100] == pytest.approx(2, rel=0.2)
    assert off[100] / off[200] == pytest.approx(2, rel=0.1)


def test_one_entry_is_the_first_and_the_last():
    found = hdica.escape_time(trap(2.0), n=50)
    assert found["pair_mean"].dims == ("projection", "source")
    for one, other in (("mean", "mean_last"), ("mean", "pair_mean"), ("sd", "pair_sd")):
        assert found[one].item() == found[other].item()
    assert found["survival"].values.tolist() == found["survival_last"].values.tolist()


@pytest.mark.deep
def test_how_fast_the_length_is_forgotten_hardly_matters():
    """As in the limit, for every alpha below 1."""
    means = [
        float(hdica.escape_time(trap(1.0, "uniform", alpha=alpha), n=100)["mean"])
        for alpha in (0.05, 0.5, 0.95)
    ]
    assert means == pytest.approx([means[1]] * 3, rel=1e-3)
    assert means[0] != means[1]


@pytest.mark.deep
def test_a_start_inside_is_sooner_and_a_threshold_matters():
    whole = float(hdica.escape_time(trap(2.0), n=40)["mean"])
    inside = hdica.escape_time(trap(2.0), n=40, start={"overlap": -0.6})
    assert float(inside["mean"]) < 0.8 * whole
    assert float(hdica.escape_time(trap(2.0), n=40, threshold=0.5)["mean"]) < whole


@pytest.mark.deep
@pytest.mark.parametrize(
    ("given", "n", "sentence"),
    [
        ({"sources": ["uniform"] * 2}, 40, "projections and sources: 1 and 2 are not allowed"),
        ({"alpha": 1.0}, 40, r"alpha = 1.0 is not allowed .*alpha < 1"),
        ({"sigma": [1]}, 40, r"sigma = \[1\] is not allowed for escape times"),
        ({"nu": "1/(1 + t)"}, 40, "a constant step size"),
        ({"batch": 2}, 40, "needs fixed signs, single samples"),
        ({}, 2, "n: 2 is not allowed"),
        ({"nu": 8.0, "sources": ["uniform"]}, 100, "n = 100 with eta = 0.0008 is too long"),
        ({}, None, "method = 'exact' is not allowed .*allowed: auto, limit"),
    ],
)
def test_refusals_say_what_is_allowed(given, n, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.escape_time(trap(**({"nu": 2.0} | given)), n=n, method="exact")


def test_what_has_no_exact_equation_falls_to_the_diffusion():
    found = hdica.escape_time(trap(1.0, alpha=1.5), n=60)
    assert found.attrs["method"] == "escape_diffusion"
