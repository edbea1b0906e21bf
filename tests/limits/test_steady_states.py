import dataclasses
import json
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from scipy.special import erfcx

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.quadrature import panel_nodes
from hdica.ingredients.schedules import make_motion
from hdica.limits.mean_field.steady.closure import close, moments, multiplier
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.mean_field.steady.laplace_kernels import half_line
from hdica.limits.mean_field.steady.states import densities, steady_states
from hdica.limits.numerics.solvers import find_zeros
from tests.limits.families import MOMENTS, density, ica, oist

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/steady_states.json").read_text())


@pytest.mark.parametrize("a", [0.0, 1e-14, 1e-8, 0.3, 5.0, 1e4])
@pytest.mark.parametrize("z", [-30.0, -5.0, -0.4, 0.0, 0.49, 0.51, 2.0, 20.0, 1e4])
def test_half_line_moments_neither_overflow_nor_cancel(a, z):
    c = 2 * np.sqrt(a) * z if a > 0 else 1.7
    found = np.empty(5)
    shift = half_line(a, c, found)
    with mp.workdps(120):
        exact_a, exact_c = mp.mpf(a), mp.mpf(float(c))
        if a == 0:
            exact = [mp.factorial(k) / exact_c ** (k + 1) for k in range(5)]
        else:
            s = exact_c / (2 * mp.sqrt(exact_a))
            exact = [mp.sqrt(mp.pi / exact_a) / 2 * mp.erfc(s) * mp.exp(s * s)]
            exact.append((1 - exact_c * exact[0]) / (2 * exact_a))
            for k in range(1, 4):
                exact.append((k * exact[k - 1] - exact_c * exact[k]) / (2 * exact_a))
        ratio = [
            float(mp.mpf(float(m)) * mp.exp(float(shift)) / e)
            for m, e in zip(found, exact, strict=True)
        ]
    # The logarithm of the common factor, up to z^2 = 900, is itself rounded.
    assert ratio == pytest.approx([1.0] * 5, rel=4e-13)


def test_infinite_where_nothing_confines():
    found = np.empty((2, 5))
    half_line(0.0, 0.0, found[0])
    half_line(0.0, -1.0, found[1])
    assert np.all(np.isinf(found))


def test_the_compiled_multiplier_is_that_of_plain_arrays():
    """With l1 in closed form, and with the same potential by quadrature and NumPy."""
    l1 = confinement(parse_formula("sign(x)"))
    weights, xi = np.array([0.7, 0.25, 0.05]), np.array([0.0, 1.0, 4.0])
    k, ratio = (v.ravel() for v in np.meshgrid([0.03, 0.3, 1.3, 1.5, 6.0], [0.0, 0.4, 1.2, 20.0]))
    tilt = ratio[:, None] * xi
    plain, ends = multiplier(dataclasses.replace(l1, l1=None), weights, k, tilt)
    a, at_end = multiplier(l1, weights, k, tilt)
    assert a == pytest.approx(plain, rel=1e-9, abs=1e-12)
    assert np.array_equal(at_end < 1, a == 0)
    assert at_end[at_end < 1] == pytest.approx(ends[at_end < 1], rel=1e-11)
    assert 0 < np.count_nonzero(a) < a.size
    found = moments(l1, a[:, None], k[:, None], tilt).powers[2]
    assert np.sum(weights * found, axis=1)[a > 0] == pytest.approx(1.0, abs=1e-13)


def test_closed_form_and_quadrature_agree_over_wide_ranges():
    l1 = confinement(parse_formula("sign(x)"))
    grid = ([0.0, 1e-8, 1e-3, 0.1, 3.0, 500.0], [0.01, 1.0, 30.0, 3000.0], [-300, -5, 0.3, 40.0])
    a, k, tilt = np.meshgrid(*grid)
    closed = moments(l1, a, k, tilt)
    numeric = moments(dataclasses.replace(l1, l1=None), a, k, tilt)
    finite = np.isfinite(closed.powers[2])
    assert np.array_equal(finite, np.isfinite(numeric.powers[2]))
    assert finite.sum() > 70
    for one, two in ((closed.powers, numeric.powers), (closed.mixed, numeric.mixed)):
        size = np.sqrt(closed.powers[2]) ** np.arange(len(one))[:, None, None, None]
        error = np.abs(one[:, finite] - two[:, finite]) / (np.abs(one) + size)[:, finite]
        # A density that sits at x = 1e10 has an exponent of 1e12 that is itself rounded.
        assert error.max() < 2e-10
        assert np.median(error) < 1e-13


