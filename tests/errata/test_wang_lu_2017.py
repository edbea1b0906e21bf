"""Each entry of docs/reference/errata.md on Wang and Lu 2017, against an independent computation.

A test of an error asserts two things: that the corrected form agrees, and that the printed one
does not.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import average, averages
from tests.reference import online_ica_vector

AGREES, REJECTED = 4.5, 10.0  # standard errors
CASES = [("x**3", "uniform"), ("tanh(x)", "laplace"), ("x**2", {"chi2": 2})]
CUBIC = [("rademacher", 1.0, 1.0), ("uniform", 1.8, 27 / 7), ("laplace", 6.0, 90.0)]
SIGN = {"rademacher": "x**3", "uniform": "x**3", "laplace": "-x**3"}


def pair(rng, n, overlap):
    """xi and x with |xi|^2 = |x|^2 = n and xi.x/n = overlap, exactly."""
    xi = rng.standard_normal(n)
    xi *= np.sqrt(n / (xi @ xi))
    z = rng.standard_normal(n)
    z -= xi * (xi @ z) / n
    return xi, overlap * xi + np.sqrt(1 - overlap**2) * z * np.sqrt(n / (z @ z))


def observations(rng, xi, source, size):
    """c and y of (1), shapes (size,) and (size, n)."""
    n, c = xi.size, make_source(source).sample(rng, size)
    z = rng.standard_normal((size, n))
    return c, np.outer(c, xi) / np.sqrt(n) + z - np.outer(z @ xi, xi) / n


def increments(x, y, f, tau):
    """x~ - x of (2) with phi = 0, one row an observation."""
    u = y @ x / np.sqrt(x.size)
    return -tau / np.sqrt(x.size) * f(u)[:, None] * y


def moments_of(f, source, q):
    """<c f>, <f'> and <f^2> by quadrature."""
    formula, law = parse_formula(f), make_source(source)
    slope = formula.derivative.value
    return (
        average(lambda c, u: c * formula.value(u), formula, law, q)[0],
        average(lambda c, u: slope(u), formula, law, q)[0],
        average(lambda c, u: formula.value(u) ** 2, formula, law, q)[0],
    )


def assert_agrees(samples, corrected, *printed):
    mean, error = samples.mean(), samples.std() / np.sqrt(samples.size)
    assert abs(mean - corrected) < AGREES * error
    for wrong in printed:
        assert abs(mean - wrong) > REJECTED * error


def test_3_the_sphere_has_radius_root_n():
    rng, n = np.random.default_rng(1), 50
    xi, x = pair(rng, n, 0.5)
    _, y = observations(rng, xi, "uniform", 1)
    moved = x + increments(x, y, lambda u: u**3, 0.1)[0]
    after = np.sqrt(n) * moved / np.linalg.norm(moved)
    assert np.linalg.norm(after) == pytest.approx(np.sqrt(n), rel=1e-14)
    assert abs(np.linalg.norm(after) - n) > 40


@pytest.mark.parametrize(("f", "source"), CASES, ids=str)
def test_11_has_the_opposite_sign(f, source):
    """-G is the coefficient of xi in the drift; xi - Q x sees it alone, at any n."""
    rng, q, tau = np.random.default_rng(2), 0.6, 0.1
    xi, x = pair(rng, 20, q)
    _, y = observations(rng, xi, source, 400_000)
    found = increments(x, y, parse_formula(f).value, tau) @ (xi - q * x) / (1 - q * q)
    cf, slope, _ = moments_of(f, source, q)
    gain = tau * cf - tau * q * slope
    assert_agrees(found, -gain, gain)


@pytest.mark.parametrize(("source", "m4", "m6"), CUBIC)
def test_11_as_printed_contradicts_12(source, m4, m6):
    for q in (0.3, -0.7, 0.95):
        cf, slope, _ = moments_of("x**3", source, q)
        corrected, printed = cf - q * slope, -cf + q * slope
        twelve = q**3 * (m4 - 3)
        assert corrected == pytest.approx(twelve, rel=1e-9)
        assert abs(printed - twelve) > abs(twelve)


