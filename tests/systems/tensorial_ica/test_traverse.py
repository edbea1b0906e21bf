"""Traverse times of the three stages."""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import hdica
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.fluctuation import first_order_level
from hdica.systems.tensorial_ica.rule import moments_of
from hdica.systems.tensorial_ica.transient import time_to
from hdica.systems.tensorial_ica.traverse import (
    escape_asymptote,
    escape_constant,
    escape_law,
    escape_width,
    floor_time,
    normals,
    uniform_asymptote,
    uniform_law,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())
RADEMACHER = moments_of(make_source("rademacher"))
UNIFORM = moments_of(make_source("uniform"))


def test_golden_escapes_from_a_maximiser():
    for key, case in GOLDEN["lj_escape_from_max"]["cases"].items():
        d, eta = re.fullmatch(r"maxstart_d(\d+)_eta(.*)", key).groups()
        law = escape_law(RADEMACHER, int(d), float(eta))
        assert law.mean == pytest.approx(case["th"], rel=5e-3)  # its own sampling error
        assert law.error < 1e-3 * law.mean
    case = GOLDEN["lj_escape_from_max"]["cases"]["maxstart_d5_eta2e-05"]
    assert abs(escape_law(RADEMACHER, 5, 2e-5).mean - case["sim"]) < 3 * case["se"]


def test_escapes_tend_to_a_quarter_of_d_log_eta():
    for moments, d in ((RADEMACHER, 10), (UNIFORM, 6), (UNIFORM, 2)):
        law = [escape_law(moments, d, eta) for eta in (1e-6, 1e-14)]
        slope = (law[1].mean - law[0].mean) / math.log(1e8)
        assert slope == pytest.approx(d / 4, rel=5e-3)
        assert law[1].mean == pytest.approx(escape_asymptote(moments, d, 1e-14), abs=2e-4)
        assert escape_constant(moments, d)[1] < 0.01


def test_escapes_along_one_axis_by_quadrature():
    """For d = 2 the closed form is one integral over one normal number."""
    width = escape_width(UNIFORM, 2, 1e-4)

    def weighted(z):
        start = 0.5**0.5 + width / 2**0.5 * np.array([z, -z])
        return float(time_to(start, 1 / 3)) * 2 * norm.pdf(z)

    expected = quad(weighted, 0, 9, points=[0.01, 0.1, 1])[0]
    law = escape_law(UNIFORM, 2, 1e-4)
    assert abs(law.mean - expected) < 4 * law.error < 0.05


def test_random_signs_on_two_axes_never_leave():
    """y = (Z1 + Z2)/sqrt 2 or Z1 - Z2 vanishes: no step has a tangent part."""
    law = escape_law(RADEMACHER, 2, 1e-3)
    assert law.mean == math.inf
    assert math.isnan(law.error)
    assert law.quantiles((0.5,))[0].tolist() == [math.inf]
    assert escape_constant(RADEMACHER, 2)[0] == math.inf


def test_golden_times_from_uniform_starts():
    for key, case in GOLDEN["lj_warm_time_uniform_init_ODE"]["cases"].items():
        law = uniform_law(int(key.removeprefix("ode_warm_time_d")))
        found, errors = law.quantiles((0.05, 0.5, 0.95, 0.99))
        expected = [case[f"q{q}"] for q in ("05", "50", "95", "99")]
        assert law.mean == pytest.approx(case["mean"], rel=0.02)
        assert found == pytest.approx(expected, rel=0.05)
        assert np.all(errors <= 0.02 * np.maximum(found, 1.0))


def test_errors_are_those_of_a_fresh_sample():
    rng, law = np.random.default_rng(5), uniform_law(10)
    fresh = time_to(rng.standard_normal((40_000, 10)), 1 / 3)
    error = math.hypot(law.error, fresh.std() / 200)
    assert abs(law.mean - fresh.mean()) < 4 * error
    assert law.error < 0.01 * law.mean
    assert np.all(normals(10) == normals(10))


def test_the_asymptote_is_slow():
    ratios = [uniform_law(d).mean / uniform_asymptote(d) for d in (10, 100, 1000)]
    assert ratios == pytest.approx([2.30, 1.97, 1.51], abs=0.04)


def test_a_thousand_dimensions_take_seconds():
    uniform_law.cache_clear()
    began = time.process_time()
    assert uniform_law(1000).mean == pytest.approx(54.5, abs=1.0)
    assert time.process_time() - began < 20


def test_share_that_has_arrived():
    law = uniform_law(20)
    quantiles, _ = law.quantiles((0.05, 0.5, 0.99))
    assert law.reached(quantiles) == pytest.approx(np.array([0.05, 0.5, 0.99]), abs=1e-3)
    assert law.reached(np.array([-1.0, 1e9])).tolist() == [0.0, 1.0]


def test_the_three_stages():
    eta, d = 1e-5, 10
    problem = {"dimension": d, "source": "rademacher", "eta": eta}
    critical = hdica.traverse_times(hdica.TensorialICA(**problem, start="maximiser"))
    uniform = hdica.traverse_times(hdica.TensorialICA(**problem))
    unit, floor = 1 / (2 * eta), first_order_level(RADEMACHER, d, eta)
    assert critical["N1"] == pytest.approx(unit * escape_law(RADEMACHER, d, eta).mean)
    assert uniform["N2"] == pytest.approx(unit * uniform_law(d).mean)
    for found in (critical, uniform):
        assert found["N3"] == pytest.approx(unit / 2 * math.log(1 / 3 / floor))
    assert critical["N1"] > uniform["N2"] > 0
    # The orders of the paper say nothing of constants: 1/4, 1/(4 ln d) and 1/2.
    assert critical["N1_order"] == pytest.approx(float(critical["N1"]), rel=0.05)
    assert escape_asymptote(RADEMACHER, d, eta) == pytest.approx(
        d / 4 * math.log(1 / eta) + escape_constant(RADEMACHER, d)[0]
    )


def test_the_stages_from_a_given_start_and_support():
    problem = {"dimension": 3, "source": "uniform", "eta": 1e-4}
    unit, v = 1 / (UNIFORM.beta * 1e-4), [0.8, 0.6, 0.0]
    found = hdica.traverse_times(hdica.TensorialICA(**problem, start={"v": v}))
    assert found["N2"] == pytest.approx(unit * float(time_to(np.array(v), 1 / 3)), rel=1e-12)
    assert found["N2_se"] == 0
    saddle = hdica.traverse_times(hdica.TensorialICA(**problem, start={"support": 2}))
    assert saddle["N1"] == pytest.approx(unit * escape_law(UNIFORM, 2, 1e-4).mean)
    tied = hdica.traverse_times(hdica.TensorialICA(**problem, start={"v": [0.6, 0.6, 0.52915]}))
    assert tied["N2"] == math.inf


def test_the_floor_may_be_reached_already():
    assert floor_time(0.1, 0.2) == 0
    assert floor_time(1.0, math.exp(-2)) == pytest.approx(1.0)
