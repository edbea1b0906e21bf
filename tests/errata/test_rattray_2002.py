"""Entries of docs/reference/errata.md on Rattray 2002: rule, limit (17) and optimal states.

A test of an error asserts two things: that the corrected form agrees, and that the printed one
does not.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.systems.hebbian_ica.averages import mean_function
from hdica.systems.hebbian_ica.ode import (
    as_matrix,
    integrate,
    make_field,
    part_jacobians,
)
from tests.systems.hebbian_ica.reference import step

AGREES, REJECTED = 4.5, 10.0  # standard errors
CUBIC = parse_formula("x**3")
PAIR = [[0.7, 0.2], [-0.1, 0.6]]
SKEWED = {"discrete": {"values": [-(0.3**0.5) / 0.7**0.5, 0.7**0.5 / 0.3**0.5], "weights": [7, 3]}}
FOUND = [  # signs and sources of states that are stable, xi = 1.2, 2 and 3
    ([-1], ["uniform"]),
    ([-1, -1], ["uniform", "rademacher"]),
    ([-1, 1], ["uniform", "laplace"]),
    ([-1], ["uniform", "laplace"]),
    ([-1, -1, 1], ["uniform", "rademacher"]),
]


def cube(y):
    return y**3


def laws(sources):
    return [make_source(source) for source in sources]


def hebbian(**given):
    return hdica.HebbianICA(**{"sigma": [-1], "start": {"overlap": 0.7}} | given)


def assert_agrees(samples, corrected, *printed):
    mean, error = samples.mean(), samples.std(ddof=1) / np.sqrt(samples.size)
    assert abs(mean - corrected) < AGREES * error
    for wrong in printed:
        assert abs(mean - wrong) > REJECTED * error


def xi_of(sigma, sources):
    """sigma <s^4 - 3 s^2> = sigma kappa_4, and zero beyond the sources that are found."""
    found = np.zeros(max(len(sigma), len(sources)))
    for i, (sign, law) in enumerate(zip(sigma, laws(sources), strict=False)):
        found[i] = sign * (law.moment(4) - 3)
    return found


def jacobian_of(rate, shape):
    """d rate_ij / d R_kl at R* = I by a complex step, shape (KM, KM)."""
    columns = []
    for unit in np.eye(shape[0] * shape[1]).reshape(-1, *shape):
        columns.append(rate(np.eye(*shape) + 1e-30j * unit).imag.ravel() / 1e-30)
    return np.array(columns).T


def learning_17(sigma, sources, printed=False):
    """The terms of order mu of (17), with Sigma on both sides or as printed."""
    average, signs = mean_function(CUBIC, laws(sources)), np.diag(sigma).astype(float)

    def rate(r):
        phi_s, phi_y, _ = average(r)
        turned = signs @ phi_y + (signs @ phi_y.T if printed else phi_y.T @ signs)
        return signs @ phi_s - turned @ r / 2

    return rate


def test_13_sigma_stands_on_the_right():
    rng, sigma = np.random.default_rng(1), np.array([-1.0, 1.0])
    with pytest.raises(ValueError, match="mismatch"):
        np.diag(sigma) @ np.outer(np.ones(6), np.ones(2))  # n = 6, K = 2
    # With n = K both products exist. A rotation of the data must rotate W, and that is all.
    w, turn = (np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(2))
    x = rng.standard_normal(2)

    def moves(w, x):
        push = np.outer(x, cube(w.T @ x))
        return push @ np.diag(sigma), np.diag(sigma) @ push

    (corrected, printed), turned = moves(w, x), moves(turn @ w, turn @ x)
    assert turn @ corrected == pytest.approx(turned[0], abs=1e-14)
    assert np.abs(turn @ printed - turned[1]).max() > 0.1 * np.abs(printed).max()


@pytest.mark.deep
def test_13_signs_belong_to_projections():
    """One step from W'W = I: R' - R = eta Sigma phi s', whose first row has the first sign."""
    r = [[0.6, 0.6], [0.5, -0.7]]
    system = hebbian(
        sources=["uniform"] * 2, projections=2, sigma=[-1, 1], eta=0.01, start={"overlap": r}
    )
    after = hdica.simulate(system, n=20, times=[1 / 20], seeds=range(1500), method="vector").R
    found = (after.values[:, 0] - r) / 0.01
    phi_s, _, _ = mean_function(CUBIC, laws(system.sources))(np.array(r))
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        other = [] if i == j else [system.sigma[j] * phi_s[i, j]]
        assert_agrees(found[:, i, j], system.sigma[i] * phi_s[i, j], *other)


