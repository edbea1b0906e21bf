"""Escape of online ICA from Q = 0 by theory: exactly at n, by the diffusion at n, as n grows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.errors import HdicaError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/online_escape.json").read_text())
ZERO, SPHERE = {"overlap": 0, "exact": True}, {"overlap": 0}


def ica(nu=2.0, source="rademacher", start=ZERO, **more):
    return hdica.OnlineICA(nu=nu, source=source, start=start, **more)


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: f"{row['source']} {row['nu']}")
def test_golden_passages(row):
    """The exact equation has them; the diffusion does not."""
    n, near = row["n"], GOLDEN["tolerance"]
    for start, name in ((ZERO, "zero"), (SPHERE, "sphere")):
        found = hdica.escape_time(ica(row["nu"], row["source"], start), n=n)
        assert float(found["mean"]) * n**3 == pytest.approx(row[name], rel=near)
        assert float(found["error"]) < near
    zero = ica(row["nu"], row["source"])
    assert float(hdica.escape_time(zero, n=n)["sd"]) * n**3 == pytest.approx(row["sd"], rel=near)
    other = hdica.escape_time(zero, n=n, method="diffusion")
    assert float(other["mean"]) * n**3 > row["zero"] * (1 + 5e-3)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("n", "nu", "start"), [(12, 0.6, ZERO), (20, 1.5, SPHERE), (30, 1.0, SPHERE), (16, 1.2, ZERO)]
)
def test_exact_passages_have_the_law_of_chains(n, nu, start):
    """Mean by standard errors and law by Kolmogorov and Smirnov; ten per cent off is seen."""
    runs, system = 4000, ica(nu, start=start)
    found = hdica.simulate(system, times=[400.0 * n**2], n=n, seeds=runs, method="escape_times")
    assert np.all(found["first_seen"] == 1)
    times = found["first"].values
    law = hdica.escape_time(system, n=n)
    mean = float(law["mean"])
    assert abs(times.mean() - mean) < 4 * times.std() / math.sqrt(runs)
    assert times.std() == pytest.approx(float(law["sd"]), rel=0.08)

    def reached(at):
        return 1 - np.interp(at / mean, law["age"], law["survival"])

    assert stats.kstest(times, reached).pvalue > 1e-3
    assert stats.kstest(times * 1.1, reached).pvalue < 1e-3
    limit = float(hdica.escape_time(system)["mean"])
    assert abs(times.mean() - limit) > 4 * times.std() / math.sqrt(runs)


@pytest.mark.deep
def test_as_n_grows_the_exact_time_is_that_of_the_limit():
    """At nu = 1 from Q = 0; the distance falls as 1/n."""
    limit = float(hdica.escape_time(ica(1.0))["mean"])
    off = {n: float(hdica.escape_time(ica(1.0), n=n)["mean"]) / limit - 1 for n in (100, 200, 400)}
    assert off[400] < 0.05
    assert off[100] / off[200] == pytest.approx(2, rel=0.2)
    assert off[200] / off[400] == pytest.approx(2, rel=0.1)


def test_the_limit_is_that_of_the_hebbian_rule():
    trap = hdica.HebbianICA(sources=["uniform"], sigma=[-1], nu=4.0, start="zero")
    one, other = hdica.escape_time(ica(4.0, "uniform")), hdica.escape_time(trap)
    assert float(one["mean"]) == float(other["mean"])
    assert float(one["nu_optimal"]) == other["nu_optimal"].item()
    assert float(one["sd"]) == other["pair_sd"].item()


@pytest.mark.deep
def test_the_diffusion_at_n_tends_to_the_limit_and_is_off_where_the_barrier_is_high():
    """The exact one-step moments at n = 100: 1.8962, 42.42 and 2086 for nu = 1, 3 and 4."""
    for nu, mean in ((1.0, 1.89622), (3.0, 42.4183), (4.0, 2085.75)):
        found = hdica.escape_time(ica(nu, "uniform"), n=100, method="diffusion")
        assert float(found["mean"]) == pytest.approx(mean, rel=1e-5)
        assert found.attrs["accuracy"] == "approximate"
    large = hdica.escape_time(ica(1.0, "uniform"), n=20_000, method="diffusion")
    assert float(large["mean"]) == pytest.approx(
        float(hdica.escape_time(ica(1.0, "uniform"))["mean"]), rel=2e-3
    )


def test_tau_and_nu_are_two_units_at_n():
    one = hdica.escape_time(hdica.OnlineICA(tau=0.04, source="rademacher", start=ZERO), n=50)
    assert float(one["mean"]) == float(hdica.escape_time(ica(2.0), n=50)["mean"])


def test_a_start_inside_is_sooner_and_a_threshold_matters():
    whole = float(hdica.escape_time(ica(), n=40)["mean"])
    start = {"overlap": -0.6, "exact": True}
    assert float(hdica.escape_time(ica(), n=40, start=start)["mean"]) < 0.7 * whole
    assert float(hdica.escape_time(ica(), n=40, threshold=0.6)["mean"]) < whole


@pytest.mark.parametrize(
    ("given", "call", "sentence"),
    [
        ({"nu": None, "tau": 0.1}, {}, "tau = 0.1 is not allowed .*give nu"),
        ({"nu": "1/(1 + t)"}, {}, "nu = .* is not allowed .*a constant step size"),
        ({"start": {"overlap": 0.5}}, {"n": 40}, r"start = .* is not allowed .*exact: true"),
        ({"start": {"overlap": 0.5, "exact": True}}, {}, "start = .* is not allowed"),
        ({"nonlinearity": "-x**3"}, {}, "take its negative, or sign = 'auto'"),
        ({"nonlinearity": "-x**3"}, {"n": 40, "method": "diffusion"}, "take its negative"),
        ({"regularizer": "0.1*sign(x)"}, {"n": 40}, "only for the regularizers 0 and beta"),
        ({"batch": 3}, {"n": 40}, "batch = 3 is not allowed"),
        ({}, {"n": 2}, "n: 2 is not allowed|n = 2"),
        ({}, {"method": "exact"}, "method = 'exact' is not allowed .*allowed: auto, limit"),
        ({}, {"n": 40, "method": "limit"}, "allowed: auto, exact, diffusion"),
    ],
)
def test_refusals_say_what_is_allowed(given, call, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.escape_time(ica(**given), **call)


def test_a_sign_chosen_for_the_source_lets_it_escape():
    laplace = hdica.OnlineICA(
        nu=0.1, source="laplace", sign="auto", start=SPHERE, nonlinearity="tanh(x)"
    )
    found = hdica.escape_time(laplace)
    assert math.isfinite(float(found["mean"]))
    assert "-tanh" in found.attrs["chosen"] or "tanh" in found.attrs["chosen"]


@pytest.mark.deep
def test_the_ode_arrives_when_its_path_does_and_below_the_unstable_overlap_never():
    """From Q0 = 0.3, n = 100: small steps follow it; from nu = 2.27 on Q0 lies below Q_u."""
    start = {"overlap": 0.3, "exact": True}
    found = hdica.escape_time(ica(1.0, start=start), n=100, method="ode")
    time = float(found["mean"]) * 100**2
    path = hdica.limit(
        hdica.OnlineICA(tau=0.01, source="rademacher", start=start),
        times=[time - 1, time, time + 1],
    )
    low, at, high = path["Q"].values
    assert low < 0.8 < high
    assert at == pytest.approx(0.8, abs=1e-7)
    assert float(found["sd"]) == 0.0
    alive = found["survival"].values
    assert np.all(alive[found["age"] <= 1] == 1)
    assert np.all(alive[found["age"] > 1] < 1e-300)
    exact = [
        float(hdica.escape_time(ica(nu, start=start), n=100)["mean"])
        / float(hdica.escape_time(ica(nu, start=start), n=100, method="ode")["mean"])
        for nu in (0.25, 0.5, 1.0, 2.0, 2.4)
    ]
    assert exact[:2] == pytest.approx([1, 1], abs=0.02)
    assert exact[3] > 4
    assert exact[4] == 0.0
    never = hdica.escape_time(ica(1.0), n=100, method="ode")
    assert math.isinf(float(never["mean"]))