@pytest.mark.parametrize(
    ("text", "integral"),
    [
        ("0.2*tanh(5*x)", lambda x: mp.log(mp.cosh(5 * x)) / 25),
        ("x**3 - 2*x", lambda x: x**4 / 4 - x * x),
        ("0.1*sign(x - 0.5) + 0.1*sign(x + 0.5)", lambda x: (abs(x - 0.5) + abs(x + 0.5)) / 10),
        ("sign(x)*sqrt(abs(x))", lambda x: 2 * abs(x) ** 1.5 / 3),
    ],
)
def test_quadrature_for_any_regularizer(text, integral):
    a, k, tilt = 0.7, 6.0, 1.3
    found = moments(confinement(parse_formula(text)), *(np.array([v]) for v in (a, k, tilt)))
    offset = integral(mp.mpf(0))

    def weight(x):
        return mp.exp(-a * x * x - k * (integral(x) - offset) + tilt * x)

    points = [-12, -4, -2, -1, -0.5, -0.2, 0, 0.2, 0.5, 1, 2, 4, 12]
    z = mp.quad(weight, points)
    exact = [float(mp.quad(lambda x, j=j: x**j * weight(x), points) / z) for j in range(5)]
    assert found.powers[:, 0] == pytest.approx(exact, rel=1e-12)


def test_densities_have_their_moments():
    shape = confinement(parse_formula("0.3*sign(x) + 0.1*x"))
    x = np.linspace(-30, 30, 600_001)
    p = density(shape, 0.4, 2.0, np.array([-1.0, 0.0, 3.0]), x)
    found = moments(shape, np.array(0.4), np.array(2.0), np.array([-1.0, 0.0, 3.0]))
    for j in range(4):
        assert np.trapezoid(p * x**j, x) == pytest.approx(found.powers[j], abs=1e-8)


def test_equation_19_with_erfcx_and_its_own_constant():
    (case,) = [c for c in GOLDEN["eq19_conventions"] if c["convention"] == "erfcx"]
    state = close(oist(1.0), np.array([case["Q"]]))
    assert state.excess == pytest.approx([0.0], abs=1e-14)
    assert state.r == pytest.approx([case["R"]], abs=1e-14)
    g, h, b, beta = state.g[0], state.h[0], 0.5 * case["Q"], 0.27
    xi, w = np.array([0.0, 1 / np.sqrt(0.05)]), np.array([0.95, 0.05])
    plus, minus = ((beta + s * b * xi) / (2 * np.sqrt(g * h)) for s in (1, -1))
    # f(z) = exp(z^2) times the integral of exp(-t^2) from z, in units with or without 2/sqrt(pi).
    both = erfcx(plus) + erfcx(minus)
    work = np.sqrt(g / h) * (2 / np.sqrt(np.pi) - plus * erfcx(plus) - minus * erfcx(minus)) / both
    assert beta * np.sum(w * work) == pytest.approx(case["R"], abs=1e-12)
    mixed = np.sqrt(g / h) * (2 / np.pi - plus * erfcx(plus) - minus * erfcx(minus)) / both
    (wrong,) = [c for c in GOLDEN["eq19_conventions"] if "WRONG" in c["convention"]]
    assert beta * np.sum(w * mixed) == pytest.approx(wrong["R"], abs=1e-10)


