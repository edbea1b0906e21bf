"""The rivals of the benchmark of Hebbian ICA take the steps that ours take: equal laws."""

from importlib import import_module

import numpy as np
import pytest
from scipy.stats import ks_2samp

import hdica
from benchmarks.hebbian import ALPHA, FORMULA, LEVEL, START, Case, cases, chains, full, watched
from benchmarks.rivals import numba_hebbian

N, STEPS, SEEDS = 100, 1000, 2000
# So large a step that a wrong noise or a wrong alpha would show.
MU = {"cubic": 0.06, "tanh": 0.8}


def rival(module, case, alpha=ALPHA):
    advance = import_module(f"benchmarks.rivals.{module}").hebbian
    r = np.tile(START * np.eye(case.size), (case.seeds, 1, 1))
    before = r.copy()
    found = advance(
        r,
        case.n,
        case.steps,
        phi=case.phi,
        sigma=FORMULA[case.phi][1],
        mu=case.mu,
        alpha=alpha,
        rng=np.random.Generator(np.random.SFC64(7)),
    )
    assert np.array_equal(r, before)
    return found


def ours(case, method="chain"):
    return hdica.simulate(
        case.system,
        n=case.n,
        times=[case.steps / case.n],
        seeds=range(case.seeds),
        method=method,
    ).R.values[:, 0]


@pytest.mark.deep
@pytest.mark.parametrize("phi", ["cubic", "tanh"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_rival_chains_have_our_law(size, phi):
    case = Case(size, phi, N, SEEDS, STEPS, MU[phi])
    law = ours(case)
    for module in ("numpy_hebbian", "numba_hebbian"):
        found = rival(module, case)
        assert found.shape == law.shape
        for i in range(size):
            for j in range(size):
                assert ks_2samp(found[:, i, j], law[:, i, j]).pvalue > 1e-4


@pytest.mark.deep
def test_another_step_size_has_another_law():
    case = Case(1, "cubic", N, SEEDS, STEPS, MU["cubic"])
    other = Case(1, "cubic", N, SEEDS, STEPS, 1.5 * MU["cubic"])
    for module in ("numpy_hebbian", "numba_hebbian"):
        assert ks_2samp(rival(module, other).ravel(), ours(case).ravel()).pvalue < 1e-6


def test_first_passages_have_our_law():
    n, nu, most = 30, 1.0, 100_000
    rng = np.random.Generator(np.random.SFC64(3))
    theirs = numba_hebbian.first_passages(600, n, most, nu=nu, level=LEVEL, rng=rng)
    found = np.array([p.first for p in watched(600, n, nu, most)()])
    for steps in (theirs, found):
        assert 0.1 < np.mean(steps == -1) < 0.5
        assert np.all((steps == -1) | ((steps >= 1) & (steps <= most)))
    ends = [np.where(steps < 0, most, steps) for steps in (theirs, found)]
    assert ks_2samp(*ends).pvalue > 1e-4


def test_work_is_counted_in_the_steps_that_are_made():
    case = Case(2, "cubic", 50, 3, 70)
    made = chains(case)
    assert made.work == 210
    assert made.run().step.values.tolist() == [0, 70]
    vector = full(case, 1e-5)
    assert vector.run().step.values[-1] == vector.work


def test_cases_go_up_to_four_projections_and_ten_thousand_dimensions():
    full_size = cases(small=False)
    assert {case.size for case in full_size} == {1, 2, 4}
    assert {case.n for case in full_size} == {100, 10**4}
    assert {case.phi for case in full_size} == {"cubic", "tanh"}
    assert len({case.label for case in full_size}) == len(full_size)
