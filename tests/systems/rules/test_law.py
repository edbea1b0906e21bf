"""Chains and all coordinates against plain NumPy at small n, where mistakes are seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import hdica
from tests.systems.rules.rules import PUBLISHED, plain, system

LEVEL = 1e-4
STEPS = [1, 6, 20]


def by(method: str, name: str, n: int, runs: int, first: int = 0) -> np.ndarray:
    """R and then P of runs, shape (runs, numbers): what moves, without what a start fixes."""
    times = [0, *(step / n for step in STEPS)]
    seeds = range(first, first + runs)
    found = hdica.simulate(system(name), n=n, times=times, seeds=seeds, method=method)
    names = ("Q", "P") if "Q" in found else ("R", "P")
    rows = [found[v].isel(time=slice(1, None)).transpose("seed", ...).values for v in names]
    return np.concatenate([row.reshape(runs, -1) for row in rows], axis=1)


def expected(name: str, n: int, runs: int, cross: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(20261128)
    rows = plain(name, n, STEPS, runs, rng, cross)
    return np.concatenate([row.reshape(runs, -1) for row in rows], axis=1)


def p_value(one: np.ndarray, other: np.ndarray) -> float:
    """The least p-value of Kolmogorov and Smirnov over the numbers, times their count.

    Numbers are rounded, so that runs that have not moved are ties for both.
    """
    values = [
        stats.ks_2samp(a, b).pvalue
        for a, b in zip(one.round(9).T, other.round(9).T, strict=True)
        if np.ptp(a) > 1e-8 or np.ptp(b) > 1e-8
    ]
    return float(min(1.0, len(values) * min(values)))


@pytest.mark.parametrize("name", PUBLISHED)
def test_chains_have_the_law_of_plain_runs(name: str) -> None:
    assert p_value(by("chain", name, 8, 400), expected(name, 8, 400)) > LEVEL


@pytest.mark.parametrize("name", ["regression", "symmetric"])
def test_other_noise_across_the_features_is_noticed(name: str) -> None:
    assert p_value(by("chain", name, 8, 1600), expected(name, 8, 1600, cross=1.5)) < LEVEL


@pytest.mark.parametrize("name", ["perceptron", "gram-schmidt"])
def test_all_coordinates_have_the_law_of_plain_runs(name: str) -> None:
    assert p_value(by("vector", name, 8, 200), expected(name, 8, 200)) > LEVEL


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "n"), [*((name, 6) for name in PUBLISHED), ("perceptron", 30), ("committee", 30)]
)
def test_both_have_the_law_of_plain_runs(name: str, n: int) -> None:
    runs = 3000
    chain, vector = by("chain", name, n, runs), by("vector", name, n, runs)
    reference = expected(name, n, runs)
    assert p_value(chain, reference) > LEVEL
    assert p_value(vector, reference) > LEVEL
    assert p_value(chain, vector) > LEVEL


@pytest.mark.deep
@pytest.mark.parametrize("name", ["perceptron", "regression"])
def test_the_smallest_dimension(name: str) -> None:
    runs = 4000
    assert p_value(by("chain", name, 3, runs), expected(name, 3, runs)) > LEVEL
    assert p_value(by("vector", name, 3, runs), expected(name, 3, runs)) > LEVEL


SPARSE = {"atoms": [0, 2], "weights": [3, 1]}


def seen(prior: object) -> tuple[np.ndarray, np.ndarray]:
    """Mean overlap at t = 1 and 3 and its standard error, of all coordinates at n = 800."""
    rule = hdica.OnlineRule(
        update="0.6*tanh(v - u)",
        entrywise="-0.18*sign(x)",
        normalise="norm",
        prior=prior,
        start={"overlap": 0.5},
    )
    runs = hdica.simulate(rule, n=800, times=[0, 1, 3], seeds=40, method="vector")["Q"]
    return runs.mean("seed").values[1:], runs.std("seed", ddof=1).values[1:] / 40**0.5


def test_a_sparse_feature_is_learned_as_in_the_limit_of_its_density() -> None:
    """Overlaps of 4e5 particles of the density's own equation; another prior has others."""
    limit = np.array([0.7139, 0.9423])
    mean, error = seen(SPARSE)
    assert np.all(np.abs(mean - limit) < 4 * error + 0.002)
    other, error = seen("gaussian")
    assert np.all(np.abs(other - limit) > 4 * error + 0.002)
