"""Everyone finds the same folds, ours as exactly as anyone."""

import importlib.util

import numpy as np
import pytest

from benchmarks import fold
from benchmarks.rivals import folds


@pytest.mark.parametrize("case", list(fold.CASES))
def test_the_rivals_equations_have_the_known_fold(case):
    """At the fold the start's branch has turned back: no solution beyond, two before."""
    _, equations, exact = fold.CASES[case]
    start = np.array(equations.start)
    step = 1e-6
    for size in (step, -step):
        shifted = start + size
        rise = (
            equations.residual(shifted, equations.parameter)
            - equations.residual(start, equations.parameter)
        ) / size
        slope = equations.jacobian(start, equations.parameter).sum(axis=1)
        assert rise == pytest.approx(slope, rel=1e-3, abs=1e-6)
    assert (exact - equations.parameter) * equations.way > 0


def test_example_2_starts_at_a_steady_state():
    found = folds.OIST.residual(np.array(folds.OIST.start), folds.OIST.parameter)
    assert np.abs(found).max() < 1e-12


def test_ours_is_exact_and_at_least_as_near_as_every_rival():
    for case in list(fold.CASES)[:1]:
        entered = fold.contestants(case)
        assert entered[0].name == "hdica"
        assert entered[0].error < 1e-14
        assert all(one.error >= entered[0].error for one in entered)
        assert all(one.error < 1e-4 for one in entered)


@pytest.mark.parametrize(("name", "module"), [("bice", "bice"), ("PyCont-Lite", "pycont")])
def test_a_rival_that_is_installed_takes_part(name, module):
    pytest.importorskip(module)
    entered = [one.name for one in fold.contestants("online ICA, fold in tau")]
    assert name in entered


def test_nothing_is_remembered_between_two_questions():
    import hdica
    from hdica.limits.averages.expectations import averages

    system = hdica.OnlineICA(tau=0.1, source="rademacher")
    assert fold.largest_fold(system, "tau") == pytest.approx(fold.TAU_C, rel=1e-14)
    assert averages.cache_info().currsize > 0
    fold.forget()
    assert averages.cache_info().currsize == 0


def test_a_row_for_everyone_who_is_installed():
    rows = fold.rows(small=True, repeats=1)
    installed = [
        n for n, m in (("bice", "bice"), ("PyCont-Lite", "pycont")) if importlib.util.find_spec(m)
    ]
    assert [row.contestant for row in rows] == ["hdica", "hdica.critical", *installed]
