"""Averages of rough nonlinearities against adaptive quadrature, and what inherits their errors."""

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.laws import composite_rule, part_edges
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import averages, gain_at, power_at
from hdica.limits.numerics.series import Halves, fitted, joined
from tests.limits.independent_averages import FUNCTIONS, gain_and_power

SPARSE = {"bernoulli_gaussian": 0.05}
POINTS = [
    ("tanh(5*x)", SPARSE, 0.5),
    ("tanh(x)", SPARSE, 0.98),
    ("atan(3*x)", {"chi2": 1}, 0.6),
    ("tanh(3*x)", "uniform", 0.2),
    ("tanh(10*x)", "uniform", 0.2),
    ("sign(x)", "laplace", 0.7),
    ("sign(x)", SPARSE, 0.95),
]


@pytest.mark.deep
@pytest.mark.parametrize(("text", "source", "q"), POINTS, ids=str)
def test_averages_of_rough_functions_against_adaptive_quadrature(text, source, q):
    f, law = parse_formula(text), make_source(source)
    function, jumps, scale = FUNCTIONS[text]
    want = gain_and_power(function, source, q, jumps, scale)
    known = averages(f, law)
    for here, at, series in zip(want, (gain_at, power_at), (known.gain, known.power), strict=True):
        value, error = at(f, law, q)
        assert value == pytest.approx(here, abs=3e-11)
        assert error < 1e-11
        assert float(series(q)) == pytest.approx(value, abs=1e-11)


def test_the_number_that_was_wrong():
    # Fixed nodes gave -0.2701876.
    value, error = gain_at(parse_formula("tanh(5*x)"), make_source(SPARSE), 0.5)
    assert value == pytest.approx(-0.270839252321, abs=2e-12)
    assert error < 1e-11


def test_the_limit_of_a_sparse_source_is_that_of_chains():
    """0.67151 +- 4.5e-12 with fixed nodes; chains at n = 10^5 give 0.678."""
    system = hdica.OnlineICA(
        tau=0.4,
        source=SPARSE,
        nonlinearity="tanh(5*x)",
        start={"overlap": 0.3, "exact": True},
    )
    found = hdica.limit(system, times=[0, 10])
    chains = hdica.simulate(system, n=20_000, times=[0, 10], seeds=range(24))["Q"][:, -1]
    error = float(chains.std(ddof=1)) / math.sqrt(chains.size)
    assert error < 5e-3
    assert abs(float(chains.mean()) - float(found["Q"][-1])) < 4 * error
    assert abs(float(chains.mean()) - 0.67151) > 1e-3 or error > 1e-3
    assert float(found["Q"][-1]) == pytest.approx(0.67758686, abs=1e-7)
    assert float(found["Q_error"][-1]) < 1e-10


def test_a_fixed_point_and_a_transition_that_were_wrong():
    system = hdica.OnlineICA(tau=0.3, source=SPARSE, nonlinearity="tanh(x)")
    found = hdica.fixed_points(system)
    top = found.isel(fixed_point=-1)
    function, jumps, scale = FUNCTIONS["tanh(x)"]
    q = float(top["Q"])
    assert q == pytest.approx(0.9951141, abs=1e-7)  # 0.9951025 with fixed nodes
    gain, power = gain_and_power(function, SPARSE, q, jumps, scale)
    drift = -0.3 * (1 - q * q) * gain - 0.3**2 * q * power / 2
    assert abs(drift) < 1e-11
    assert float(top["error"]) < 1e-11
    sharp = hdica.critical(system.model_copy(update={"nonlinearity": "tanh(5*x)"}), "tau")
    value, at = float(sharp["value"][0]), float(sharp["Q"][0])
    gain, power = gain_and_power(*_sharp(at))
    assert value == pytest.approx(-2 * (1 - at * at) * gain / (at * power), abs=1e-9)
    assert value == pytest.approx(1.0341816, abs=1e-7)  # 1.0333518 with fixed nodes
    assert float(sharp["error"][0]) < 1e-10


def _sharp(q):
    function, jumps, scale = FUNCTIONS["tanh(5*x)"]
    return function, SPARSE, q, jumps, scale


