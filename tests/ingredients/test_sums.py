"""Sums of independent laws: moments, densities and samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdica.errors import HdicaError
from hdica.ingredients.laws import composite_rule
from hdica.ingredients.sources import make_source

PAIRS = [
    ("uniform", "laplace"),
    ("uniform", "uniform"),
    ("rademacher", "laplace"),
    ("gaussian", "uniform"),
    ("gaussian", "rademacher"),
    ({"chi2": 3}, "laplace"),
    ({"bernoulli_gaussian": 0.3}, "rademacher"),
    ({"bernoulli_gaussian": 0.3}, "laplace"),
    ({"scipy": "gamma", "a": 2}, "uniform"),
]


def sum_of(one, other):
    return make_source({"sum": [{"law": one, "weight": 0.7}, {"law": other, "weight": 0.3}]})


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_its_law_has_its_moments(one, other) -> None:
    source = sum_of(one, other)
    rule = composite_rule(source.law, np.empty(0))
    for order in range(7):
        assert rule.mean(rule.points**order) == pytest.approx(source.moment(order), abs=1e-8)
    assert source.moment(1) == 0
    assert source.moment(2) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_its_law_is_that_of_its_samples(one, other) -> None:
    source, rng = sum_of(one, other), np.random.default_rng(3)
    drawn = source.sample(rng, 20_000)
    weights = np.array([0.7, 0.3]) / np.hypot(0.7, 0.3)
    parts = [make_source(law).sample(rng, 20_000) for law in (one, other)]
    assert stats.ks_2samp(drawn, weights[0] * parts[0] + weights[1] * parts[1]).pvalue > 1e-4
    for at in (-1.3, -0.2, 0.6, 1.7):
        rule = composite_rule(source.law, np.array([at]))
        below = float(rule.weights[rule.points <= at].sum())
        assert np.mean(drawn <= at) == pytest.approx(below, abs=5 * 0.5 / 20_000**0.5)


def test_fourth_cumulants_add() -> None:
    source = sum_of("rademacher", "laplace")
    weights = np.array([0.7, 0.3]) ** 4 / (0.7**2 + 0.3**2) ** 2
    assert source.moment(4) - 3 == pytest.approx(weights @ [-2.0, 3.0])


def test_weights_by_name_can_be_swept_from_zero() -> None:
    assert make_source({"sum": {"rademacher": 0.7, "laplace": 0.3}}) is sum_of(
        "rademacher", "laplace"
    )
    assert make_source({"sum": {"uniform": 1, "laplace": 0}}) is make_source("uniform")
    for wrong in (
        {}, {"uniform": 0, "laplace": 0}, {"uniform": True, "laplace": 1}, {"laplace": 0.1},
        {"uniform": -1, "laplace": 1}, {"unform": 1, "laplace": 1},
    ):  # fmt: skip
        with pytest.raises(HdicaError):
            make_source({"sum": wrong})


def test_three_laws_and_one() -> None:
    three = [{"law": law, "weight": 1} for law in ("uniform", "laplace", "rademacher")]
    source = make_source({"sum": three})
    rule = composite_rule(source.law, np.empty(0))
    assert rule.mean(rule.points**4) == pytest.approx(source.moment(4), abs=1e-10)
    assert make_source({"sum": three[:1]}) is make_source("uniform")
    assert (
        make_source({"sum": [{"law": "gaussian", "weight": w} for w in (1, 2)]}).label == "gaussian"
    )
