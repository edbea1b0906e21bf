"""Noise of one step, departures and stationary levels."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space

from hdica.errors import HdicaError
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.fluctuation import (
    departure,
    diagonal_and_row,
    first_order_level,
    level_under,
    median_factor,
    noise_off_support,
    noise_on_support,
    second_moments,
    stationary,
)
from hdica.systems.tensorial_ica.rule import moments_of

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())
THREE = {"discrete": {"values": [-1.2, 0.0, 1.2], "weights": [1, 1, 1]}}
SKEWED = {"discrete": {"values": [-1.0, 0.3, 2.0], "weights": [5, 3, 2]}}


def moments(spec):
    return moments_of(make_source(spec))


def enumerated(source, v):
    """E y^6 Z Z' over all values of all components."""
    x, w = source.nodes.points, source.nodes.weights
    z = np.array(list(itertools.product(x, repeat=v.size)))
    p = np.array([np.prod(q) for q in itertools.product(w, repeat=v.size)])
    return (z * (p * (z @ v) ** 6)[:, None]).T @ z


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("rademacher", (0, 1, 1, -2, 16, -272)),
        ("uniform", (0, 9 / 5, 27 / 7, -6 / 5, 48 / 7, -432 / 5)),
        ("laplace", (0, 6, 90, 3, 30, 630)),
    ],
)
def test_moments_and_cumulants(spec, expected):
    m = moments(spec)
    assert (m.mu3, m.mu4, m.mu6, *m.cumulants[4::2]) == pytest.approx(expected, rel=1e-12)
    assert m.beta == pytest.approx(abs(expected[1] - 3))
    assert m.sign == np.sign(expected[1] - 3)


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("gaussian", "fourth moment of 3"),
        ({"student": 3.5}, "order 4, which the drift"),
        ({"student": 5}, "order 5, which the fluctuations"),
        ({"student": 7}, "order 7, which the noise"),
    ],
)
def test_sources_without_what_is_needed_are_refused(spec, match):
    with pytest.raises(HdicaError, match=match):
        moments(spec)


def test_a_moment_that_is_not_asked_for_may_be_infinite():
    m = moments_of(make_source({"student": 7}), order=6)
    assert m.mu6 == pytest.approx(15 * 5**3 / (5 * 3 * 1))
    assert np.isnan(m.cumulants[8])
    assert noise_off_support(m, 3) > 0


