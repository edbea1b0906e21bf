"""Means of functionals with kinks and jumps of their own lie within the error that is stated."""

import numpy as np
import pytest

import hdica
from hdica.ingredients.formula import parse_functional
from hdica.limits.mean_field.density.solve import solve
from hdica.systems.system import record_of

TIMES = np.array([0.0, 1.0, 4.0])
FORMS = (
    "where(x > {a}, 1, 0)",
    "abs(x - {a})",
    "max(x - {a}, 0)",
    "where(abs(x) < {b}, x**2, 0)",
    "abs(x - {b}*xi)",
    "where(x*xi > {b}, 1, 0)",
)


def _field():
    system = hdica.SparsePCA(
        tau=0.5,
        omega=1.0,
        regularizer="0.27*sign(x)",
        prior={"sparse": 0.1},
        start={"normal": {"mean": 0.5**0.5, "var": 0.5}},
    )
    return record_of(system).mean_field(system)


def _random(count):
    rng = np.random.default_rng(8)
    texts = [
        FORMS[i % len(FORMS)].format(
            a=round(rng.uniform(-1.5, 1.5), 4), b=round(rng.uniform(0.2, 1.5), 4)
        )
        for i in range(count)
    ]
    return {f"m{i}": parse_functional(text) for i, text in enumerate(texts)}


def _reference(density, h, cuts, kinks):
    """E h by panels between all kinks, of a density solved to a tolerance that is finer."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    low, high = density.support()
    inner = [c for c in (*cuts, *kinks) if low < c < high]
    ends = np.unique(np.concatenate([np.linspace(low, high, 61), inner]))
    half = np.diff(ends)[:, None] / 2
    x = (ends[:-1, None] + half * (1 + nodes)).ravel()
    w = (half * weights).ravel()
    values = np.array([np.broadcast_to(h(xi, x), x.shape) for xi in density.xi])
    return float(np.sum(density.weights[:, None] * density.at(x) * values * w))


@pytest.fixture(scope="module")
def solved():
    field, functionals = _field(), _random(18)
    xi = field.prior.nodes.points
    means = {k: f.value for k, f in functionals.items()}
    cuts = {k: f.cuts(xi) for k, f in functionals.items()}
    fine = solve(field, TIMES, snapshots=TIMES.tolist(), tolerance=1e-9)
    exact = {
        k: np.array([_reference(d, means[k], cuts[k], field.phi.kinks) for d in fine.densities])
        for k in means
    }
    return field, means, cuts, exact


@pytest.mark.deep
def test_errors_cover_and_are_those_of_a_smooth_functional(solved):
    field, means, cuts, exact = solved
    assert all(cuts.values())
    path = solve(field, TIMES, functionals=means, cuts=cuts)
    for name, true in exact.items():
        off = np.abs(path.functionals[name] - true)
        # The reference stops at the support, beyond which 1e-12 of the mass is left.
        assert np.all(off <= path.functional_errors[name] + 1e-9), name
        assert path.functional_errors[name].max() < 2e-6
    # Nothing else changes by what is asked for.
    plain = solve(field, TIMES)
    assert np.array_equal(path.q, plain.q)
    assert np.array_equal(path.q_error, plain.q_error)


def test_a_lattice_that_does_not_know_their_kinks_does_not_cover(solved):
    field, means, _, exact = solved
    path = solve(field, TIMES, functionals=means)
    missed = [
        name
        for name, true in exact.items()
        if np.any(np.abs(path.functionals[name] - true) > path.functional_errors[name] + 1e-9)
    ]
    assert len(missed) >= 3
    worst = max(np.abs(path.functionals[k] - true).max() for k, true in exact.items())
    assert worst > 1e-4


def test_cuts_are_where_a_functional_switches():
    xi = np.array([0.0, 2.0])
    assert parse_functional("x**2*xi").cuts(xi) == ()
    assert parse_functional("abs(x - 0.5)").cuts(xi) == (0.5,)
    assert parse_functional("abs(x - xi)").cuts(xi) == (0.0, 2.0)
    assert parse_functional("where(x*xi > 1, 1, 0)").cuts(xi) == (0.5,)
