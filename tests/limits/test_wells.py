"""Densities with two wells of very different widths, and the bound on the work of a search."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.limits.mean_field.steady.closure import close, edges, moments
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.numerics import solvers
from hdica.systems.online_ica.system import mean_field

LEVELLING = hdica.OnlineICA(
    tau=1e-4,
    source="rademacher",
    regularizer="b*x/(x**2+0.1)",
    constants={"b": 0.2},
    prior={"sparse": 0.3},
    start={"overlap": 0.5},
)


def _by_hand(a, k, tilt):
    """E x^j of exp{-a x^2 - k/2 log(1 + 10 x^2) + tilt x} from a dense trapezoidal rule."""
    x = np.sort(np.concatenate([np.linspace(-1, 1, 400_001), np.linspace(-200, 200, 400_001)]))
    v = a * x**2 + k / 2 * np.log1p(10 * x**2) - tilt * x
    p = np.exp(v.min() - v)
    return [np.trapezoid(p * x**j, x) / np.trapezoid(p, x) for j in range(5)]


@pytest.mark.parametrize("a", [0.3, 0.48, 0.4954, 0.4956, 0.52])
def test_two_wells_of_other_widths_are_both_averaged(a):
    shape = confinement(parse_formula("0.2*x/(x**2+0.1)"))
    row = [np.array([v]) for v in (a, 1338.0, 51.6)]
    found = moments(shape, *row).powers[:, 0]
    assert found == pytest.approx(_by_hand(a, 267.6, 51.6), rel=1e-7)


def test_what_levels_off_holds_nothing_without_a_multiplier():
    shape = confinement(parse_formula("0.2*x/(x**2+0.1)"))
    _, held = edges(shape, np.zeros(2), np.full(2, 1338.0), np.array([0.0, 1e-3]))
    assert held.tolist() == [True, False]


@pytest.mark.deep
def test_the_second_moment_is_one_on_either_side_of_coexistence():
    field = mean_field(LEVELLING)
    q = np.concatenate([np.geomspace(3e-4, 0.05, 9), np.linspace(0.2, 0.23, 9)])
    found = close(field, q)
    shape, nodes = confinement(field.phi), field.prior.nodes
    tilt = found.ratio[:, None] * nodes.points
    second = moments(shape, found.a[:, None], found.k[:, None], tilt).powers[2] @ nodes.weights
    assert second == pytest.approx(np.ones(q.size), abs=1e-6)
    assert np.abs(np.diff(found.excess / q)).max() < 0.2


@pytest.mark.deep
def test_transitions_of_a_regularizer_that_levels_off():
    found = hdica.critical(LEVELLING, low=0.02, high=1.0)
    assert found["kind"].values.tolist() == ["fold"]
    tau = float(found["value"][0])
    assert tau == pytest.approx(0.186147, abs=1e-5)
    sides = [
        hdica.fixed_points(LEVELLING.model_copy(update={"tau": tau * f})).sizes["fixed_point"]
        for f in (0.999, 1.001)
    ]
    assert sides == [5, 1]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda system: hdica.fixed_points(system), "the steady states"),
        (lambda system: hdica.critical(system), "the transitions"),
        (lambda system: hdica.critical(system, "b", low=0.01, high=1.0), "the transitions"),
    ],
)
@pytest.mark.parametrize("regularizer", ["b*x/(x**2+0.1)", "b*sign(x)"])
def test_a_search_ends_with_a_sentence_where_it_takes_too_much(
    monkeypatch, call, what, regularizer
):
    monkeypatch.setattr(solvers, "MOST_POINTS", 20_000)
    with pytest.raises(HdicaError, match=f"^{what} were not found within the work .* narrower"):
        call(LEVELLING.model_copy(update={"regularizer": regularizer, "tau": 0.02}))


def test_the_work_of_one_call_is_not_that_of_the_next():
    for _ in range(2):
        with solvers.bounded("these"):
            solvers.spend(solvers.MOST_POINTS // 2)
    solvers.spend(2 * solvers.MOST_POINTS)