def test_11_with_the_printed_sign_predicts_the_wrong_path():
    tau, q0, times = 0.02, 0.6, [0.0, 100.0, 150.0]
    sim = hdica.simulate(
        hdica.OnlineICA(tau=tau, source="uniform", start={"overlap": q0, "exact": True}),
        n=2000,
        times=times,
        seeds=range(40),
    )["Q"].values[:, -1]

    mean = averages(parse_formula("x**3"), make_source("uniform"))

    def path(sign):
        def rhs(t, q):
            return (q * q - 1) * sign * tau * mean.gain(q) - q * tau**2 * mean.power(q) / 2

        return solve_ivp(rhs, (0, 150), [q0], rtol=1e-8, atol=1e-10).y[0, -1]

    assert_agrees(sim, path(1), path(-1))


def test_example_1_needs_no_symmetry():
    """(12) and (13) hold for a centred exponential source, whose third moment is 2."""
    law, m4, m6 = make_source({"chi2": 2}), 9.0, 265.0
    assert law.moment(3) == pytest.approx(2.0, rel=1e-9)
    for q in (0.2, 0.6, -0.9):
        cf, slope, square = moments_of("x**3", {"chi2": 2}, q)
        assert cf - q * slope == pytest.approx(q**3 * (m4 - 3), rel=1e-8)
        thirteen = 15 + 15 * q**4 * (1 - q * q) * (m4 - 3) + q**6 * (m6 - 15)
        assert square == pytest.approx(thirteen, rel=1e-8)


def gamma(x, xi, q, r, tau, g, noise, phi):
    """(10)."""
    return x * (q * g + tau * r - noise / 2) - xi * g - tau * phi


def test_16_has_the_opposite_signs():
    rng, tau, beta = np.random.default_rng(3), 0.05, 0.4
    x, xi = rng.standard_normal((2, 200))
    q, r = 0.6, 0.3
    g = tau * q**3 * (1.8 - 3)
    noise = tau**2 * (15 + 15 * q**4 * (1 - q * q) * (1.8 - 3) + q**6 * (27 / 7 - 15))
    force = gamma(x, xi, q, r, tau, g, noise, beta * np.sign(x))

    def slope(d, b):
        return d * (x - b * xi) + tau * beta * np.sign(x)

    d = noise / 2 - q * g - tau * r
    assert np.abs(slope(d, -g / d) + force).max() < 1e-15
    assert np.abs(slope(-d, g / -d) + force).max() > 0.5 * np.abs(force).max()
    # Nor do the printed signs agree with the printed sign of (11).
    force = gamma(x, xi, q, r, tau, -g, noise, beta * np.sign(x))
    d = q * -g - noise / 2 + tau * r
    assert np.abs(slope(d, -g / d) + force).max() > 0.5 * np.abs(force).max()


def test_16_is_not_always_convex():
    """Example 2 with beta = 0.5: d < 0 at t = 0, and the potential has no minimum."""
    tau, beta, rho = 0.02, 0.5, 0.3
    q = np.sqrt(rho / 2)
    # E abs(x) of a normal law with mean m and variance m^2, m^2 = 1/2.
    r = beta * np.sqrt(0.5) * (np.sqrt(2 / np.pi) * np.exp(-0.5) + erf(np.sqrt(0.5)))
    cf, slope, square = moments_of("x**3", "rademacher", q)
    d = tau**2 * square / 2 - q * tau * (cf - q * slope) - tau * r
    assert d == pytest.approx(-0.004473526496, abs=1e-11)
    far = np.array([9.0, 10.0, 11.0])
    energy = d / 2 * far**2 + tau * beta * np.abs(far)
    assert energy[0] - 2 * energy[1] + energy[2] < 0
    # The printed d is -d, and is negative at the stable fixed point instead (phi = 0, R = 0).
    steady = float(hdica.fixed_points(hdica.OnlineICA(tau=tau, source="rademacher"))["Q"][-1])
    cf, slope, square = moments_of("x**3", "rademacher", steady)
    assert steady * tau * (cf - steady * slope) - tau**2 * square / 2 < -0.03