@pytest.mark.parametrize("spec", ["rademacher", THREE, SKEWED], ids=str)
def test_second_moments_by_enumeration(spec):
    v = np.array([0.5, -0.1, 0.7, 0.0, 0.3])
    v /= np.linalg.norm(v)
    expected = enumerated(make_source(spec), v)
    whole = second_moments(moments(spec), v)
    assert whole == pytest.approx(expected, abs=1e-12)
    for m in range(v.size):
        diagonal, row = diagonal_and_row(moments(spec), v, m)
        assert diagonal == pytest.approx(np.diag(whole), rel=1e-12)
        assert row == pytest.approx(whole[m], rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("spec", ["rademacher", THREE, SKEWED], ids=str)
def test_noise_at_critical_points_by_enumeration(spec):
    v = np.zeros(6)
    v[:4] = 0.5
    whole = enumerated(make_source(spec), v)
    inside = null_space(v[None, :4])
    found = inside.T @ whole[:4, :4] @ inside
    m = moments(spec)
    assert np.trace(found) / 3 == pytest.approx(noise_on_support(m, 4), rel=1e-12)
    if m.symmetric:
        assert found == pytest.approx(noise_on_support(m, 4) * np.eye(3), abs=1e-12)
    off = noise_off_support(m, 4)
    assert whole[4:] == pytest.approx(np.pad(off * np.eye(2), ((0, 0), (4, 0))), abs=1e-12)


def test_golden_noise_at_a_maximiser():
    for key, expected in GOLDEN["lj_ou_max"]["Sigma"].items():
        name, d = re.fullmatch(r"(\w+)_d(\d+)", key).groups()
        assert noise_on_support(moments(name), int(d)) == pytest.approx(expected, rel=1e-12)
    assert noise_on_support(moments("laplace"), 10**7) == pytest.approx(15, rel=1e-5)


def test_golden_departures():
    for key, case in GOLDEN["lj_ou_max"]["mc"].items():
        name, d = re.fullmatch(r"oumax_(\w+)_d(\d+)", key).groups()
        m = moments(name)
        x = m.beta * case["eta"] * np.array(case["times"])
        found = departure(m, int(d), int(d), case["eta"], x)
        assert found["inside"] == pytest.approx(np.array(case["th"]), rel=1e-12)
        # To first order in eta; its simulations are some percent above.
        assert found["deviation"] == pytest.approx(np.array(case["sim"]), rel=0.04)


def test_departures_of_every_support():
    m, x = moments("uniform"), np.array([0.0, 0.5, 3.0])
    for k in (1, 2, 5):
        found = departure(m, 5, k, 1e-4, x)
        assert (found["rate_inside"], found["rate_outside"]) == (2 / k, -1 / k)
        # dVar/dx = 2 r Var + eta Sigma/beta, by central differences.
        h = 1e-5
        low, high = (departure(m, 5, k, 1e-4, x[1:] + s) for s in (-h, h))
        for name, rate, noise in (
            ("inside", 2 / k, noise_on_support(m, max(k, 2))),
            ("outside", -1 / k, noise_off_support(m, k)),
        ):
            now, ends = found[name], (low[name], high[name])
            slope = (ends[1] - ends[0]) / (2 * h)
            if now.any():
                assert slope == pytest.approx(2 * rate * now[1:] + 1e-4 * noise / m.beta, rel=1e-6)
            assert now[0] == 0
        total = (k - 1) * found["inside"] + (5 - k) * found["outside"]
        assert 4 * found["deviation"] == pytest.approx(total)
    rest = departure(m, 5, 1, 1e-4, np.array([50.0]))["deviation"][0]
    assert 4 * rest == pytest.approx(first_order_level(m, 5, 1e-4), rel=1e-12)


def cases(name):
    for key, case in GOLDEN[name]["cases"].items():
        source, d, eta = re.fullmatch(r"(\w+)_d(\d+)_eta(.*)", key).groups()
        yield make_source(source), int(d), float(eta), case


def test_golden_stationary_levels():
    for source, d, eta, case in cases("lj_stationary_formula"):
        found = stationary(source, d, eta)
        expected = [case[key] for key in ("S0", "S_lin", "S_2")]
        assert [found.S0, found.S_lin, found.S2] == pytest.approx(expected, rel=1e-9)
        assert found.error < 1e-12 * found.S2


def test_stationary_levels_agree_with_simulations_and_the_first_order_does_not():
    for source, d, eta, case in cases("lj_stationary_mc"):
        found = stationary(source, d, eta)
        assert abs(found.S2 - case["sim"]) < 4 * case["se"]
        assert abs(found.S0 - case["sim"]) > 10 * case["se"]


def test_levels_tend_to_the_first_order():
    for spec in ("rademacher", "uniform", "laplace", {"student": 7}, SKEWED):
        source = make_source(spec)
        off = [stationary(source, 8, eta) for eta in (1e-7, 1e-8)]
        ratios = [abs(one.S2 / one.S0 - 1) for one in off]
        # Of Student's law E h^2/(1 + h Z)^2 tends to mu6 only as eta^(1/4).
        assert ratios[1] < ratios[0] < (0.2 if source.moment(8) == np.inf else 1e-3)
        assert off[1].median == pytest.approx(off[1].S2 * median_factor(8))


def test_first_correction_of_the_level():
    m, d = moments("rademacher"), 10**6
    found = stationary(make_source("rademacher"), d, 1e-11)
    slope = 15 * m.mu4 / m.mu6 - 1 + 5 / (d - 1)
    assert pytest.approx(slope * found.S0, rel=1e-3) == found.S2 / found.S0 - 1


def test_no_level_is_said():
    with pytest.raises(HdicaError, match="no stationary level"):
        stationary(make_source("rademacher"), 20, 0.01)
    with pytest.raises(HdicaError, match="across the equator"):
        stationary(make_source("uniform"), 3, 0.2)


@pytest.mark.parametrize(
    "spec",
    [1e-4, "1/(2*(t + 2000))", {"steps": {"times": [5000.0], "values": [2e-4, 5e-5]}}],
    ids=str,
)
def test_the_level_under_a_schedule(spec):
    m, schedule, d = moments("rademacher"), make_schedule(spec), 10
    now, path = 0.2, [0.2]
    for eta in schedule.value(np.arange(30_000.0)):
        now = (1 - 2 * m.beta * eta) * now + (d - 1) * m.mu6 * eta**2
        path.append(now)
    times = np.array([0, 100, 5000, 5001, 12_000, 30_000])
    found = level_under(m, d, schedule, 0.2, times)
    assert found == pytest.approx(np.array(path)[times], rel=2e-3)


def test_annealing_leaves_one_over_t():
    m, c = moments("uniform"), 1.0
    schedule = make_schedule(f"{c / m.beta}/(t + 50)")
    expected = c * c * 9 * m.mu6 / (m.beta**2 * (2 * c - 1))
    found = level_under(m, 10, schedule, 0.1, np.array([1e7]))
    assert 1e7 * found[0] == pytest.approx(expected, rel=2e-3)