@pytest.mark.deep
def test_sign_is_found_with_every_source():
    """It was refused with a Laplace source: the gain has a corner at |Q| = 1."""
    for source in ("laplace", "uniform", "rademacher", {"chi2": 2}, {"student": 5}):
        known = averages(parse_formula("sign(x)"), make_source(source))
        assert isinstance(known.gain, Halves)
        assert known.gain_error < 1e-11
        assert float(known.power(0.3)) == pytest.approx(1.0, abs=1e-13)
    # Rademacher: <c sign(u)> = erf(Q/(s sqrt 2)), and u has density phi(Q/s)/s at zero.
    q = 0.7
    s = math.sqrt(1 - q * q)
    want = math.erf(q / s / math.sqrt(2)) - q * 2 * math.exp(-((q / s) ** 2) / 2) / s / math.sqrt(
        2 * math.pi
    )
    rademacher = averages(parse_formula("sign(x)"), make_source("rademacher"))
    assert float(rademacher.gain(q)) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(
    "text", ["tanh(x)", "sin(x)", "x*exp(-x**2/2)", "x*abs(x)", "x*cos(x)", "sign(x)"]
)
def test_a_normal_source_is_the_null_control(text):
    """Nothing is learned from a normal source: the gain is zero, relative to nothing."""
    system = hdica.OnlineICA(
        tau=0.2, source="gaussian", nonlinearity=text, start={"overlap": 0.6, "exact": True}
    )
    f = parse_formula(text)
    known = averages(f, make_source("gaussian"))
    assert np.all(known.gain(np.linspace(-1, 1, 9)) == 0.0)
    found = hdica.limit(system, times=[0.0, 5.0])
    # dQ/dt = -tau^2 Q <f(z)^2>/2, whatever Q.
    power = power_at(f, make_source("gaussian"), 0.0)[0]
    decayed = 0.6 * math.exp(-0.04 * power / 2 * 5)
    assert float(found["Q"][-1]) == pytest.approx(decayed, abs=float(found["Q_error"][-1]))
    assert hdica.fixed_points(system)["Q"].values.tolist() == [0.0]
    assert hdica.critical(system)["value"].size == 0


@pytest.mark.deep
def test_averages_that_refinement_does_not_find_are_refused(monkeypatch):
    monkeypatch.setattr("hdica.limits.averages.double_average.MOST_POINTS", 1)
    with pytest.raises(HdicaError, match="known no better than"):
        averages(parse_formula("sin(9*x)"), make_source({"student": 2.2}))


@pytest.mark.deep
def test_hebbian_averages_refine_too_and_convert_keeps_its_promise():
    """One projection and one source are online ICA, for a rough nonlinearity as well."""
    hebbian = hdica.HebbianICA(
        sources=[SPARSE],
        nonlinearity="tanh(5*x)",
        sigma=[1],
        mu=0.4,
        start={"overlap": 0.3},
    )
    other = hdica.convert(hebbian, hdica.OnlineICA)
    one = hdica.limit(hebbian, times=[0, 10])
    two = hdica.limit(other, times=[0, 10])
    bar = float(one["R_error"][-1, 0, 0]) + float(two["Q_error"][-1])
    assert abs(float(one["R"][-1, 0, 0])) == pytest.approx(abs(float(two["Q"][-1])), abs=bar)
    assert bar < 1e-10


@pytest.mark.parametrize(
    "spec",
    [
        "uniform",
        "laplace",
        SPARSE,
        {"student": 2.5},
        {"student": 1e5},
        {"chi2": 0.1},
        {"chi2": 300},
        {"scipy": "arcsine"},
        {"scipy": "gamma", "a": 0.3},
    ],
    ids=str,
)
def test_parts_of_a_law_have_its_moments(spec):
    source = make_source(spec)
    rule = composite_rule(source.law, np.array([-0.1, 0.3]))
    assert float(rule.weights.sum()) == pytest.approx(1, abs=1e-13)
    assert float(rule.mean(rule.points)) == pytest.approx(0, abs=1e-13)
    assert float(rule.mean(rule.points**2)) == pytest.approx(1, abs=1e-12)
    assert all(part_edges(part).size < 200 for part in source.law.parts)
    for part in source.law.parts:
        edges = part_edges(part)
        inside = np.linspace(edges[0], edges[-1], 4001)[1:-1]
        inside = inside[part.mass(inside) > 0.02 * part.mass(inside).max()]
        # So near an edge of the support that c rounds to it, there is no way back.
        inside = inside[np.abs(part.point(inside) - part.point(edges[:1])) > 1e-4]
        assert part.place(part.point(inside)) == pytest.approx(inside, abs=1e-8, rel=1e-8)


def test_series_on_halves_know_their_error():
    """A corner at either end of a half costs nothing, one at Q = 0 neither."""

    def function(q):
        value = abs(q) ** 1.5 + math.sqrt(max(0.0, 1 - q * q))
        return np.array([value]), np.array([1e-16]), np.array([abs(value)])

    (known,) = joined(function, (1,))
    q = np.linspace(-1, 1, 301)
    true = np.abs(q) ** 1.5 + np.sqrt(np.maximum(0.0, 1 - q * q))
    off = np.abs(known.function(q) - true).max()
    assert off <= known.error < 1e-6
    smooth = fitted(lambda q: q**3 - q, 40, zero=1)
    assert smooth(np.array([-0.4, 0.0, 0.7])) == pytest.approx([0.336, 0.0, -0.357], abs=1e-14)
    assert smooth.deriv()(0.5) == pytest.approx(3 * 0.25 - 1, abs=1e-12)
    assert smooth(1e-9) == pytest.approx(-1e-9, rel=1e-12)
