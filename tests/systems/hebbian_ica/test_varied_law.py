"""Batches, adaptive signs and sources that move: the chain against all coordinates, in law."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from hdica.systems.hebbian_ica.rule import run_varied_chain, run_varied_vector
from hdica.systems.hebbian_ica.system import HebbianICA, rule
from tests.systems.hebbian_ica.cases import stream_of
from tests.systems.hebbian_ica.test_law import LEVEL, marginals

COUNT = 700
PAIR = {
    "sources": ["uniform", "laplace"],
    "projections": 2,
    "start": {"overlap": [[0.7, 0.2], [-0.1, 0.6]]},
}
# A system, n, and steps: long enough for every option to tell.
CASES = {
    "adaptive, K1 M1, n = 5": (
        {"sigma": "adaptive", "eta": 0.02, "nonlinearity": "tanh(x)", "start": {"overlap": 0.8}},
        5,
        60,
    ),
    "adaptive, K2 M2, n = 12": (
        PAIR | {"sigma": "adaptive", "nonlinearity": "tanh(x)", "eta": 0.02},
        12,
        120,
    ),
    "batch of 3, K1 M1, n = 5": (
        {"sigma": [-1], "batch": 3, "eta": 0.02, "alpha": 0.9, "start": {"overlap": 0.9}},
        5,
        40,
    ),
    "batch of 3, K2 M2, n = 6": (
        PAIR | {"sigma": [1, -1], "batch": 3, "nonlinearity": "tanh(x)", "eta": 0.1},
        6,
        60,
    ),
    "batch of 2, K3 M2, n = 6 (rest of one)": (
        {
            "sources": ["uniform", "rademacher"],
            "projections": 3,
            "sigma": [1, -1, 1],
            "batch": 2,
            "nonlinearity": "tanh(x)",
            "eta": 0.08,
        },
        6,
        60,
    ),
    "signs jump, K1 M1, n = 8": (
        {
            "sigma": {"steps": {"times": [4.0], "values": [[1], [-1]]}},
            "eta": 0.005,
            "start": {"overlap": 0.9},
        },
        8,
        64,
    ),
    "drift, K1 M1, n = 4": (
        {"sigma": [-1], "eta": 0.01, "motion": {"drift": 0.3}, "start": {"overlap": 0.9}},
        4,
        12,
    ),
    "drift and a jump, K2 M2, n = 7": (
        PAIR
        | {
            "sigma": [-1, 1],
            "eta": 0.002,
            "motion": {"drift": 0.1, "jumps": {"times": [3.0], "share": 0.7}},
        },
        7,
        35,
    ),
}


def runs(run, given, n, steps, label):
    problem, times = rule(HebbianICA(**given)), np.array([steps / n])
    found = [run(problem, times, n, stream_of(s, n, label)) for s in range(COUNT)]
    kept = [values for values, diverged in found if not diverged]
    assert len(kept) > 0.99 * COUNT
    return marginals(*(np.stack([values[name][0] for values in kept]) for name in ("R", "Q")))


@cache
def vectors(name):
    return runs(run_varied_vector, *CASES[name], "vector")


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_chain_and_vector_are_equal_in_law(name):
    vector, chain = vectors(name), runs(run_varied_chain, *CASES[name], "chain")
    for one, other in zip(vector.T, chain.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > LEVEL
        low, high = np.quantile(np.concatenate([one, other]), [0.005, 0.995])
        cut, also = np.clip(one, low, high), np.clip(other, low, high)
        assert stats.ttest_ind(cut, also, equal_var=False).pvalue > LEVEL
        assert stats.levene(cut, also).pvalue > LEVEL
    # Marginals cannot tell how the entries hang together; combinations of their ranks can.
    scale = np.median(np.abs(vector - np.median(vector, axis=0)), axis=0) + 1e-300
    for weights in np.random.default_rng(1).standard_normal((3, vector.shape[1])):
        one, other = (np.tanh(law / scale) @ weights for law in (vector, chain))
        assert stats.ks_2samp(one, other).pvalue > LEVEL


WRONG = {
    "a sign that does not adapt": ("adaptive, K1 M1, n = 5", {"sigma": [1]}),
    "single samples, one projection": ("batch of 3, K1 M1, n = 5", {"batch": 1}),
    "single samples": ("batch of 3, K2 M2, n = 6", {"batch": 1}),
    "signs that jump half as late again": (
        "signs jump, K1 M1, n = 8",
        {"sigma": {"steps": {"times": [6.0], "values": [[1], [-1]]}}},
    ),
    "half the drift": (
        "drift, K1 M1, n = 4",
        {"motion": {"drift": 0.15}},
    ),
    "a jump that takes less": (
        "drift and a jump, K2 M2, n = 7",
        {"motion": {"drift": 0.1, "jumps": {"times": [3.0], "share": 0.2}}},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_comparison_notices_what_is_wrong(name):
    """Negative controls of the test above."""
    case, change = WRONG[name]
    given, n, steps = CASES[case]
    vector, chain = vectors(case), runs(run_varied_chain, given | change, n, steps, "chain")
    assert min(stats.ks_2samp(*pair).pvalue for pair in zip(vector.T, chain.T, strict=True)) < LEVEL
