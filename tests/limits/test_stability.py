import numpy as np
import pytest

from hdica.ingredients.formula import parse_formula
from hdica.limits.mean_field.steady.closure import close, moments
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.mean_field.steady.stability import (
    Linearisation,
    linearise,
    relaxation_modes,
    stability,
)
from hdica.limits.mean_field.steady.states import steady_states
from tests.limits.families import density, ica, oist


def test_modes_of_a_quadratic_potential_are_hermite_polynomials():
    a, tilt = 0.8, 1.1
    modes = relaxation_modes(confinement(parse_formula("0")), a, 0.0, tilt)
    assert modes.rate[:6] == pytest.approx(2 * a * np.arange(1, 7), rel=1e-11)
    var, mean = 1 / (2 * a), tilt / (2 * a)
    assert np.abs(modes.x[:4]) == pytest.approx([np.sqrt(var), 0, 0, 0], abs=1e-11)
    expected = [2 * mean * np.sqrt(var), np.sqrt(2) * var, 0, 0]
    assert np.abs(modes.square[:4]) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("text", ["sign(x)", "0.2*tanh(5*x)", "x**3 - x"])
def test_modes_resolve_the_covariances_and_the_noise(text):
    shape, (a, k, tilt) = confinement(parse_formula(text)), (0.3, 2.0, 0.9)
    modes = relaxation_modes(shape, a, k, tilt)
    found = moments(shape, *(np.array([v]) for v in (a, k, tilt)))
    _, x1, x2, x3, x4 = found.powers[:, 0]
    assert np.sum(modes.x**2) == pytest.approx(x2 - x1**2, rel=1e-11)
    assert np.sum(modes.x * modes.square) == pytest.approx(x3 - x1 * x2, rel=1e-10)
    assert np.sum(modes.square**2) == pytest.approx(x4 - x2**2, rel=1e-11)
    cross = found.mixed[1, 0] - x1 * found.mixed[0, 0]
    assert np.sum(modes.x * modes.energy) == pytest.approx(cross, abs=1e-11)
    # Dirichlet forms: the mean square slopes of x and x^2 are 1 and 4 E x^2.
    assert np.sum(modes.rate * modes.x**2) == pytest.approx(1.0, rel=1e-9)
    assert np.sum(modes.rate * modes.square**2) == pytest.approx(4 * x2, rel=1e-9)


@pytest.mark.parametrize("condensate", [0.0, 0.3])
def test_winding_counts_the_growing_modes_of_the_matrix(condensate):
    rng = np.random.default_rng(5)
    counts, oscillating = set(), 0
    for _ in range(80):
        size = 6
        square = rng.standard_normal(size)
        about = Linearisation(
            rate=np.sort(rng.uniform(0.1, 3, size)),
            readout=rng.standard_normal(size),
            energy=square * rng.uniform(0.2, 1),
            drive=2 * rng.standard_normal(size),
            square=square,
            condensate=condensate,
        )
        values = np.linalg.eigvals(about.matrix(np.arange(size)))
        growing = values[values.real > 0]
        assert about.growing() == growing.size
        counts.add(growing.size)
        oscillating += bool(np.any(np.abs(growing.imag) > 0))
        assert about.rightmost().real == pytest.approx(values.real.max(), abs=1e-7)
    assert counts >= {0, 1, 2}
    assert oscillating >= 2


@pytest.mark.parametrize(
    ("field", "q"),
    [
        (oist(0.3), 0.74),
        (oist(0.3), 0.25),
        (ica(0.05), 0.4),
        (oist(0.3, phi="0.2*tanh(5*x)"), 0.6),
        (oist(0.3, prior="gaussian"), 0.6),
        (oist(0.3, bias=0.5), -0.3),
    ],
)
def test_static_response_is_the_slope_of_the_self_consistency(field, q):
    state = close(field, np.array([q]))
    secular = linearise(field, state, 0).secular(np.zeros(1, dtype=complex))
    assert secular.real == pytest.approx(-state.slope, abs=1e-10)


