"""The rival of the benchmark of FastICA makes the iterations that ours makes: equal components."""

import numpy as np
import pytest

from benchmarks.fastica import Case, cases, ours, theirs


@pytest.mark.parametrize("contrast", ["exp", "logcosh", "kurtosis"])
@pytest.mark.parametrize(("how", "starts"), [("one", 3), ("symmetric", 1), ("deflation", 1)])
def test_both_make_the_same_iterations(contrast, how, starts):
    case = Case(contrast, 400, 5, how, starts, iterations=4)
    mine, rival = ours(case), theirs(case)
    assert mine.shape == rival.shape == (starts if how == "one" else 5, 5)
    assert np.allclose(mine, rival, atol=1e-10)
    fewer = ours(Case(contrast, 400, 5, how, starts, iterations=3))
    assert not np.allclose(mine, fewer, atol=1e-10)


def test_cases_have_labels_of_their_own():
    for small in (True, False):
        labels = [case.label for case in cases(small)]
        assert len(set(labels)) == len(labels) > 1
