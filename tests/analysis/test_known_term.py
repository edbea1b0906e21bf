"""A verdict where theory knows the term of order 1/n."""

from typing import Any

import numpy as np
import pytest

from hdica.analysis.convergence.compute import _point as _inferred
from hdica.verdict.ladder import Ladder, ladder
from hdica.verdict.trajectory import judge

TIMES = np.linspace(0.1, 1.0, 10)
LIMIT, CONTROL, TERM = TIMES, 1.02 * TIMES, 3 * TIMES**2
EXACT = np.zeros(10)


def _runs(sizes: list[int], seeds: int, seed: int, second: float = 0.0) -> Ladder:
    rng = np.random.default_rng(seed)
    values = []
    for n in sizes:
        noise = np.cumsum(rng.standard_normal((seeds, 10)), axis=1) * 0.1 / np.sqrt(n)
        values.append(LIMIT + TERM / n + second * TERM / n**2 + noise)
    return ladder(np.array(values), np.array(sizes, dtype=float))


@pytest.mark.parametrize("sizes", [[400], [100, 400], [30, 100, 400]])
def test_the_known_term_is_taken_off(sizes: list[int]) -> None:
    found = judge(_runs(sizes, 200, 1, second=5.0), LIMIT, EXACT, CONTROL, 0.01, TERM)
    assert (found.verdict, found.term_known) == ("agrees", True)
    np.testing.assert_array_equal(found.coefficient, TERM)


def test_a_single_n_is_judged() -> None:
    wrong = judge(_runs([100], 2000, 2), LIMIT, EXACT, CONTROL, 0.01, EXACT)
    assert wrong.verdict == "differs"
    fitted = judge(_runs([100], 2000, 2), LIMIT, EXACT, CONTROL, 0.01)
    assert (fitted.verdict, fitted.term_known) == ("undecided", False)


def test_it_is_sharper_than_a_fitted_term() -> None:
    runs = _runs([100, 400], 100, 3)
    known = judge(runs, LIMIT, EXACT, CONTROL, 0.01, TERM)
    fitted = judge(runs, LIMIT, EXACT, CONTROL, 0.01)
    assert known.control_p < 0.1 * fitted.control_p


@pytest.mark.deep
def test_right_limits_are_rejected_as_rarely_as_stated() -> None:
    ladders = [_runs([100, 400], 40, 10 + k) for k in range(400)]
    found = [judge(one, LIMIT, EXACT, CONTROL, 0.05, TERM).p_value for one in ladders]
    assert np.mean(np.array(found) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def _found(values: np.ndarray, n: np.ndarray, term: np.ndarray, from_n: float) -> dict[str, Any]:
    curves = [LIMIT, EXACT, CONTROL, term, np.full(10, from_n)]
    cell = _inferred(values, *curves, n=n, level=0.01)
    return {name: one[1] if isinstance(one, tuple) else one for name, one in cell.items()}


def test_a_term_that_is_not_known_is_fitted() -> None:
    runs = _runs([100, 400], 100, 4)
    found = _found(np.array(runs.runs), runs.n, np.full(10, np.nan), 0.0)
    fitted = judge(runs, LIMIT, EXACT, CONTROL, 0.01)
    assert (found["p_value"], found["term_known"]) == (fitted.p_value, 0)


def _point(sizes: list[int], from_n: float) -> tuple[str, float, float]:
    """Verdict, smallest n and whether the term was known, of runs of which n = 20 is off."""
    runs = _runs(sizes, 200, 5)
    values = np.array([one + 0.1 * (n == 20) for n, one in zip(sizes, runs.runs, strict=True)])
    found = _found(values, runs.n, TERM, from_n)
    return str(found["verdict"]), found["n_from"], found["term_known"]


def test_a_known_term_says_nothing_of_n_below_which_it_does_not_hold() -> None:
    assert _point([20], 0.0) == ("differs", 20, 1)
    assert _point([20], np.nan) == ("differs", 20, 1)
    assert _point([20], 100.0) == ("undecided", 20, 0)
    assert _point([20, 400], 100.0) == ("agrees", 400, 1)
    assert _point([20, 400], np.inf)[2] == 0
