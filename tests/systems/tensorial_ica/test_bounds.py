"""Bounds of the paper with explicit constants, their conditions, and what is predicted."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import gennorm

from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.bounds import (
    TAN_WARM,
    TAN_WARM_AUXILIARY,
    corollary_8,
    lemma_3,
    lemma_5,
    lemma_6,
    orlicz_bound,
    psi2_norm,
    theorem_4,
    theorem_7,
)
from hdica.systems.tensorial_ica.fluctuation import first_order_level
from hdica.systems.tensorial_ica.rule import moments_of
from hdica.systems.tensorial_ica.system import Constants, TensorialICA

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())
UNIFORM, RADEMACHER = (moments_of(make_source(name)) for name in ("uniform", "rademacher"))
RARE = moments_of(
    make_source({"discrete": {"values": [-10, 0, 10], "weights": [0.005, 0.99, 0.005]}})
)
B = 2.1855


@pytest.mark.parametrize("p", [1.0, 0.3, 0.01])
def test_orlicz_norm_of_normal_tails(p):
    """E exp(Z^2/c^2) = 1 - p + p/sqrt(1 - 2/(p c^2))."""
    source = make_source("gaussian" if p == 1.0 else {"bernoulli_gaussian": p})
    expected = math.sqrt(2 / p / (1 - (p / (1 + p)) ** 2))
    assert psi2_norm(source) == pytest.approx(expected, rel=1e-12)


def test_orlicz_norm_of_bounded_and_light_tails():
    rademacher, uniform = make_source("rademacher"), make_source("uniform")
    assert psi2_norm(rademacher) == pytest.approx(math.log(2) ** -0.5, rel=1e-12)
    assert orlicz_bound(rademacher) == pytest.approx(1.9614, abs=5e-5)
    assert orlicz_bound(uniform) == pytest.approx(2.1855, abs=5e-5)
    sd = gennorm.std(3)
    light = brentq(
        lambda c: quad(lambda z: 2 * gennorm.pdf(z, 3) * np.exp((z / sd / c) ** 2), 0, 9)[0] - 2,
        1.3,
        2,
    )
    source = make_source({"scipy": "gennorm", "beta": 3.0})
    assert psi2_norm(source) == pytest.approx(light, rel=1e-8)


@pytest.mark.parametrize(
    "spec", ["laplace", {"student": 9}, {"chi2": 4}, {"scipy": "gennorm", "beta": 1.5}], ids=str
)
def test_heavier_tails_than_gaussian_have_no_norm(spec):
    with pytest.raises(HdicaError, match="no finite psi_2 norm"):
        psi2_norm(make_source(spec))


def test_theorems_as_printed():
    m, d, steps = UNIFORM, 20, 1e7
    log, beta = math.log(steps), m.beta
    warm = theorem_4(m, B, d, steps, 0.5)
    assert warm.value == pytest.approx(B**4 / beta * math.sqrt(d * log**2 / steps))
    assert warm.eta == pytest.approx(log / (beta * steps))
    cold = theorem_7(m, B, d, steps, 0.1)
    assert cold.value == pytest.approx(B**4 / beta * math.sqrt(d**4 * log**2 / steps))
    assert cold.eta == pytest.approx(d * log / (beta * steps))
    both = corollary_8(m, B, d, steps, 0.1)
    assert (both.value, both.eta) == (warm.value, warm.eta)
    for bound in (warm, cold, both):
        assert bound.predicted**2 == pytest.approx(first_order_level(m, d, bound.eta))
        assert bound.predicted < bound.value


def test_constants_are_the_users():
    m, plain = UNIFORM, Constants()
    for name, factor in (("rate", 3.0), ("step_one", 2.0)):
        given = theorem_7(m, B, 20, 1e7, 0.1, dataclasses.replace(plain, **{name: factor}))
        known = theorem_7(m, B, 20, 1e7, 0.1)
        assert given.value / known.value == pytest.approx(factor if name == "rate" else 1)
        assert given.eta / known.eta == pytest.approx(factor if name == "step_one" else 1)
    with pytest.raises(HdicaError, match=r"bounds\.noise = 0 is not allowed"):
        TensorialICA(dimension=5, eta=1e-3, bounds={"noise": 0})


def test_scaling_conditions():
    d, epsilon = 20, 0.5
    three, four = d**3 / epsilon**2, d**4 / epsilon**2
    for bound, need in ((theorem_7, three), (corollary_8, four)):
        below, above = (bound(UNIFORM, B, d, f * need, epsilon) for f in (0.99, 1.01))
        assert (below.applies, above.applies) == (False, True)
        assert above.conditions[1][1] == pytest.approx(need)
    # T between d^3 and d^4 is where the two of them differ.
    assert not theorem_7(UNIFORM, B, 3, 1e9, 1e-3).applies  # d >= ln(1/epsilon) fails
    assert theorem_4(UNIFORM, B, 20, 21, TAN_WARM).applies
    assert not theorem_4(UNIFORM, B, 20, 21, TAN_WARM_AUXILIARY).applies
    strict = Constants(scaling=2.0)
    assert not theorem_4(UNIFORM, B, 20, 21, TAN_WARM, strict).applies


def test_lemma_3():
    m, d, eta, t = UNIFORM, 10, 1e-6, np.array([0, 10**5, 10**7])
    bound = lemma_3(m, B, d, eta, t, 0.5)
    noise = B**4 / math.sqrt(m.beta) * math.sqrt(d * eta)
    assert bound.value == pytest.approx(0.5 * (1 - eta * m.beta / 3) ** t + noise)
    assert bound.predicted[0] == pytest.approx(0.5)
    assert bound.predicted[-1] ** 2 == pytest.approx(first_order_level(m, d, eta), rel=1e-6)
    assert np.all(bound.predicted < bound.value)
    assert bound.conditions[0][1] == pytest.approx(
        B**8 / m.beta * d * math.log(1 / eta) ** 9, rel=1e-9
    )
    assert not bound.applies
    assert lemma_3(m, B, d, 1e-20, t, 0.5).applies


def test_lemma_6():
    m, d, eta, t = UNIFORM, 10, 1e-7, np.array([0.0, 1e8, 3e9])
    bound = lemma_6(m, B, d, eta, t, 0.5)
    first = math.sqrt(m.beta / B**8 * d / eta) * (1 - eta * m.beta / (2 * d)) ** t
    assert bound.value == pytest.approx(first + B**4 / math.sqrt(m.beta) * math.sqrt(d**3 * eta))
    assert bound.predicted.shape == (3,)
    need = B**8 / m.beta * d**2 / 0.25
    assert bound.conditions[0][1] == pytest.approx(need)
    assert lemma_6(m, B, d, 0.99 / need, t, 0.5).applies
    assert not lemma_6(m, B, d, 1.01 / need, t, 0.5).applies


def test_lemma_5_from_a_component_and_from_the_side():
    d, eta, steps = 20, 1e-4, 50
    unit = eta * math.sqrt(steps)
    bound = lemma_5(RADEMACHER, np.eye(d)[3], eta, steps)
    assert bound.value == pytest.approx(unit)
    assert bound.predicted == pytest.approx(np.full(19, math.sqrt(math.pi / 2) * unit))
    golden = {key: case["ratio"] for key, case in GOLDEN["lj_vessel"]["cases"].items()}
    assert golden["vessel_eta0.00025_tan0.0_x0.01"] < math.sqrt(math.pi / 2)
    # On the side the others have the tangent 1/2 together, in equal shares.
    u = np.append(1.0, np.full(d - 1, 0.5 / math.sqrt(d - 1)))
    side = lemma_5(RADEMACHER, u / np.linalg.norm(u), eta, steps)
    assert side.applies
    assert (side.predicted / unit) ** 2 / (math.pi / 2) == pytest.approx([4.512] * 19, rel=1e-3)
    # Simulated suprema over few steps are below that of a Brownian motion, by up to a quarter.
    for key in ("vessel_eta0.00025_tan0.5_x0.01", "vessel_eta0.001_tan0.5_x0.01"):
        assert 0.75 < golden[key] / math.sqrt(math.pi / 2 * 4.512) < 1


def test_lemma_5_by_short_runs():
    """The spread of one step of U around its mean."""
    rng, d, eta = np.random.default_rng(2), 4, 1e-4
    v = np.array([0.9, 0.3, -0.3, 0.1])
    v /= np.linalg.norm(v)
    z = rng.choice([-1.0, 1.0], (200_000, d))
    moved = v - eta * (z @ v)[:, None] ** 3 * z
    u = moved[:, 1:] / moved[:, :1]
    predicted = lemma_5(RADEMACHER, v, eta, 1).predicted
    assert u.std(axis=0) / eta == pytest.approx(predicted / eta / math.sqrt(math.pi / 2), rel=0.01)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: lemma_6(UNIFORM, B, 5, 2.0, np.zeros(1), 0.1), "eta = 2"),
        (lambda: lemma_3(RARE, B, 5, 0.04, np.zeros(1), 0.1), r"between 0 and 0\.0309"),
        (lambda: lemma_6(RARE, B, 2, 0.05, np.zeros(1), 0.1), r"between 0 and 0\.0412"),
    ],
)
def test_what_is_no_request_is_refused(call, match):
    with pytest.raises(HdicaError, match=match):
        call()
