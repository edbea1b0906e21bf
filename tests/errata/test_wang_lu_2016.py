"""Each entry of docs/reference/errata.md on Wang and Lu 2016, against an independent computation.

A test of an error asserts two things: that the corrected form agrees, and that the printed one
does not.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad, simpson, solve_ivp
from scipy.optimize import brentq, root
from scipy.special import erfcx

TAU, BETA, OMEGA, RHO = 0.5, 0.27, 1.0, 0.05  # Example 2
ATOMS, SHARES = np.array([0.0, RHO**-0.5]), np.array([1 - RHO, RHO])
AGREES = 4.5  # standard errors


def half_line(h, g, pull, beta):
    """Moments 0, 1, 2 of exp(-(h x^2 + beta x - pull x)/g) over x > 0, by quadrature."""
    top = max(0.0, (pull - beta) / (2 * h)) if h > 0 else 0.0
    shift = (h * top**2 + beta * top - pull * top) / g
    width = np.sqrt(g / h) if h > 0 else g / (beta - pull)
    edges = [max(0.0, top - 12 * width), top, top + 12 * width * (1 if h > 0 else 4)]

    def moment(k):
        def integrand(x):
            return x**k * np.exp(shift - (h * x * x + beta * x - pull * x) / g)

        return sum(
            quad(integrand, a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
            for a, b in pairwise(edges)
            if b > a
        )

    return np.array([moment(k) for k in range(3)]) * np.exp(-shift)


def boltzmann(h, g, pull, beta):
    """E x, E abs(x) and E x^2 under (17), by quadrature on both sides of the kink."""
    right, left = half_line(h, g, pull, beta), half_line(h, g, -pull, beta)
    mass = right[0] + left[0]
    return (right[1] - left[1]) / mass, (right[1] + left[1]) / mass, (right[2] + left[2]) / mass


def diffusion(q, omega=OMEGA, tau=TAU):
    return tau**2 * (1 + omega * q * q) / 2


def averages(q, r, beta=BETA, omega=OMEGA):
    """Right-hand sides of (12) and (13), and E x^2, under the density (17)."""
    g = diffusion(q, omega)
    h = (TAU * omega * q * q - r + g) / 2
    given = np.array([boltzmann(h, g, TAU * omega * q * xi, beta) for xi in ATOMS])
    mean, size, square = given.T
    return SHARES @ (ATOMS * mean), beta * (SHARES @ size), SHARES @ square


def steady_state(omega=OMEGA, guess=(0.85, 0.15)):
    """Q and R of the informative state of Example 2 from (12), (13) and (17) alone."""
    found = root(lambda y: np.subtract(averages(*y, omega=omega)[:2], y), guess, tol=1e-11)
    assert found.success
    return found.x


def steps(rng, xi, x, count, cut, omega=OMEGA, watch=None):
    """Rows of x follow (5) with soft thresholding at cut/p; ``watch(x)`` is called each step."""
    p = xi.size
    for _ in range(count):
        noise, c = rng.standard_normal(x.shape), rng.standard_normal((len(x), 1))
        y = np.sqrt(omega / p) * c * xi + noise
        x = x + TAU / p * y * np.sum(y * x, axis=1, keepdims=True)
        x = np.sign(x) * np.maximum(np.abs(x) - cut / p, 0)
        x = x * np.sqrt(p / np.sum(x * x, axis=1, keepdims=True))
        if watch is not None:
            watch(x)
    return x


def test_7_and_17_use_two_penalties():
    """The update needs phi = tau Phi' of (7), the density (17) an antiderivative of phi."""
    penalty = BETA / TAU  # Phi of (7) in Example 1 is penalty abs(x)
    x, p = np.linspace(0.5, 3, 40), 1000
    prox = x - TAU / p * penalty  # the proximal map of tau Phi/p away from its kink
    assert prox == pytest.approx(x - BETA / p, abs=1e-15)
    assert np.abs(prox - (x - penalty / p)).min() > 0.2 * BETA / p
    # (16) holds for the density (17) with Phi' = phi, not with the Phi of (7).
    q, r = 0.6, 0.16
    g, xi = diffusion(q), ATOMS[1]
    h = (TAU * OMEGA * q * q - r + g) / 2
    gamma = TAU * OMEGA * q * xi - BETA - x * (TAU * OMEGA * q * q - r + g)
    for slope, agrees in ((BETA, True), (penalty, False)):
        log_slope = -(2 * h * x + slope - TAU * OMEGA * q * xi) / g
        assert (np.abs(g * log_slope - gamma).max() < 1e-12) == agrees


