"""The rivals of the benchmark of tensorial ICA take the steps that ours take: equal laws."""

from functools import partial
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import ks_2samp

from benchmarks.harness import missing
from benchmarks.tensorial import RIVALS, Case, anywhere, cases, ends, ours, theirs

SEEDS, D, STEPS, ETA = 2000, 7, 300, 8e-3
MODULES = [
    pytest.param(rival.module, marks=pytest.mark.skipif(bool(missing(*rival.needs)), reason="left"))
    for rival in RIVALS
]


def steps_of(module, case, steps, eta=ETA, v=None, seed=7):
    rng = np.random.Generator(np.random.SFC64(seed))
    v = np.array([anywhere(case.d, rng) for _ in range(case.seeds)]) if v is None else v
    before = v.copy()
    advance = import_module(f"benchmarks.rivals.{module}").tensorial
    found = advance(v, steps, source=case.source, eta=eta, rng=rng)
    assert np.array_equal(v, before)
    assert np.max(np.abs(np.sum(found**2, axis=1) - 1)) < 1e-12
    return found


def seen(v):
    """Numbers whose laws are compared: the largest square, a coordinate, and a fourth power."""
    return np.max(v**2, axis=1), v[:, 0], np.sum(v**4, axis=1)


@pytest.mark.parametrize("source", ["rademacher", "uniform"])
@pytest.mark.parametrize("module", MODULES)
def test_rivals_have_our_law(module, source):
    case = Case(source, D, SEEDS)
    found, law = steps_of(module, case, STEPS), ends(case, STEPS, ETA, SEEDS)
    assert found.shape == law.shape
    for one, other in zip(seen(found), seen(law), strict=True):
        assert ks_2samp(one, other).pvalue > 1e-4


@pytest.mark.parametrize("source", ["rademacher", "uniform"])
@pytest.mark.parametrize("module", MODULES)
def test_another_step_size_has_another_law(module, source):
    case = Case(source, D, SEEDS)
    found, law = steps_of(module, case, STEPS, 1.4 * ETA), ends(case, STEPS, ETA, SEEDS)
    assert min(ks_2samp(a, b).pvalue for a, b in zip(seen(found), seen(law), strict=True)) < 1e-4


@pytest.mark.parametrize("module", MODULES)
def test_a_single_step_is_that_of_the_rule(module):
    """A step moves v by -eta y^3 Z: of signs, the same size along every axis; y is what is left."""
    case, eta = Case("rademacher", 70, 8), 0.01
    for _ in range(3):
        found = steps_of(module, case, 1, eta, np.tile(np.eye(70)[0], (8, 1)))
        # v = e_1 and Z_1 = +-1: y^3 Z_1 = 1, so v' = e_1 (1 - eta) -+ eta elsewhere.
        expected = eta / (1 - eta)
        np.testing.assert_allclose(np.abs(found[:, 1:] / found[:, :1]), expected, rtol=1e-12)
        assert np.all(found[:, 0] > 0)
        assert 0.3 < np.mean(found[:, 1:] > 0) < 0.7


@pytest.mark.parametrize("module", MODULES)
def test_length_one_is_kept_between_renewals(module):
    for steps in (1023, 1024, 1025, 2500):
        assert steps_of(module, Case("uniform", 65, 8), steps).shape == (8, 65)


def test_work_is_counted_in_coordinates_that_are_moved():
    case = Case("uniform", 20, 16)
    made = ours(case, 1e-3)
    steps = case.steps(1e-3, 0.3)
    assert made.work == 16 * 20 * steps
    assert made.run().shape == (16, 20)
    rival = theirs(RIVALS[0], case, 1e-3)
    assert rival.work == 16 * 20 * case.steps(1e-3, RIVALS[0].nanoseconds)
    assert isinstance(rival.run, partial)


def test_cases_are_those_of_many_seeds():
    full = cases(small=False)
    assert {(case.source, case.d) for case in full} >= {
        *(("rademacher", d) for d in (20, 100, 1000)),
        *(("uniform", d) for d in (20, 100)),
    }
    assert {case.seeds for case in full} == {64}
    assert len({case.label for case in full}) == len(full)
