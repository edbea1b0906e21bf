"""Equations whose fastest rate is far above what happens: followed by an implicit method."""

from __future__ import annotations

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.schedules import make_schedule
from hdica.limits.numerics.solvers import LOOSEST, integrate

ONE = make_schedule("1")
TIMES = np.array([0.0, 0.5, 10.0])


def pulled(rate: float):
    """dy/dt = rate (cos t - y) beside dt/dt = 1, and its solution from y = 2."""

    def flow(state, tau):
        return np.array([rate * (np.cos(state[1]) - state[0]), 1.0])

    def exact(t):
        follows = rate / (rate**2 + 1) * (rate * np.cos(t) + np.sin(t))
        return follows + (2 - rate**2 / (rate**2 + 1)) * np.exp(-rate * t)

    return flow, exact


@pytest.mark.parametrize("rate", [1.0, 1e3, 1e7, 1e10])
def test_a_fast_rate_is_followed_as_closely_as_is_said(rate):
    flow, exact = pulled(rate)
    found = integrate(flow, ONE, np.array([2.0, 0.0]), TIMES, 1e-10)
    assert np.abs(found.states[:, 0] - exact(TIMES)).max() < 100 * found.tolerance
    assert found.tolerance == 1e-10 if rate < 1e4 else found.tolerance <= LOOSEST


def test_both_methods_agree_where_both_can_be_afforded(monkeypatch):
    flow, _ = pulled(1e3)
    begin = (flow, ONE, np.array([2.0, 0.0]), TIMES)
    explicit = integrate(*begin, 1e-11)
    monkeypatch.setattr("hdica.limits.numerics.solvers.MOST", 2000)
    monkeypatch.setattr("hdica.limits.numerics.solvers.LOOKS", 100)
    implicit = integrate(*begin, 1e-11)
    assert not np.array_equal(implicit.states, explicit.states)
    assert np.abs(implicit.states - explicit.states).max() < 1e-8


@pytest.mark.deep
def test_a_signal_of_any_strength_leads_to_the_steady_state():
    times = [0, 1, 10]
    for omega in (1e7, 1e12):
        pca = hdica.SparsePCA(tau=0.1, omega=omega)
        found, states = hdica.limit(pca, times=times), hdica.fixed_points(pca)
        end = states.Q.values[states.stable.values & (states.Q.values > 0)]
        error = found.Q_error.values[-1] + states.error.values.max()
        assert abs(found.Q.values[-1] - end[0]) <= error < 1e-3


@pytest.mark.deep
def test_a_huge_step_size_forgets_and_leaves_its_neighbours_alone():
    ica, times = hdica.OnlineICA(tau=0.05), [0, 10, 100]
    found = hdica.limit(ica, times=times, over={"tau": [0.05, 1000.0]})
    assert np.array_equal(found.Q[0], hdica.limit(ica, times=times).Q)
    assert found.Q.values[1, 0] == 0.5
    assert (np.abs(found.Q.values[1, 1:]) <= found.Q_error.values[1, 1:]).all()


@pytest.mark.parametrize("times", [[0, 5e-324], [1, 1 + 2.3e-16]])
def test_times_that_no_step_fits_between_are_a_sentence(times):
    pca = hdica.SparsePCA(tau=0.1, regularizer="0.1*sign(x)")
    for ask in (hdica.limit, hdica.effective_potential):
        with pytest.raises(HdicaError, match="or its times too near to each other, for numbers of"):
            ask(pca, times=times)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tau", [1e60, 1e200])
def test_rates_that_are_no_numbers_are_refused_at_once(tau):
    system = hdica.OnlineICA(tau=tau, start={"overlap": 0.5})
    with pytest.raises(HdicaError, match=r"not be followed from t = 0 on: its rate there is"):
        hdica.limit(system, times=[1.0], timeout=20)
