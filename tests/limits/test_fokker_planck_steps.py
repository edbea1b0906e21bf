"""The parts of the Fokker-Planck solver against dense linear algebra, and their orders."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from hdica.ingredients.formula import parse_formula
from hdica.limits.mean_field.density.grid import (
    GAP,
    GAP_MIDDLE,
    GAP_PHI,
    PUSH,
    Windows,
    carried,
    interpolated,
    make_lattice,
    make_mesh,
)
from hdica.limits.mean_field.density.kernels import bernoulli, push, rates, resolve
from hdica.limits.mean_field.density.loop import fit
from hdica.limits.mean_field.density.march import Piece, Record, advance, cut
from hdica.limits.mean_field.density.solve import lengths
from hdica.limits.mean_field.density.state import Problem, begin
from hdica.limits.numerics.solvers import romberg
from tests.limits.test_fokker_planck import sparse_pca

# Q(1) without a regularizer: dQ/dt = Q (1 - Q^2)/2 - Q (1 + Q^2)/8 at tau = 1/2, omega = 1.
A, C = 3 / 8, 5 / 8


def logistic(q0, t):
    """Solution of dQ/dt = A Q - C Q^3."""
    u = 1 / q0**2
    return (C / A + (u - C / A) * math.exp(-2 * A * t)) ** -0.5


def march(field, spacing, steps, end=1.0):
    """Q and state after equal steps on fixed cells."""
    nodes = field.prior.nodes
    problem = Problem(field, nodes.points, nodes.weights)
    lattice = make_lattice(field.phi.kinks, spacing, 12.0)
    low, high = np.floor(lattice.number(-8.0)), np.ceil(lattice.number(10.0))
    windows = Windows(np.full(nodes.points.size, int(low)), np.full(nodes.points.size, int(high)))
    state = begin(problem, lattice, windows, 1)
    piece, record = Piece(problem, 0.0, end, np.array([end])), Record(problem, np.empty(0), {})
    lowest, worst, integrands = math.inf, 0.0, record.integrands(state.mesh)
    for k in range(steps):
        ends = np.array([end * (k + 1) / steps])
        assert advance(piece, state, ends, 1, integrands, record.room(1)) == 0
        masses = np.add.reduceat(state.mass, state.mesh.offsets[:-1])
        lowest, worst = min(lowest, state.mass.min()), max(worst, np.abs(masses - 1).max())
    assert lowest > 0
    assert worst < 1e-13
    return state.q, state


def test_second_order_in_space():
    field = sparse_pca("0", start={"overlap": 0.3})
    errors = [march(field, dx, 400)[0] - logistic(0.3, 1.0) for dx in (0.4, 0.2, 0.1)]
    assert np.log2(np.abs(errors[:-1]) / np.abs(errors[1:])) == pytest.approx([2, 2], abs=0.1)


@pytest.mark.parametrize("phi", ["0", "0.27*sign(x)"])
def test_second_order_in_time(phi):
    field = sparse_pca(phi, start={"overlap": 0.3})
    q = np.array([march(field, 0.1, n)[0] for n in (10, 20, 40, 80)])
    change = np.abs(np.diff(q))
    assert np.log2(change[:-1] / change[1:]) == pytest.approx([2, 2], abs=0.15)


def test_second_order_in_space_at_a_kink():
    field = sparse_pca("0.27*sign(x)", start={"overlap": 0.3})
    q = np.array([march(field, dx, 40, 3.0)[0] for dx in (0.2, 0.1, 0.05, 0.025)])
    change = np.abs(np.diff(q))
    assert np.log2(change[:-1] / change[1:])[-1] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("spacing", [0.02, 0.5])
def test_steps_far_too_long_stay_positive(spacing):
    _, state = march(sparse_pca(), spacing, 3, 6.0)
    assert state.mass.min() > 0


@pytest.mark.parametrize("w", [0.0, 1e-12, -1e-5, 0.3, -0.999, 0.9999999, 1.0000001, 5.0, -40.0])
def test_bernoulli_function(w):
    exact = 1.0 if w == 0 else w / math.expm1(w)
    assert bernoulli(w) == pytest.approx((exact, exact + w), rel=4e-16 * 4)


def test_bernoulli_function_does_not_overflow():
    assert bernoulli(800.0) == (0.0, 800.0)
    assert bernoulli(-800.0) == (800.0, 0.0)


def dense(right, left, offsets):
    """1 - c A, from c times the rates across faces."""
    matrix = np.eye(right.size)
    for first, end in pairwise(offsets.tolist()):
        for i in range(first + 1, end):
            matrix[i - 1, i - 1] += right[i]
            matrix[i, i - 1] -= right[i]
            matrix[i, i] += left[i]
            matrix[i - 1, i] -= left[i]
    return matrix


@pytest.fixture
def chain():
    rng = np.random.default_rng(5)
    offsets = np.array([0, 7, 20])
    right, left = rng.exponential(3.0, 20), rng.exponential(3.0, 20)
    right[[0, 7]] = left[[0, 7]] = 0.0
    return rng, right, left, offsets


@pytest.mark.parametrize("second", [1, 2, 3, 12, 13, 40, 41])
def test_resolve_is_the_dense_solve(second):
    rng = np.random.default_rng(5)
    size, offsets, lows = 7 + second, np.array([0, 7, 7 + second]), np.array([3, 0])
    right, left = rng.exponential(3.0, (2, size))
    right[[0, 7]] = left[[0, 7]] = 0.0
    given, mass, sums = rng.exponential(1.0, size), np.empty(size), np.empty(2)
    xi, weights, table = np.array([-0.3, 2.0]), np.array([0.4, 0.6]), np.zeros((7, 50))
    table[0] = rng.normal(size=50)
    nodes = (table, offsets, lows, xi, weights)
    q, square = resolve(given, mass, right, left, np.empty(size), sums, *nodes)
    assert mass == pytest.approx(np.linalg.solve(dense(right, left, offsets), given), rel=1e-12)
    each = np.add.reduceat(given, offsets[:-1])
    assert np.add.reduceat(mass, offsets[:-1]) == pytest.approx(each, rel=1e-14)
    assert sums == pytest.approx(each, rel=1e-14)
    x = np.concatenate([table[0, 3:10], table[0, :second]])
    assert q == pytest.approx(np.sum(np.repeat(weights * xi, [7, second]) * mass * x), abs=1e-13)
    assert square == pytest.approx(np.sum(np.repeat(weights, [7, second]) * mass * x * x))


def test_resolve_keeps_the_smallest_masses_exact_to_rounding():
    # A chain in which every cell but the first fills by a rate of 1e-8: mass k is about 1e-8^k.
    right, left = np.full(30, 1e-8), np.full(30, 1e3)
    right[0] = left[0] = 0.0
    given, mass = np.zeros(30), np.empty(30)
    given[0] = 1.0
    nodes = (np.ones((7, 31)), np.array([0, 30]), np.array([0]), np.ones(1), np.ones(1))
    resolve(given, mass, right, left, np.empty(30), np.empty(1), *nodes)
    pivot = Fraction(1) + Fraction(left[1])
    pivots = [pivot]
    for _ in range(28):
        pivot = 1 + Fraction(left[1]) + Fraction(right[1]) * (1 - Fraction(left[1]) / pivot)
        pivots.append(pivot)
    exact = [Fraction(1) / (1 + Fraction(right[1]) * (1 - Fraction(left[1]) / pivots[-1]))]
    for pivot in pivots[::-1]:
        exact.append(exact[-1] * Fraction(right[1]) / pivot)
    assert mass == pytest.approx([float(v) for v in exact], rel=1e-13, abs=0)


def test_push_is_the_explicit_operator_where_nothing_runs_short(chain):
    rng, right, left, offsets = chain
    mass, moved = 1 + 0.1 * rng.random(20), np.empty(20)
    small = 0.02
    assert push(mass, moved, right, left, np.empty(20), offsets, small) == 0
    explicit = mass + small * (mass - dense(right, left, offsets) @ mass)
    assert moved == pytest.approx(explicit, rel=1e-13)


def test_push_never_overdraws_and_conserves(chain):
    rng, right, left, offsets = chain
    mass = rng.exponential(1.0, 20) ** 8
    moved = np.empty(20)
    assert push(mass, moved, right, left, np.empty(20), offsets, PUSH) > 0
    assert moved.min() >= 0
    each = np.add.reduceat(mass, offsets[:-1])
    assert np.add.reduceat(moved, offsets[:-1]) == pytest.approx(each, rel=1e-13)


def test_stationary_law_of_the_rates_is_boltzmann():
    # Drift b - B sign(x) - 2h x with noise g: exp(-(h x^2 + B|x| - b x)/g), at the centres.
    phi = parse_formula("sign(x)")
    mesh = make_mesh(
        make_lattice((0.0,), 0.5, 4.0), Windows(np.array([-9]), np.array([11])), 1, phi.value
    )
    b, big, h2, g = 0.4, 0.7, 0.6, 0.3
    right, left = np.empty(20), np.empty(20)
    cells = (mesh.table, mesh.offsets, mesh.lows, np.ones(1))
    rates(right, left, np.empty(20), *cells, b, big, h2, g, 1.0)
    law = np.exp(-(h2 / 2 * mesh.x**2 + big * np.abs(mesh.x) - b * mesh.x) / g) * mesh.dx
    assert right[1:] * law[:-1] == pytest.approx(left[1:] * law[1:], rel=1e-12)


def test_a_face_at_every_kink_and_nested_cells():
    kinks = (-0.7071, 0.0, 0.31)
    lattice = make_lattice(kinks, 0.1, 5.0)
    windows = Windows(np.array([-40, -3]), np.array([30, 60]))
    coarse, fine = (make_mesh(lattice, windows, r, np.sign) for r in (1, 2))
    for mesh in (coarse, fine):
        gaps = np.abs(mesh.faces[:, None] - np.array(kinks)).min(axis=0)
        assert gaps == pytest.approx(0, abs=1e-15)
    assert fine.faces[::2] == pytest.approx(coarse.faces, abs=1e-14)
    inside = (coarse.x > kinks[0]) & (coarse.x < kinks[-1])
    assert coarse.dx[inside].max() <= 0.1 + 1e-12
    x = np.linspace(-9, 9, 101)
    assert lattice.position(lattice.number(x)) == pytest.approx(x, abs=1e-12)


def test_mean_of_phi_between_centres():
    phi = parse_formula("0.3*sign(x - 0.2) + tanh(x)")
    windows = Windows(np.array([-20]), np.array([20]))
    mesh = make_mesh(make_lattice(phi.kinks, 0.2, 5.0), windows, 1, phi.value)
    for f in (5, 20, 33):
        low, high = mesh.x[f - 1], mesh.x[f]
        exact = quad(lambda x: float(phi.value(x)), low, high, points=[mesh.faces[f]])[0]
        assert mesh.table[GAP_PHI, f] / mesh.table[GAP, f] == pytest.approx(
            exact / (high - low), abs=1e-9
        )


def test_masses_move_to_other_windows_without_loss():
    old = Windows(np.array([0, 2]), np.array([5, 8]))
    new = Windows(np.array([-1, 4]), np.array([3, 9]))
    values = np.arange(1.0, 12.0)
    assert carried(values, old, new, 1).tolist() == [0, 1, 2, 12, 21, 9, 10, 11, 0]
    assert np.sum(carried(np.repeat(values, 2), old, new, 2)) == 2 * np.sum(values)


def test_lengths_of_a_regularizer():
    assert lengths(parse_formula("0.27*sign(x)")).jump == pytest.approx(0.27)
    elastic = lengths(parse_formula("0.27*sign(x) + 0.3*x"))
    assert (elastic.jump, elastic.slope) == pytest.approx((0.27, 0.3))
    assert math.isinf(elastic.own)
    assert lengths(parse_formula("0.2*tanh(50*x)")).own == pytest.approx(2 / 50, rel=0.1)
    assert elastic.finest(0.2, 1.0, 0.5) == pytest.approx(min(0.2 / 0.27, (0.2 / 0.8) ** 0.5))


def test_romberg_removes_the_powers_that_occur():
    h = 0.25 * 0.5 ** np.arange(4)
    values = 1 + 0.3 * h**2 - 0.2 * h**3 + 0.1 * h**4
    best, error = romberg(values)
    assert best == pytest.approx(1, abs=1e-14)
    assert error > 0
    two, estimate = romberg(values[:3])
    assert abs(two - 1) < estimate


def test_interpolation_is_exact_for_quintics():
    def quintic(x):
        return 1 + x * (2 - x * (3 - x * (0.1 + x * (0.2 - 0.01 * x))))

    u = np.array([-0.5, 0.0, 0.3, 4.7, 8.5])
    assert interpolated(quintic(np.arange(9.0)), u) == pytest.approx(quintic(u), rel=1e-11)


def test_interpolation_of_fewer_than_six_values_takes_them_all():
    u = np.array([-0.2, 0.7, 2.4])
    assert interpolated(np.arange(3.0) ** 2, u) == pytest.approx(u**2, abs=1e-14)


def test_steps_cut_in_parts_end_where_the_steps_do():
    ends = np.array([0.3, 0.4, 1.1])
    found = cut(0.1, ends, 4)
    assert np.array_equal(found[3::4], ends)
    assert np.diff(np.concatenate([[0.1], found])) == pytest.approx(
        np.repeat(np.diff([0.1, *ends]) / 4, 4)
    )


@pytest.mark.parametrize("drift", [-2.5, -0.01, 0.4, 1.7])
def test_rates_beyond_the_series_are_those_of_the_bernoulli_function(drift):
    # Wide cells far out have drifts beyond the series, those about the middle do not.
    mesh = make_mesh(
        make_lattice((0.0,), 0.4, 3.0), Windows(np.array([-30]), np.array([30])), 1, np.sign
    )
    right, left = np.empty(60), np.empty(60)
    cells = (mesh.table, mesh.offsets, mesh.lows, np.ones(1))
    rates(right, left, np.empty(60), *cells, drift, 0.7, 0.3, 0.25, 0.1)
    gap, phi, middle = mesh.table[GAP], mesh.table[GAP_PHI], mesh.table[GAP_MIDDLE]
    w = (drift * gap - 0.7 * phi - 0.3 * middle) / 0.25
    assert np.abs(w[1:-1]).max() > 1 > np.abs(w[1:-1]).min()
    for i in range(1, 60):
        back, forth = bernoulli(w[i])
        k = 0.1 * 0.25 / gap[i]
        assert right[i] == pytest.approx(k * forth / mesh.dx[i - 1], rel=1e-11, abs=1e-300)
        assert left[i] == pytest.approx(k * back / mesh.dx[i], rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    ("shape", "verdict", "low", "high"),
    [
        (lambda x: np.exp(-((x - 1) ** 2) / 0.02), -1, -34, 34),
        (lambda x: np.exp(-(x**2) / 0.5), 0, -50, 50),
        (lambda x: np.exp(-((x - 8) ** 2) / 0.5), 1, -50, 70),
    ],
    ids=["shrinks", "stays", "grows"],
)
def test_windows_follow_the_density(shape, verdict, low, high):
    lattice, old = make_lattice((0.0,), 0.2, 1e6), Windows(np.array([-50]), np.array([50]))
    mesh = make_mesh(lattice, old, 1, np.sign)
    mass = shape(mesh.x) / shape(mesh.x).sum()
    windows = np.array([[-50], [50], [0], [0]])
    nodes = (mesh.table, mesh.offsets, mesh.lows, np.ones(1), np.ones(1))
    assert fit(mass, nodes, 1e-15, windows) == verdict
    assert (windows[0, 0], windows[1, 0]) == (low, high)