@pytest.mark.parametrize("omega", list(GOLDEN["oist_steady"]["stable"]))
def test_sparse_pca_tables(omega):
    golden = GOLDEN["oist_steady"]
    found = steady_states(oist(float(omega)))
    top = golden["stable"][omega]
    assert found.q[-1] == pytest.approx(top["Q"], abs=1e-9)
    assert found.h[-1] == pytest.approx(top["h"], abs=1e-9)
    assert found.r[-1] == pytest.approx(top["R"], abs=1e-9)
    assert found.q == pytest.approx(-found.q[::-1], abs=1e-12)
    assert found.stable[-1]
    # Q = 0 loses its stability, and its unstable neighbours, at omega_1.
    bistable = float(omega) < golden["omega_1"]
    assert found.stable.tolist() == (
        [True, False, True, False, True] if bistable else [True, False, True]
    )
    if omega in golden["unstable"]:
        low = golden["unstable"][omega]
        assert found.q[-2] == pytest.approx(low["Q"], abs=1e-9)
        assert found.h[-2] == pytest.approx(low["h"], abs=1e-9)
        assert found.kind[-2] == ("condensed" if low["h"] == 0 else "informative")


def test_uninformative_states_below_the_fold():
    for case in GOLDEN["oist_uninformative"]["h_positive"]:
        found = steady_states(oist(0.05, tau=case["tau"], beta=case["beta"]))
        assert found.kind.tolist() == ["uninformative"]
        assert found.h == pytest.approx([case["h"]], abs=1e-10)
        assert found.r == pytest.approx([case["R"]], abs=1e-10)
    paper = GOLDEN["oist_uninformative"]["condensed_paper_params"]
    found = steady_states(oist(0.19))
    assert (found.q.tolist(), found.kind.tolist()) == ([0.0], ["condensed"])
    assert found.bulk == pytest.approx([paper["Ex2_bulk"]], abs=1e-10)
    assert found.r == pytest.approx([paper["R"]], abs=1e-12)
    assert found.h == pytest.approx([0.0], abs=1e-12)
    assert np.isnan(found.growth[0])


@pytest.mark.parametrize("source", ["rademacher", "uniform"])
def test_l1_ica_tables(source):
    for beta, rows in GOLDEN["ica_l1_steady"]["cases"][source].items():
        for tau in ("0.01", "0.03", "0.05"):
            golden, found = rows["fp"][tau], steady_states(ica(float(tau), source, float(beta)))
            assert found.q.size == 5
            for i, name in ((-1, "stable"), (-2, "unstable")):
                assert bool(found.stable[i]) == (name == "stable")
                # The tables leave out unstable states that are condensed.
                assert (name in golden) == (found.kind[i] == "informative")
                if name in golden:
                    assert found.q[i] == pytest.approx(golden[name]["Q"], abs=1e-8)
                    assert found.r[i] == pytest.approx(golden[name]["R"], abs=1e-8)
                    assert 2 * found.h[i] == pytest.approx(golden[name]["d"], abs=1e-8)


@pytest.mark.parametrize("source", ["rademacher", "arcsine"])
@pytest.mark.parametrize("phi", ["0", "0.3*x"])
def test_without_regularizer_the_roots_of_the_closed_equation(source, phi):
    case = GOLDEN["ica_cubic_phi0_fixed_points"]["cases"][source]
    assert (case["m4"], case["m6"]) == MOMENTS[source]
    for tau in ("0.01", "0.05"):
        found = steady_states(ica(float(tau), source, phi=phi))
        expected = np.sqrt([case["fp"][tau]["q_u"], case["fp"][tau]["q_s"]])
        assert found.q[-2:] == pytest.approx(expected, abs=1e-12)
        assert np.all(found.error < 1e-11)


def _moments_by_trapezoid(field, q, h):
    """E x^2, Q and R of the Boltzmann densities, written out once more."""
    tau = field.schedule.constant
    b, g, strength = field.pull(q, tau), field.diffusion(q, tau), field.strength(tau)
    # Midpoints: no kink at 0 falls on one.
    step = 2e-4
    x = step * (np.arange(-200_000, 200_000) + 0.5)
    phi = field.phi.value(x)
    grown = np.concatenate([[0.0], np.cumsum((phi[1:] + phi[:-1]) / 2) * step])
    found = np.zeros(3)
    for xi, w in zip(field.prior.nodes.points, field.prior.nodes.weights, strict=True):
        energy = (h * x * x + strength * grown - b * xi * x) / g
        p = np.exp(energy.min() - energy)
        found += w * np.array([np.sum(p * f) for f in (x * x, xi * x, x * phi)]) / p.sum()
    return found