@pytest.mark.parametrize("omega", [0.2, 0.24, 0.26, 0.4])
def test_without_regularizer_the_rate_of_the_closed_equation(omega):
    # Oja: dQ/dt = (tau omega - tau^2/2) Q near 0, and variances relax with 4 h = tau^2.
    found = steady_states(oist(omega, phi="0"))
    rate = max(0.5 * omega - 0.125, -0.125)
    assert found.growth[found.q == 0] == pytest.approx([rate], abs=1e-9)


def test_unstable_rate_of_the_closed_equation_of_ica():
    # dQ/dt = b (1 - Q^2) - g Q for phi = 0.
    field, tau = ica(0.05, phi="0"), 0.05
    found = steady_states(field)
    q, step = float(found.q[-2]), 1e-5

    def drift(x):
        return field.pull(x, tau) * (1 - x * x) - field.diffusion(x, tau) * x

    assert drift(q) == pytest.approx(0.0, abs=1e-13)
    rate = (drift(q + step) - drift(q - step)) / (2 * step)
    assert found.growth[-2] == pytest.approx(rate, rel=1e-7)


def _by_finite_volumes(field, q, h, cells):
    """Fourth eigenvalue of the Jacobian of a plain discretisation, taken by differences."""
    tau, nodes = field.schedule.constant, field.prior.nodes
    xi, w = nodes.points, nodes.weights
    edges = np.linspace(-9.0, 11.0, cells + 1)
    x, dx = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    inner, phi = edges[1:-1], field.phi.value(edges[1:-1])

    def flow(p):
        """dP/dt, with the multiplier that conserves the sum of P x^2."""
        p = p.reshape(xi.size, cells)
        overlap = np.sum(w[:, None] * xi[:, None] * p * x) * dx
        b, g = field.pull(overlap, tau), field.diffusion(overlap, tau)
        drift = b * xi[:, None] - field.strength(tau) * phi
        middle, slope = (p[:, 1:] + p[:, :-1]) / 2, np.diff(p, axis=1) / dx
        fluxes = [drift * middle - g * slope, -2 * inner * middle]
        change = [-np.diff(np.pad(f, ((0, 0), (1, 1))), axis=1) / dx for f in fluxes]
        second = [np.sum(w[:, None] * c * x * x) for c in change]
        return (change[0] - second[0] / second[1] * change[1]).ravel()

    g = field.diffusion(q, tau)
    tilt = field.pull(q, tau) / g * xi
    start = density(confinement(field.phi), h / g, field.strength(tau) / g, tilt, x).ravel()
    bumps = 1e-6 * np.eye(start.size)
    columns = [(flow(start + e) - flow(start - e)) / 2e-6 for e in bumps]
    values = np.sort(np.linalg.eigvals(np.stack(columns, axis=1)).real)[::-1]
    # Two masses and the second moment are conserved.
    assert np.abs(values[:3]).max() < 1e-6
    return values[3]


@pytest.mark.deep
def test_rates_are_the_limit_of_a_plain_discretisation():
    field = oist(0.4)
    found = steady_states(field)
    coarse, fine = (
        _by_finite_volumes(field, float(found.q[-1]), float(found.h[-1]), cells)
        for cells in (100, 200)
    )
    exact = found.growth[-1]
    assert abs(fine - exact) < 0.35 * abs(coarse - exact)
    assert (4 * fine - coarse) / 3 == pytest.approx(exact, rel=0.01)


def test_condensed_states_follow_the_linear_theory_at_zero_overlap():
    # Unstable above omega_1 = tau/(2 min(1, m0)), m0 = tau^4/(2 beta^2), whatever the prior.
    for prior in ({"sparse": 0.05}, {"sparse_sign": 0.2}, "dense"):
        for omega, stable in ((0.58, True), (0.59, False)):
            field = oist(omega, prior=prior)
            state = close(field, np.zeros(1))
            assert bool(state.condensed[0])
            found, growth = stability(field, state, 0)
            assert found is stable
            assert np.isnan(growth) if stable else 0 < growth < 0.01


def test_condensed_informative_states_are_unstable():
    found = steady_states(oist(0.3))
    i = np.flatnonzero((found.kind == "condensed") & (found.q > 0))
    assert i.size == 1
    assert not found.stable[i[0]]
    assert found.growth[i[0]] > 0.01