def one_step(w, x, sigma, eta=0.01, alpha=0.3):
    """R' - R and Q' - Q of (13), and what (28) makes them of."""
    after = step(w, x, eta, alpha, sigma, cube)
    q, y = w.T @ w, w.T @ x
    keep, signs = np.eye(y.size) + alpha * (np.eye(y.size) - q), np.diag(sigma)
    rest = 2 * alpha * (np.eye(y.size) - q) @ q
    rest += alpha**2 * (np.eye(y.size) - q) @ (np.eye(y.size) - q) @ q
    change = after.T @ after - q
    return (
        change - rest,
        eta * np.outer(cube(y), y),
        signs,
        keep,
        eta**2 * (x @ x) * np.outer(cube(y), cube(y)),
    )


def data(seed, orthonormal):
    rng = np.random.default_rng(seed)
    w = np.linalg.qr(rng.standard_normal((7, 3)))[0]
    return (w if orthonormal else w + 0.2 * rng.standard_normal(w.shape)), rng.standard_normal(7)


@pytest.mark.parametrize("orthonormal", [True, False], ids=["Q = I", "any Q"])
def test_28_has_sigma_on_both_sides(orthonormal):
    sigma = np.array([1.0, -1.0, 1.0])
    change, drive, signs, keep, square = one_step(*data(2, orthonormal), sigma)
    assert change == pytest.approx(
        signs @ drive @ keep + keep @ drive.T @ signs + signs @ square @ signs, abs=1e-14
    )
    printed = signs @ keep @ drive + signs @ drive.T @ keep + square
    assert np.abs(printed - change).max() > 0.1 * np.abs(change).max()
    assert np.abs(printed - printed.T).max() > 0.1 * np.abs(change).max()


def test_28_multiplies_w_from_the_right():
    """Seen without Sigma: with Q = I the two places are one, else not."""
    for orthonormal in (True, False):
        change, drive, _, keep, square = one_step(*data(3, orthonormal), np.ones(3))
        corrected, printed = drive @ keep + keep @ drive.T, keep @ drive + drive.T @ keep
        assert change - square == pytest.approx(corrected, abs=1e-14)
        gap = np.abs(printed - (change - square)).max() / np.abs(change).max()
        assert gap < 1e-12 if orthonormal else gap > 0.02


def test_28_and_29_are_correct_for_r():
    """The first line of (28), exactly; R is the first rows of W if x = (s, g)."""
    w, x = data(4, orthonormal=False)
    sigma, eta, alpha = np.array([1.0, -1.0, -1.0]), 0.01, 0.3
    after = step(w, x, eta, alpha, sigma, cube)
    r, s, q = w[:2].T, x[:2], w.T @ w
    printed = eta * np.diag(sigma) @ np.outer(cube(w.T @ x), s) + alpha * (np.eye(3) - q) @ r
    assert after[:2].T - r == pytest.approx(printed, abs=1e-15)


def test_17_has_sigma_on_both_sides():
    """The off-diagonal overlap of two projections with different signs, simulated at n = 2000."""
    sources, sigma, mu = ["uniform", "laplace"], [-1, 1], 0.02
    system = hebbian(sources=sources, projections=2, sigma=sigma, mu=mu, start={"overlap": PAIR})
    found = hdica.simulate(system, n=2000, times=[40.0], seeds=range(64), method="chain").R.values
    corrected = hdica.limit(system, times=[40.0]).R.values[0]
    average, learning = mean_function(CUBIC, laws(sources)), learning_17(sigma, sources, True)

    def printed(_, flat):
        r = flat.reshape(2, 2)
        return (mu * learning(r) - mu**2 * average(r)[2] @ r / 2).ravel()

    solved = solve_ivp(printed, (0, 40), np.ravel(PAIR), rtol=1e-9, atol=1e-11)
    wrong = solved.y[:, -1].reshape(2, 2)
    assert (corrected[0, 1], wrong[0, 1]) == pytest.approx((0.102467, 0.184611), abs=2e-6)
    assert_agrees(found[:, 0, 0, 1], corrected[0, 1], wrong[0, 1])
    assert_agrees(found[:, 0, 1, 0], corrected[1, 0], wrong[1, 0])