def test_17_has_a_minus_sign():
    """One step of (2), written out apart: x + (17) leads there with the minus sign alone."""
    n, tau, beta = 60, 0.1, 0.3
    xi, x = pair(np.random.default_rng(4), n, 0.5)
    after = online_ica_vector(
        np.random.default_rng(5),
        xi,
        x,
        tau,
        lambda u: u**3,
        lambda x: beta * np.sign(x),
        lambda rng: make_source("uniform").sample(rng, 1)[0],
        1,
    )
    _, y = observations(np.random.default_rng(5), xi, "uniform", 1)
    gradient = tau / np.sqrt(n) * (y[0] @ x / np.sqrt(n)) ** 3 * y[0]
    ends = [x + sign * gradient - tau / n * beta * np.sign(x) for sign in (-1, 1)]
    corrected, printed = (np.sqrt(n) * end / np.linalg.norm(end) for end in ends)
    assert corrected == pytest.approx(after, abs=1e-13)
    assert np.linalg.norm(printed - after) > 0.1 * np.linalg.norm(gradient)


@pytest.mark.parametrize(("f", "source"), CASES, ids=str)
def test_appendix_mean_increment(f, source):
    """E[x~ - x] = -(xi G + tau x <f'>)/n: xi - Q x sees the first term, x - Q xi the second."""
    rng, q, tau = np.random.default_rng(5), 0.6, 0.1
    xi, x = pair(rng, 20, q)
    _, y = observations(rng, xi, source, 400_000)
    moves = increments(x, y, parse_formula(f).value, tau)
    cf, slope, _ = moments_of(f, source, q)
    gain = tau * cf - tau * q * slope
    # As printed with either sign of (11).
    assert_agrees(moves @ (xi - q * x) / (1 - q * q), -gain, -tau * gain, tau * gain)
    along_x = moves @ (x - q * xi) / (1 - q * q)
    if slope == pytest.approx(0.0, abs=1e-9):  # f = x^2: <f'> = 2 <u> = 0
        assert abs(along_x.mean()) < AGREES * along_x.std() / np.sqrt(along_x.size)
    else:
        assert_agrees(along_x, -tau * slope, tau * slope)


