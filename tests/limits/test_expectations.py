import json
import math
from pathlib import Path

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages import expectations
from hdica.limits.averages.expectations import averages, gain_at, power_at
from hdica.limits.numerics.compiled import clenshaw
from hdica.limits.numerics.series import adaptive, interpolate, real_roots

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/online_ica.json").read_text())
FORMULA = {
    "cubic": "x**3",
    "tanh": "tanh(x)",
    "He3": "x**3 - 3*x",
    "gauss": "x*exp(-x**2/2)",
    "square": "x**2",
}


def golden_source(row):
    match row["source"]:
        case "bernoulli_gauss":
            return {"bernoulli_gaussian": row["p"]}
        case "student":
            return {"student": row["nu"]}
        case "exponential":
            return {"chi2": 2}
    return row["source"]


ROWS = [r for r in GOLDEN["ica_general_f"]["rows"] if r["source"] != "student"]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['f']}-{r['source']}")
def test_averages_match_independent_numbers(row):
    found = averages(parse_formula(FORMULA[row["f"]]), make_source(golden_source(row)))
    for q, value in row["vals"].items():
        scale = max(1.0, abs(value["Lambda_over_tau2"]))
        assert found.gain(float(q)) == pytest.approx(value["G_over_tau"], abs=1e-12 * scale)
        assert found.power(float(q)) == pytest.approx(value["Lambda_over_tau2"], rel=1e-12)


def test_heavy_tails_are_followed_far_out():
    row = next(r for r in GOLDEN["ica_general_f"]["rows"] if r["source"] == "student")
    f, source = parse_formula("tanh(x)"), make_source(golden_source(row))
    for q, value in row["vals"].items():
        gain, power = gain_at(f, source, float(q)), power_at(f, source, float(q))
        assert gain[0] == pytest.approx(value["G_over_tau"], abs=1e-12)
        assert power[0] == pytest.approx(value["Lambda_over_tau2"], abs=1e-12)


@pytest.mark.parametrize("source", ["rademacher", "uniform", "laplace", {"chi2": 2}], ids=str)
def test_closed_form_of_polynomials_equals_quadrature(source):
    f, law = parse_formula("x**3 - 0.4*x**2 + x"), make_source(source)
    found = averages(f, law)
    for q in (-1.0, -0.6, 0.0, 0.3, 0.97, 1.0):
        assert found.gain(q) == pytest.approx(gain_at(f, law, q)[0], abs=1e-9)
        assert found.power(q) == pytest.approx(power_at(f, law, q)[0], rel=1e-11)


def test_quadrature_respects_kinks():
    # f = u|u| with a sign source: <f^2> = <u^4> is a polynomial average without any kink.
    law = make_source("rademacher")
    kinked, smooth = parse_formula("x*abs(x)"), parse_formula("x**2")
    for q in (0.0, 0.4, 0.9):
        one, other = power_at(kinked, law, q)[0], power_at(smooth, law, q)[0]
        assert one == pytest.approx(other, rel=1e-13)
    # <c u|u|> - Q <2|u|> by direct integration in one dimension at Q = 0.4.
    from scipy.integrate import quad

    s, q = math.sqrt(1 - 0.16), 0.4

    def integrand(e, c):
        u = c * q + e * s
        return (c * u * abs(u) - q * 2 * abs(u)) * math.exp(-e * e / 2) / math.sqrt(2 * math.pi)

    exact = sum(
        0.5 * quad(integrand, -12, 12, args=(c,), points=[-c * q / s], epsabs=1e-13)[0]
        for c in (-1, 1)
    )
    assert gain_at(kinked, law, q)[0] == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize(
    ("f", "source"),
    [("x**3", {"student": 5}), ("x*abs(x)", {"student": 3}), ("x**2", {"student": 3})],
)
def test_infinite_averages_are_refused(f, source):
    with pytest.raises(HdicaError, match="the limit does not exist"):
        averages(parse_formula(f), make_source(source))


def test_series_are_evaluated_and_rooted():
    series, tail = adaptive(lambda x: math.exp(x) * math.sin(5 * x))
    assert tail < 1e-12
    for x in (-1.0, -0.3, 0.77, 1.0):
        value = clenshaw(np.ascontiguousarray(series.coef), x)
        assert value == pytest.approx(math.exp(x) * math.sin(5 * x), abs=1e-13)
    assert real_roots(series) == pytest.approx([-math.pi / 5, 0, math.pi / 5], abs=1e-13)
    assert real_roots(interpolate(lambda x: x * x + 0.1, 4)).size == 0


def test_the_work_of_all_overlaps_together_is_bounded(monkeypatch):

    f, source = parse_formula("tanh(5*x)"), make_source("laplace")
    whole = expectations.averages(f, source)
    expectations.averages.cache_clear()
    monkeypatch.setattr(expectations, "MOST_POINTS", 1)
    with pytest.raises(HdicaError, match="known no better than"):
        expectations.averages(f, source)
    monkeypatch.undo()
    assert np.isfinite(whole.gain_error)