def test_30_to_32_keep_q_symmetric():
    """(32) times 1/alpha_0: how far W'W is from I, off the diagonal, simulated at n = 2000."""
    sources, mu, n, alpha = ["rademacher", "laplace"], 0.02, 2000, 0.5
    r = [[0.8, 0.3], [-0.4, 0.6]]
    system = hebbian(
        sources=sources, projections=2, sigma=[-1, 1], mu=mu, alpha=alpha, start={"overlap": r}
    )
    # After twenty steps Q has forgotten Q = I; ten steps later it has forgotten itself.
    found = hdica.simulate(
        system, n=n, times=np.arange(20, 420, 10) / n, seeds=range(600), method="chain"
    )
    shift = (n * alpha * found.Q.values[:, :, 0, 1]).mean(axis=1)
    mean = found.R.values.mean(axis=(0, 1))
    _, phi_y, phi_phi = mean_function(CUBIC, laws(sources))(mean)
    signs = np.diag([-1.0, 1.0])
    corrected = mu * (signs @ phi_y + phi_y.T @ signs) + mu**2 * signs @ phi_phi @ signs
    printed = mu * signs @ (phi_y + phi_y.T) + mu**2 * phi_phi
    assert printed[0, 1] * printed[1, 0] < 0  # W'W would not be symmetric
    assert_agrees(shift, corrected[0, 1] / 2, printed[0, 1] / 2, printed[1, 0] / 2)


def printed_34(sigma, sources):
    xi = xi_of(sigma, sources)
    k, m = len(sigma), len(sources)
    found = np.zeros((k, m, k, m))
    for i, j in np.ndindex(k, m):
        found[i, j, i, j] -= xi[i] + xi[j] / 2
        if j < k and i < m:
            found[i, j, j, i] -= xi[i] / 2
    return as_matrix(found)


@pytest.mark.parametrize(("sigma", "sources"), FOUND, ids=str)
def test_34_is_correct_for_the_corrected_17(sigma, sources):
    shape = (len(sigma), len(sources))
    found = jacobian_of(learning_17(sigma, sources), shape)
    assert found == pytest.approx(printed_34(sigma, sources), abs=1e-12)
    ours, _ = part_jacobians(make_field(sigma, CUBIC, laws(sources)), np.eye(*shape))
    assert as_matrix(ours) == pytest.approx(found, abs=1e-12)


def test_17_as_printed_contradicts_34():
    """Uniform and Laplace: (34), whose eigenvalues are negative, against one of +0.6."""
    case = ([-1, 1], ["uniform", "laplace"])
    printed = np.linalg.eigvals(jacobian_of(learning_17(*case, printed=True), (2, 2))).real
    assert printed.max() == pytest.approx(0.6, abs=1e-9)
    assert np.linalg.eigvals(printed_34(*case)).real.max() == pytest.approx(-2.1, abs=1e-9)


def test_36_lacks_the_rows_beyond_the_sources():
    """K = 3, M = 2: R_31 and R_32 decay at xi_j/2, by the Jacobian and by (17) annealed."""
    sigma, sources = FOUND[4]
    xi = xi_of(sigma, sources)[:2]
    matrix = jacobian_of(learning_17(sigma, sources), (3, 2))
    for j in range(2):
        unit = np.zeros((3, 2))
        unit[2, j] = 1.0
        assert matrix @ unit.ravel() == pytest.approx(-xi[j] / 2 * unit.ravel(), abs=1e-12)
    # Both remain eigenvalues of the rows that are found: the printed list has one too many of each.
    values = np.sort(np.linalg.eigvals(matrix).real)
    both = [-2 * xi[0], -2 * xi[1], -xi.sum() / 2, -xi.sum()]
    assert values == pytest.approx(np.sort([*both, *(-xi / 2)]), abs=1e-12)
    assert np.abs(values - np.sort([*both, *-xi])).max() > 0.5
    field, mu0 = make_field(sigma, CUBIC, laws(sources)), 4.0
    start = 0.98 * np.eye(3, 2) + 0.01 * (1 - np.eye(3, 2))
    after = np.array([0.0, 9e3, 2.9e4])
    r = integrate(field.at, make_schedule(f"{mu0}/(1000 + t)"), start, after, 1e-12).states
    slopes = np.log(r[2, 2] / r[1, 2]) / np.log(3.0)
    assert slopes == pytest.approx(-mu0 * xi / 2, abs=0.02)
    assert np.all(np.abs(slopes + mu0 * xi) > 2)