def test_appendix_stein_term_carries_q():
    rng, n, q, size = np.random.default_rng(6), 200, 0.6, 20_000
    xi, x = pair(rng, n, q)
    found = []
    for _ in range(10):
        c, y = observations(rng, xi, "uniform", size // 10)
        a = y - np.outer(c, xi) / np.sqrt(n)
        without = (q * c + a @ x / np.sqrt(n))[:, None] - a * x / np.sqrt(n)
        found.append((without**3 * y) @ xi / np.sqrt(n))
    cf, slope, _ = moments_of("x**3", "uniform", q)
    assert_agrees(np.concatenate(found), cf - q * slope, cf - slope)


def test_appendix_normalisation_keeps_root_n():
    rng, n = np.random.default_rng(7), 50
    moved = rng.standard_normal(n)
    assert np.linalg.norm(moved / np.linalg.norm(moved / np.sqrt(n))) == pytest.approx(np.sqrt(n))
    assert np.linalg.norm(moved / np.linalg.norm(moved / n)) == pytest.approx(n)


def test_appendix_normalisation_has_a_plus_sign():
    """With x.Delta and Delta.Delta of order e, the correct expansion leaves O(e^2)."""
    rng, n = np.random.default_rng(8), 50
    _, x = pair(rng, n, 0.5)
    across = rng.standard_normal(n)
    across -= x * (across @ x) / n

    def residuals(e):
        delta = np.sqrt(e) * across + e * x
        exact = np.sqrt(n) * (x + delta) / np.linalg.norm(x + delta)
        first, second = x @ delta / n, delta @ delta / n
        return [np.linalg.norm(exact - (x - x * (first + s * second / 2) + delta)) for s in (1, -1)]

    coarse, fine = np.array(residuals(1e-3)), np.array(residuals(1e-4))
    order = np.log10(coarse / fine)
    assert order[0] == pytest.approx(1.5, abs=0.1)  # Delta (x.Delta + ...) is the next term
    assert order[1] == pytest.approx(1.0, abs=0.05)
    assert fine[1] > 50 * fine[0]


@pytest.mark.deep
def test_9_and_10_are_correct_with_the_corrected_11():
    rng, n, q, tau, beta = np.random.default_rng(9), 200, 0.6, 0.1, 0.5
    xi, x = pair(rng, n, q)
    kink = np.sign(x)
    rest = kink - xi * (kink @ xi) / n
    ahead = x - q * xi
    rest -= ahead * (rest @ ahead) / (ahead @ ahead)
    found = []
    for _ in range(20):
        _, y = observations(rng, xi, "uniform", 4000)
        moved = x + increments(x, y, lambda u: u**3, tau) - tau / n * beta * kink
        step = np.sqrt(n) * moved / np.linalg.norm(moved, axis=1)[:, None] - x
        directions = np.stack([x, xi - q * x, rest], axis=1)
        found.append(np.column_stack([step @ directions, (step**2).sum(axis=1)]))
    samples = np.concatenate(found)
    cf, slope, square = moments_of("x**3", "uniform", q)
    g, noise, r = tau * (cf - q * slope), tau**2 * square, beta * np.mean(np.abs(x))
    drift = gamma(x, xi, q, r, tau, g, noise, beta * kink)
    expected = np.array([*(drift @ d / n for d in (x, xi - q * x, rest)), noise])
    mean, error = samples.mean(axis=0), samples.std(axis=0) / np.sqrt(len(samples))
    assert np.all(np.abs(mean - expected) < AGREES * error + 5 * np.abs(expected) / n)
    assert np.all(np.abs(mean) > 5 * error)  # each direction sees its term


@pytest.mark.parametrize(("source", "m4", "m6"), CUBIC)
def test_12_and_13_are_correct(source, m4, m6):
    for q in (0.2, 0.6, -0.9):
        cf, slope, square = moments_of("x**3", source, q)
        assert cf - q * slope == pytest.approx(q**3 * (m4 - 3), rel=1e-9)
        thirteen = 15 + 15 * q**4 * (1 - q * q) * (m4 - 3) + q**6 * (m6 - 15)
        assert square == pytest.approx(thirteen, rel=1e-9)


@pytest.mark.parametrize(("source", "m4", "m6"), CUBIC)
def test_14_is_correct_and_finds_only_sub_gaussian_sources(source, m4, m6):
    tau, q0, end = 0.02, 0.6, 100.0

    def rhs(t, y):
        q = y[0]
        square = 15 * q * q * (1 - q) * (m4 - 3) + q**3 * (m6 - 15) + 15
        return [-2 * tau * q * q * (1 - q) * (m4 - 3) - tau**2 * q * square]

    q = solve_ivp(rhs, (0, end), [q0**2], rtol=1e-9, atol=1e-12).y[0, -1]
    ica = hdica.OnlineICA(tau=tau, source=source, start={"overlap": q0, "exact": True})
    found = hdica.simulate(ica, n=2000, times=[end], seeds=range(40))["Q"].values[:, 0] ** 2
    assert abs(found.mean() - q) < AGREES * found.std() / np.sqrt(40) + 10 / 2000
    assert (found.mean() > q0**2) == (m4 < 3)


@pytest.mark.parametrize(("source", "m4", "m6"), CUBIC)
def test_14_has_two_more_fixed_points_below_tau_c_and_none_above(source, m4, m6):
    def positive(tau):
        found = hdica.fixed_points(
            hdica.OnlineICA(tau=tau, source=source, nonlinearity=SIGN[source])
        )
        q = found["Q"].values
        return found["stable"].values[q >= -1e-12].tolist()

    ica = hdica.OnlineICA(tau=0.01, source=source, nonlinearity=SIGN[source])
    tau_c = float(hdica.critical(ica)["value"][0])
    assert positive(0.98 * tau_c) == [True, False, True]
    assert positive(1.02 * tau_c) == [True]


def test_appendix_covariance_is_correct_to_leading_order():
    gaps = []
    for n in (50, 500):
        xi, x = pair(np.random.default_rng(10), n, 0.6)
        cov = np.eye(n) - np.outer(xi, xi) / n
        i = int(np.argmax(np.abs(xi)))
        others = x.copy()
        others[i] = 0.0
        exact = np.array([others @ cov @ others / n, cov[i] @ others / np.sqrt(n), cov[i, i]])
        q, entry, root = 0.6, xi[i], np.sqrt(n)
        assert exact[1] == pytest.approx(-entry / root * (q - entry * x[i] / n), rel=1e-12)
        assert exact[2] == pytest.approx(1 - entry**2 / n, rel=1e-12)
        printed = np.array([1 - q * q, -entry * q / root, 1.0])
        # The cross term is itself of order n^-1/2.
        gaps.append(np.abs(exact - printed) * [1, root, 1] * n / (1 + entry**2) / (1 + x[i] ** 2))
    assert np.all(np.array(gaps) < 2.0)