def test_proposition_2_integrates_q_itself():
    """Q, not its derivative, is Q_0 plus the integral."""
    q0, t = np.sqrt(RHO / 2), 2.0
    first, second = TAU * OMEGA * (1 + TAU / 2), TAU * (OMEGA - TAU / 2)

    def closed(t):
        return (second / (first + (second / q0**2 - first) * np.exp(-2 * second * t))) ** 0.5

    def rate(t):
        return -first * closed(t) ** 3 + second * closed(t)

    right = q0 + quad(rate, 0, t, epsabs=1e-12)[0]
    assert closed(t) == pytest.approx(right, abs=1e-10)
    assert abs(rate(t) - right) > 0.1


def laplace_second_moment(tau, beta):
    """E x^2 under (20), by quadrature."""
    b = 2 * beta / tau**2
    return quad(lambda x: x * x * b * np.exp(-b * x), 0, 60 / b, epsrel=1e-12)[0]


@pytest.mark.parametrize("beta", [0.05, 0.1, 0.15, 0.27])
def test_20_leaves_the_sphere(beta):
    """E x^2 is tau^4/(2 beta^2), which the rule keeps at one."""
    m0 = TAU**4 / (2 * beta**2)
    assert laplace_second_moment(TAU, beta) == pytest.approx(m0, rel=1e-9)
    assert abs(m0 - 1) > 0.3
    if m0 < 1:
        return
    # With h > 0 instead there is a state on the sphere, and it solves (13) with R < tau^2/2.
    g = diffusion(0.0)
    h = brentq(lambda h: boltzmann(h, g, 0.0, beta)[2] - 1, 1e-3, 1.0, xtol=1e-13)
    size = beta * boltzmann(h, g, 0.0, beta)[1]
    assert size == pytest.approx(g - 2 * h, rel=1e-8)
    assert size < 0.9 * TAU**2 / 2


@pytest.mark.deep
def test_20_is_not_what_the_rule_reaches_above_m0_one():
    """p = 400, beta = 0.1, no signal: R is 0.0755 and not tau^2/2 = 0.125."""
    beta, p, rng, seen = 0.1, 400, np.random.default_rng(1), []
    x = rng.standard_normal((6, p))
    x *= np.sqrt(p / np.sum(x * x, axis=1, keepdims=True))
    x = steps(rng, np.zeros(p), x, 20 * p, beta, 0.0)
    steps(
        rng,
        np.zeros(p),
        x,
        20 * p,
        beta,
        0.0,
        lambda x: seen.append(beta * np.abs(x).mean(axis=1)),
    )
    found = np.mean(seen, axis=0)
    mean, error = found.mean(), found.std(ddof=1) / np.sqrt(found.size)
    g = diffusion(0.0)
    h = brentq(lambda h: boltzmann(h, g, 0.0, beta)[2] - 1, 1e-3, 1.0)
    corrected = beta * boltzmann(h, g, 0.0, beta)[1]
    assert corrected == pytest.approx(0.0755171713511, abs=1e-8)
    assert error < 2e-4
    assert abs(mean - corrected) < AGREES * error + 1 / p * corrected
    assert abs(mean - TAU**2 / 2) > 100 * error


def condensed(p):
    """Share of |x|^2 on all entries but one, x_1: there 2 h = -beta/x_1 holds x_1 in place."""
    share = 0.45
    for _ in range(200):
        top = np.sqrt(p * (1 - share))
        x = np.linspace(0, top, 4001)
        weight = np.exp((x * x / (2 * top) - x) * BETA / diffusion(0.0))
        share = (share + simpson(x * x * weight, x=x) / simpson(weight, x=x)) / 2
    return share