@pytest.mark.parametrize(
    ("case", "largest", "printed_holds"),
    [(0, -2.4, False), (1, -1.6, False), (2, -2.1, False), (3, -1.2, True), (4, -0.6, False)],
)
def test_section_41_the_slowest_rate_depends_on_the_shape(case, largest, printed_holds):
    sigma, sources = FOUND[case]
    shape = (len(sigma), len(sources))
    values = np.linalg.eigvals(jacobian_of(learning_17(sigma, sources), shape)).real
    assert values.max() == pytest.approx(largest, abs=1e-9)
    least = xi_of(sigma, sources)[: min(shape)].min()
    one, two = [*np.sort(xi_of(sigma, sources)[: min(shape)]), np.inf][:2]
    corrected = {1: -one, 0: -min(2 * one, (one + two) / 2), -1: -one / 2}
    assert largest == pytest.approx(corrected[np.sign(shape[1] - shape[0])])
    assert (abs(values.max() + least) < 1e-9) == printed_holds


@pytest.mark.parametrize(
    ("case", "share", "entry", "exponent"),
    [(0, 0.75, (0, 0), -1.0), (4, 1.5, (2, 0), -0.75)],
    ids=["K1 M1 below 1/xi", "K3 M2 above 1/xi"],
)
def test_section_41_critical_annealing(case, share, entry, exponent):
    """mu_0 = share/xi_min in (17): 1/tau or not, against the printed critical value."""
    sigma, sources = FOUND[case]
    mu0, target = share / 1.2, np.eye(len(sigma), len(sources))
    start = target.copy()
    start[entry] = 0.99 if entry == (0, 0) else 0.01
    field, after = make_field(sigma, CUBIC, laws(sources)), np.array([0.0, 3e7, 3e8])
    u = integrate(field.at, make_schedule(f"{mu0}/(1000 + t)"), start, after, 1e-12).states - target
    slope = np.log(u[2][entry] / u[1][entry]) / np.log(10)
    assert slope == pytest.approx(exponent, abs=0.02)
    printed = -share if share < 1 else -1.0
    assert abs(slope - printed) > 0.2


@pytest.mark.deep
def test_appendix_a_holds_for_every_alpha_below_one():
    """Printed: alpha of the order of eta, then large; "it is hoped" that alpha = O(1) will do."""
    limit = float(hdica.limit(hebbian(mu=0.05), times=[40.0]).R.values.item())

    def found(alpha):
        system = hebbian(mu=0.05, alpha=alpha)
        seeds = range(256)
        return hdica.simulate(system, n=2000, times=[40.0], seeds=seeds, method="chain").R.values

    for alpha in (0.05, 0.2, 0.5, 0.9):
        assert_agrees(found(alpha), limit)
    beyond = found(1.05)  # Q - I, times 1 - 2 alpha at each step, no longer decays
    assert beyond.mean() < limit - REJECTED * beyond.std(ddof=1) / 16


@pytest.mark.parametrize("phi", ["x**3", "tanh(x)"])
@pytest.mark.parametrize("source", ["uniform", "rademacher", "laplace", SKEWED], ids=str)
def test_14_is_correct(phi, source):
    """From R = 0.97 the rule comes closer to the source, or leaves it, with the sign of (14)."""
    f, law = parse_formula(phi), make_source(source)
    s = law.nodes.points
    sign = int(np.sign(law.nodes.mean(s * f.value(s) - f.derivative.value(s))))
    for sigma in (sign, -sign):
        mu = 0.002 if phi == "x**3" else 0.01
        system = hebbian(
            sources=[source], nonlinearity=phi, sigma=[sigma], mu=mu, start={"overlap": 0.97}
        )
        r = hdica.simulate(system, n=4000, times=[20.0], seeds=range(64), method="chain").R.values
        gain = sign * sigma * (r.ravel() - 0.97)
        assert gain.mean() > REJECTED * gain.std(ddof=1) / 8