@pytest.mark.parametrize(
    "field",
    [
        oist(0.5, prior={"sparse_sign": 0.1}),
        oist(0.9, prior={"bernoulli_gaussian": 0.2}),
        oist(0.9, prior="gaussian"),
        oist(0.9, prior={"atoms": [-1, 0, 3], "weights": [0.2, 0.7, 0.1]}, phi="0.2*tanh(5*x)"),
        oist(0.5, phi="0.2*tanh(5*x)"),
        oist(0.5, phi="0.1*x**3 - 0.2*x"),
        oist(0.5, phi="0.1*sign(x) + 0.3*x"),
        oist(2.0, phi="0.2*abs(x)"),
        oist(0.5, bias=0.4),
    ],
    ids=lambda f: f"{f.phi.text} {f.prior.label}",
)
def test_states_reproduce_their_own_order_parameters(field):
    found = steady_states(field)
    assert found.q.size >= 2
    informative = np.flatnonzero(found.kind == "informative")
    assert informative.size >= 1
    for i in informative[-1:]:
        q, h = float(found.q[i]), float(found.h[i])
        assert _moments_by_trapezoid(field, q, h) == pytest.approx([1.0, q, found.r[i]], abs=1e-6)
        tau = field.schedule.constant
        assert 2 * h == pytest.approx(field.curvature(q, float(found.r[i]), tau), abs=1e-10)


def test_a_linear_term_shifts_the_multiplier_and_nothing_else():
    plain, net = steady_states(oist(0.3)), steady_states(oist(0.3, phi="beta*sign(x) + 0.3*x"))
    assert net.q == pytest.approx(plain.q, abs=1e-12)
    assert net.h == pytest.approx(plain.h - 0.15, abs=1e-12)
    assert net.r == pytest.approx(plain.r + 0.3, abs=1e-12)
    assert net.kind.tolist() == plain.kind.tolist()
    tau, state = 0.5, plain.kind == "condensed"
    assert state.any()
    for q, h, r in zip(net.q, net.h, net.r, strict=True):
        assert 2 * h == pytest.approx(oist(0.3).curvature(q, r, tau), abs=1e-12)


@pytest.mark.deep
@pytest.mark.parametrize("field", [oist(2.0, phi="0.2*abs(x)"), oist(0.5, bias=0.4)], ids="ab")
def test_without_mirror_symmetry_no_state_is_missed(field):
    found = steady_states(field)
    q = np.linspace(-1, 1, 1001)
    excess = close(field, q).excess
    signs = np.sign(excess[excess != 0])
    assert np.count_nonzero(np.diff(signs)) == found.q.size
    assert close(field, found.q).excess == pytest.approx(np.zeros(found.q.size), abs=1e-12)


def test_slope_is_the_derivative():
    q, step = np.array([-0.8, 0.2, 0.45, 0.97]), 1e-5
    for field in (oist(0.2), ica(0.05), oist(0.2, phi="0.2*tanh(5*x)"), oist(0.2, bias=0.3)):
        rise = close(field, q + step).excess - close(field, q - step).excess
        assert close(field, q).slope == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_close_pairs_of_zeros_are_told_apart(gap):
    def function(x):
        y = (x - 0.3712) ** 2 - gap**2
        return y * (x - 2), 2 * (x - 0.3712) * (x - 2) + y

    found = find_zeros(function, np.linspace(0, 1, 8))
    assert found == pytest.approx([0.3712 - gap, 0.3712 + gap], abs=1e-9 + 1e-3 * gap)


@pytest.mark.parametrize(("level", "zeros"), [(0.1, []), (0.0, [0.5])])
def test_a_slope_that_is_rounding_has_no_sign_to_rely_on(level, zeros):
    """Evaluated among others its sign may be another one than alone."""

    def function(q):
        rounding = np.where(q == 0.5, 1e-18 if q.size == 1 else -1e-18, 0.0)
        return (q - 0.5) ** 2 + level, 2 * (q - 0.5) + rounding

    assert list(find_zeros(function, np.array([0.5, 1.0]))) == zeros