@pytest.mark.deep
def test_20_leaves_the_rest_of_the_norm_on_one_entry_below_m0_one():
    """No signal, beta = 0.27: all entries but one follow (20) up to O(p^-1/2)."""
    p, rng, top = 400, np.random.default_rng(2), []
    x = rng.standard_normal((10, p))
    x[:, 0] = np.sqrt(0.5 * p)  # which one it will be is decided; how large it is, is not
    x *= np.sqrt(p / np.sum(x * x, axis=1, keepdims=True))
    x = steps(rng, np.zeros(p), x, 40 * p, BETA, 0.0)
    steps(rng, np.zeros(p), x, 60 * p, BETA, 0.0, lambda x: top.append((x * x).max(axis=1) / p))
    found = np.mean(top, axis=0)
    error = found.std(ddof=1) / np.sqrt(found.size)
    assert error < 0.04
    assert abs(1 - found.mean() - condensed(p)) < AGREES * error
    # p independent entries of density (20) alone leave some 0.03 for the largest of them.
    alone = np.max(rng.laplace(scale=TAU**2 / (2 * BETA), size=(4000, p)) ** 2, axis=1) / p
    assert found.mean() - alone.mean() > 10 * error
    # The share of the others falls to m0 as p grows.
    m0 = TAU**4 / (2 * BETA**2)
    gaps = [condensed(p) - m0 for p in (400, 6400, 102_400)]
    assert 0 < gaps[2] < gaps[1] / 3 < gaps[0] / 9


def test_independent_entries_leave_a_random_norm():
    """|xi|^2/p of independent entries has standard deviation sqrt((1 - rho)/(rho p))."""
    p, rng = 10_000, np.random.default_rng(3)
    norms = rng.binomial(p, RHO, 4000) / (RHO * p)
    expected = np.sqrt((1 - RHO) / (RHO * p))
    assert expected == pytest.approx(0.0436, abs=1e-4)
    assert norms.std() == pytest.approx(expected, rel=5 / np.sqrt(2 * 4000))
    # It moves Oja's stationary Q^2: tau omega |xi|^2/p takes the place of tau omega.
    low, high = ((OMEGA * s - TAU / 2) / (OMEGA * s * (1 + TAU / 2)) for s in (1 - 0.0436, 1.0436))
    assert high - low > 0.015


def test_beta_is_tau_times_that_of_the_later_paper():
    """One step of (5)-(6) and one of (2) of the later paper agree if beta here is tau beta there.

    To order 1/p, since phi acts on the moved estimate here and on the estimate there.
    """
    rng, p, beta = np.random.default_rng(4), 100_000, 0.3
    x = rng.standard_normal(p)
    push = rng.standard_normal(p) / np.sqrt(p)  # the gradient step, of order p^-1/2 an entry
    later = x + push - TAU / p * beta * np.sign(x)
    moved = x + push
    for here, agrees in ((TAU * beta, True), (beta, False)):
        gap = np.sqrt(p) * np.linalg.norm(moved - here / p * np.sign(moved) - later)
        # A sign changes for few of the entries: some p^1/2 of them.
        assert (gap < 4 * TAU * beta * p**-0.25) == agrees


def test_the_uninformative_state_is_stable_beyond_oja_s_threshold():
    """E[xi x] in answer to a small Q is Q itself at omega = tau/(2 min(1, m0))."""
    g, m0, step = TAU**2 / 2, TAU**4 / (2 * BETA**2), 1e-4

    def response(omega):
        means = [boltzmann(0.0, g, TAU * omega * step * xi, BETA)[0] for xi in ATOMS]
        return SHARES @ (ATOMS * means) / step

    threshold = brentq(lambda omega: response(omega) - 1, 0.1, 2.0)
    assert threshold == pytest.approx(TAU / (2 * m0), rel=1e-4)
    assert threshold == pytest.approx(0.5832, rel=1e-4)
    # Oja's method finds nothing below omega = tau/2; here there is an informative state.
    q, r = steady_state(0.21, (0.6, 0.158))
    assert q == pytest.approx(0.600167584, abs=1e-6)
    assert averages(q, r, omega=0.21)[2] == pytest.approx(1.0, abs=1e-7)
    assert TAU / 2 > 0.21


@pytest.mark.deep
def test_8_to_11_are_correct():
    """Drift and diffusion of one step, along directions that see each term alone."""
    rng, p, q = np.random.default_rng(5), 200, 0.6
    xi, z = rng.standard_normal((2, p))
    xi *= np.sqrt(p / (xi @ xi))
    z -= xi * (xi @ z) / p
    x = q * xi + np.sqrt((1 - q * q) * p / (z @ z)) * z
    kink, ahead = np.sign(x), x - q * xi
    rest = kink - xi * (kink @ xi) / p
    rest -= ahead * (rest @ ahead) / (ahead @ ahead)
    directions = np.stack([x, xi - q * x, rest], axis=1)
    found = []
    for _ in range(20):
        moved = steps(rng, xi, np.tile(x, (4000, 1)), 1, BETA) - x
        found.append(np.column_stack([moved @ directions, (moved**2).sum(axis=1)]))
    samples = np.concatenate(found)
    g, r = diffusion(q), BETA * np.mean(np.abs(x))
    gamma = TAU * OMEGA * q * xi - BETA * kink - x * (TAU * OMEGA * q * q - r + g)
    expected = np.array([*(gamma @ directions / p), 2 * g])
    mean, error = samples.mean(axis=0), samples.std(axis=0) / np.sqrt(len(samples))
    assert np.all(np.abs(mean - expected) < AGREES * error + 5 * np.abs(expected) / p)
    assert np.all(np.abs(mean) > 5 * error)