def printed_19_and_20(sigma, sources, mu0, start, u0, times):
    """(19)-(20) by the eigenvectors of (34) found numerically, shape (T, K, M)."""
    values, vectors = np.linalg.eig(printed_34(sigma, sources))
    drive = np.zeros(u0.shape)
    for n in range(min(u0.shape)):
        drive[n, n] = -0.5 * make_source(sources[n]).moment(6)
    inside, begun = (np.linalg.solve(vectors, one.ravel()) for one in (drive, u0))
    power, at = -mu0 * values, np.asarray(times)[:, None]
    decay = (start / at) ** power
    x = mu0**2 / (power - 1) * (1 / at - decay / start)
    return ((x * inside + decay * begun) @ vectors.T).real.reshape(-1, *u0.shape)


@pytest.mark.parametrize(("sigma", "sources"), FOUND, ids=str)
def test_19_and_20_are_correct_for_symmetric_sources(sigma, sources):
    """Against (17) itself: what is left is of second order in R - R*."""
    field, target, mu0 = (
        make_field(sigma, CUBIC, laws(sources)),
        np.eye(len(sigma), len(sources)),
        1.3,
    )
    u0 = -np.abs(np.random.default_rng(5).standard_normal(target.shape))
    gaps = []
    for scale in (1e-3, 5e-4):
        start = 10 / scale
        schedule, after = make_schedule(f"{mu0}/({start} + t)"), np.array([0.0, start])
        u = integrate(field.at, schedule, target + scale * u0, after, 1e-13).states[1] - target
        found = printed_19_and_20(sigma, sources, mu0, start, scale * u0, [2 * start])[0]
        gaps.append(np.abs(u - found).max())
        assert gaps[-1] < 0.02 * np.abs(u).max()
    assert gaps[1] == pytest.approx(gaps[0] / 4, rel=0.1)


@pytest.mark.parametrize(("sigma", "sources"), FOUND, ids=str)
def test_21_is_correct_for_symmetric_sources(sigma, sources):
    target, mu0 = np.eye(len(sigma), len(sources)), 2.0
    field = make_field(sigma, CUBIC, laws(sources))
    schedule, after = make_schedule(f"{mu0}/(1000 + t)"), np.array([0.0, 1e6])
    u = integrate(field.at, schedule, target, after, 1e-12).states[1] - target
    printed = np.zeros(target.shape)
    for i in range(min(target.shape)):
        sixth, xi = make_source(sources[i]).moment(6), xi_of(sigma, sources)[i]
        printed[i, i] = -(mu0**2) * sixth / (4 * mu0 * xi - 2)
    assert 1.001e6 * u == pytest.approx(printed, rel=2e-3, abs=1e-6)


@pytest.mark.deep
def test_19_to_21_lack_the_drive_of_skewed_sources():
    """<phi(s_1)><phi(s_2)> is not zero if both are skewed: simulated at n = 2000, mu = mu_0/t."""
    sources, law = [SKEWED, SKEWED], make_source(SKEWED)
    xi, skew = 3 - law.moment(4), law.moment(3)
    mu0, start, end = 1 / xi, 20.0, 60.0
    system = hebbian(
        sources=sources,
        projections=2,
        sigma=[-1, -1],
        mu=f"{mu0}/({start} + t)",
        start={"overlap": [[1.0, 0.0], [0.0, 1.0]]},
    )
    found = hdica.simulate(
        system, n=2000, times=[end - start], seeds=range(480), method="chain"
    ).R.values[:, 0, 0, 1]
    path = hdica.limit(system, times=[end - start, 1e5]).R.values[:, 0, 1]
    printed = printed_19_and_20([-1, -1], sources, mu0, start, np.zeros((2, 2)), [end])[0, 0, 1]
    assert abs(printed) < 1e-12
    assert_agrees(found, path[0], printed)
    # (20) with the drive -<phi(s_1)><phi(s_2)>/2 in the mode of rate -2 xi, and then (21).
    corrected = -(skew**2) / 2 * mu0**2 / (2 * mu0 * xi - 1)
    assert end * path[0] == pytest.approx(corrected * (1 - start / end), rel=0.15)
    assert (1e5 + start) * path[1] == pytest.approx(corrected, rel=5e-3)