def test_what_has_no_steady_state_is_refused_in_a_sentence():
    with pytest.raises(HdicaError, match="tau = a schedule"):
        steady_states(oist(1.0, tau="0.5/(1 + t)"))
    with pytest.raises(HdicaError, match="pushes large entries outwards"):
        steady_states(oist(1.0, phi="-x**3"))


@pytest.mark.parametrize(
    "field",
    [
        oist(0.15),
        oist(0.25),
        oist(0.6, phi="beta*sign(x) + 2*x", prior={"sparse_sign": 0.3}),
        oist(0.3, phi="tanh(x)"),
        ica(0.1, "uniform"),
        ica(0.1, phi="0.1*x**3"),
        ica(0.05, phi="0", beta=0.0),
    ],
    ids=lambda f: f"{f.phi.text} {f.prior.label}",
)
def test_steady_densities_have_the_moments_of_their_states(field):
    """Mass 1, E x^2 = 1 or ``bulk``, E[xi x] = Q and R = E[x phi(x)], within the error of Q."""
    states, nodes = steady_states(field), field.prior.nodes
    ends = np.concatenate([-np.geomspace(0.05, 400, 80)[::-1], [0.0], np.geomspace(0.05, 400, 80)])
    x, w = panel_nodes(ends, 12)
    at, below = densities(field, states.q, x, ends)
    mass = at * w
    np.testing.assert_allclose(mass.sum(axis=-1), 1.0, rtol=1e-10)
    inside = mass.reshape(*at.shape[:2], -1, 12).sum(axis=-1)
    np.testing.assert_allclose(np.diff(below), inside, atol=1e-10)
    mean = np.einsum("i,sij->sj", nodes.weights, mass)
    overlap = np.einsum("i,sij,j->s", nodes.weights * nodes.points, mass, x)
    np.testing.assert_allclose(np.sum(mean * x * x, axis=-1), states.bulk, rtol=1e-9)
    assert np.all(abs(overlap - states.q) < 1e-9 + states.error)
    r = np.sum(mean * x * field.phi.value(x), axis=-1)
    plain = states.bulk == 1.0
    np.testing.assert_allclose(r[plain], states.r[plain], rtol=1e-9)


def test_below_the_transition_the_steady_density_is_the_exponential_20():
    x = np.array([-3.0, -0.4, 0.0, 1.0, 5.0])
    at, below = densities(oist(0.15), np.zeros(1), x, x)
    rate = 2 * 0.27 / 0.5**2
    exact = rate / 2 * np.exp(-rate * np.abs(x))
    share = np.where(x < 0, np.exp(rate * x) / 2, 1 - np.exp(-rate * x) / 2)
    for row in (0, 1):
        np.testing.assert_allclose(at[0, row], exact, rtol=1e-12)
        np.testing.assert_allclose(below[0, row], share, rtol=1e-12)


@pytest.mark.parametrize("phi", ["0", "2*x"])
def test_without_penalty_steady_densities_are_normal(phi):
    field, x = oist(0.6, phi=phi), np.linspace(-3, 7, 21)
    q = steady_states(field).q[-1:]
    at, below = densities(field, q, x, x)
    # (8)-(11) are an Ornstein-Uhlenbeck process: mean Q xi, variance 1 - Q^2.
    for row, xi in enumerate(field.prior.nodes.points):
        law = stats.norm(q[0] * xi, np.sqrt(1 - q[0] ** 2))
        np.testing.assert_allclose(at[0, row], law.pdf(x), rtol=1e-10, atol=1e-18)
        np.testing.assert_allclose(below[0, row], law.cdf(x), rtol=1e-10, atol=1e-18)


def test_there_is_no_steady_density_while_the_feature_moves():
    still, x = oist(0.6), np.array([-1.0, 1.0])
    moving = dataclasses.replace(still, motion=make_motion({"exchange": 0.1}))
    for field, q in ((moving, 0.5), (still, np.nan)):
        assert all(np.isnan(found).all() for found in densities(field, np.array([q]), x, x))