@pytest.mark.parametrize("omega", [1.0, 0.25, 0.1])
def test_14_and_15_are_correct(omega):
    q0, first, second = 0.4, TAU * omega * (1 + TAU / 2), TAU * (omega - TAU / 2)

    def closed(t):
        if second == 0:
            return 1 / (2 * first * t + q0**-2)
        return second / (first + (second / q0**2 - first) * np.exp(-2 * second * t))

    # From the drift (10), contracted with xi at phi = 0.
    def rhs(t, q):
        return TAU * omega * q - q * (TAU * omega * q * q + TAU**2 / 2 * (1 + omega * q * q))

    path = solve_ivp(rhs, (0, 12), [q0], t_eval=[1.0, 4.0, 12.0], rtol=1e-10, atol=1e-12)
    assert path.y[0] ** 2 == pytest.approx([closed(t) for t in (1.0, 4.0, 12.0)], abs=1e-8)
    limit = max(0.0, (omega - TAU / 2) / (omega * (1 + TAU / 2)))
    if second != 0:
        assert closed(2000.0) == pytest.approx(limit, abs=1e-12)
    rng, p = np.random.default_rng(6), 400
    xi, z = np.ones(p), rng.standard_normal((40, p))
    z -= z.mean(axis=1, keepdims=True)
    x = q0 + np.sqrt((1 - q0**2) * p / np.sum(z * z, axis=1, keepdims=True)) * z
    found = steps(rng, xi, x, 4 * p, 0.0, omega).mean(axis=1)
    error = found.std(ddof=1) / np.sqrt(40)
    assert abs(found.mean() - closed(4.0) ** 0.5) < AGREES * error + 5 / p


def test_16_to_18_are_correct():
    """(17) solves (16), and at the fixed point of (12)-(13) it lies on the sphere."""
    q, r = steady_state()
    g = diffusion(q)
    h = (TAU * OMEGA * q * q - r + g) / 2
    assert averages(q, r)[2] == pytest.approx(1.0, abs=1e-8)
    assert (q, r) == pytest.approx((0.8538639122857554, 0.1513838588987), abs=1e-8)

    def density(x):
        return np.exp(-(h * x * x + BETA * np.abs(x) - TAU * OMEGA * q * ATOMS[1] * x) / g)

    x, d = np.array([-1.0, 0.5, 3.0, 5.0]), 1e-5
    gamma = TAU * OMEGA * q * ATOMS[1] - BETA * np.sign(x) - 2 * h * x
    slope = (density(x + d) - density(x - d)) / (2 * d)
    assert g * slope == pytest.approx(gamma * density(x), rel=1e-7)


@pytest.mark.parametrize(
    ("factor", "constant", "agrees"),
    [
        (1 / np.sqrt(np.pi), 2 / np.pi, True),  # printed: f = (2/pi) exp(x^2) int_x^inf exp(-z^2)
        (1.0, 2 / np.sqrt(np.pi), True),  # the usual scaled complementary error function
        (1.0, 2 / np.pi, False),  # that one with the printed constant
    ],
)
def test_19_is_correct_with_its_own_f_and_only_with_it(factor, constant, agrees):
    q, r = steady_state()
    g = diffusion(q)
    h = (TAU * OMEGA * q * q - r + g) / 2
    plus = (BETA + TAU * OMEGA * ATOMS * q) / (2 * np.sqrt(g * h))
    minus = (BETA - TAU * OMEGA * ATOMS * q) / (2 * np.sqrt(g * h))
    above, below = factor * erfcx(plus), factor * erfcx(minus)
    scale = np.sqrt(g / h) / (above + below)
    found_q = SHARES @ (ATOMS * scale * (plus * above - minus * below))
    found_r = BETA * (SHARES @ (scale * (constant - plus * above - minus * below)))
    assert found_q == pytest.approx(q, abs=1e-8)
    assert (abs(found_r - r) < 1e-8) == agrees
    assert agrees or found_r == pytest.approx(0.0375693, abs=1e-6)
