"""States found one value after another, joined to branches."""

from __future__ import annotations

import numpy as np

from hdica.analysis.steady.branches import closed, tracks

X = np.array([1.0, 2.0, 3.0, 4.0])
NAN = np.nan


def of(q, stable=1.0, kind=0.0):
    values = np.array(q, dtype=float)
    known = np.isfinite(values)
    full = [np.where(known, one, NAN) for one in (stable, kind)]
    return tracks(X, values, *full)


def test_two_branches_that_do_not_meet_are_joined_in_order():
    found = of([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    assert sorted(one.q for one in found) == [(0.1, 0.2, 0.3, 0.4), (0.9, 0.8, 0.7, 0.6)]
    assert all(one.x == tuple(X) for one in found)


def test_a_branch_that_ends_knows_between_which_values():
    (one,) = of([[0.1], [0.2], [NAN], [NAN]])
    assert (one.x, one.before, one.after) == ((1.0, 2.0), -np.inf, 3.0)
    (late,) = of([[NAN], [NAN], [0.2], [0.3]])
    assert (late.before, late.after) == (2.0, np.inf)


def test_images_are_one_and_stability_tells_branches_apart():
    values = np.array([[0.5, 0.5]] * 4)
    assert len(tracks(X, values, np.ones((4, 2)), np.zeros((4, 2)))) == 1
    mixed = np.tile([1.0, 0.0], (4, 1))
    assert [one.stable for one in tracks(X, values, mixed, np.zeros((4, 2)))] == [False, True]


def test_an_end_goes_to_the_nearest_transition_of_its_gap():
    found = of([[0.1], [0.2], [NAN], [NAN]])
    value, q = np.array([2.5, 2.6, 3.5]), np.array([0.9, 0.25, 0.2])
    (one,) = closed(found, value, q)
    assert (one.x[-1], one.q[-1]) == (2.6, 0.25)
    (same,) = closed(found, np.array([3.5]), np.array([0.2]))
    assert same.x == (1.0, 2.0)


def test_values_in_any_order_give_the_same():
    q = np.array([[0.1], [0.2], [0.3], [0.4]])
    order = [2, 0, 3, 1]
    one = tracks(X, q, q * 0 + 1, q * 0)
    assert tracks(X[order], q[order], q * 0 + 1, q * 0) == one
