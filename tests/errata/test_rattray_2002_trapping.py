"""Entries of docs/reference/errata.md on Rattray 2002, sections 4.2 and 4.3 and Figures 2 and 3.

A test of an error asserts two things: that the corrected form agrees, and that the printed one
does not.
"""

import math

import numpy as np
import pytest

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import average
from hdica.limits.escape import escape_law, near_zero, scaled_time
from hdica.limits.numerics.first_passage import Diffusion, first_passage
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.systems.hebbian_ica.escape_times import escape, finite_range
from hdica.systems.hebbian_ica.ode import as_matrix, make_field, part_jacobians
from hdica.systems.hebbian_ica.passage import passages
from hdica.systems.hebbian_ica.rule import run_chains
from hdica.systems.hebbian_ica.system import rule
from tests.errata.test_rattray_2002 import (
    AGREES,
    CUBIC,
    REJECTED,
    SKEWED,
    assert_agrees,
    hebbian,
    laws,
)
from tests.systems.hebbian_ica.cases import stream_of
from tests.systems.hebbian_ica.single_states import scalar_drift

TANH = parse_formula("tanh(x)")
UNIFORM, RADEMACHER = make_source("uniform"), make_source("rademacher")
# <phi(z)^2> of x^3, and the size of kappa_4 <phi'''(z)> with a uniform source.
P, C = 15.0, 7.2
THREE_POINTS = {"discrete": {"values": [-5 / 3, 0.0, 5 / 3], "weights": [0.18, 0.64, 0.18]}}
NAMED = ["uniform", "laplace", SKEWED]


def drift_17(r, mu, phi, source, sigma):
    """dR/dt of (17) for one projection and one source, by quadrature."""
    law = make_source(source)
    phi_s = average(lambda s, y: s * phi.value(y), phi, law, r)[0]
    phi_y = average(lambda s, y: y * phi.value(y), phi, law, r)[0]
    power = average(lambda s, y: phi.value(y) ** 2, phi, law, r)[0]
    return mu * sigma * (phi_s - r * phi_y) - mu**2 * power * r / 2


def normal_averages(phi):
    """<phi(z)^2>, and the mean of the third derivative as <(z^3 - 3 z) phi(z)>."""
    third = average(lambda s, z: (z**3 - 3 * z) * phi.value(z), phi, UNIFORM, 0.0)[0]
    return average(lambda s, z: phi.value(z) ** 2, phi, UNIFORM, 0.0)[0], third


def escape_steps(source, n, nu, count, most=10**9):
    """Steps to abs(R) = 0.8 of chains from a random start; -1 for those that did not escape."""
    system = hebbian(sources=[source], nu=nu, start="random")
    streams = [stream_of(seed, n, "errata") for seed in range(count)]
    return np.array([p.first for p in passages(rule(system), n, streams, 0.8, most)])


def edge(mu):
    """The unstable fixed point of (17) next to R = 0, uniform source and x^3."""
    found = find_fixed_points(scalar_drift(-1.0, CUBIC, UNIFORM), mu).q
    return float(min(q for q in found if q > 1e-9))


@pytest.mark.parametrize("phi", [CUBIC, TANH], ids=["cubic", "tanh"])
@pytest.mark.parametrize("source", NAMED, ids=["uniform", "laplace", "skewed"])
def test_22_is_correct(phi, source):
    """The remainder is of order R^5, for skewed sources too."""
    mu, kappa = 0.3, make_source(source).moment(4) - 3
    power, third = normal_averages(phi)
    gaps = []
    for r in (0.04, 0.08):
        printed = -power * mu**2 * r / 2 + kappa * third * mu * r**3 / 6
        gaps.append(abs(drift_17(r, mu, phi, source, 1) - printed))
    assert math.log2(gaps[1] / gaps[0]) == pytest.approx(5, abs=0.4)


@pytest.mark.parametrize("phi", [CUBIC, TANH], ids=["cubic", "tanh"])
@pytest.mark.parametrize("source", NAMED, ids=["uniform", "laplace", "skewed"])
def test_23_is_correct(phi, source):
    """abs(R) grows below the printed mu and falls above it, or with the other sign."""
    r, (power, third) = 0.02, normal_averages(phi)
    product = (make_source(source).moment(4) - 3) * third
    sigma, mu = int(np.sign(product)), r**2 * abs(product) / (3 * power)
    below, above, other = (
        drift_17(r, factor * mu, phi, source, sign)
        for factor, sign in ((0.95, sigma), (1.05, sigma), (0.95, -sigma))
    )
    assert below > 0 > max(above, other)


def test_23_and_14_agree_for_x_cubed_and_not_always_for_tanh():
    for source in ["rademacher", *NAMED]:
        nodes = make_source(source).nodes
        at_source = float(nodes.mean(nodes.points**4 - 3 * nodes.points**2))
        at_zero = 6 * (make_source(source).moment(4) - 3)
        assert at_zero == pytest.approx(6 * at_source, rel=1e-9)
    # 0, or +-5/3 with probability 0.36: one sign holds the source, the other finds it.
    a, p = 5 / 3, 0.36
    at_source = p * (a * math.tanh(a) - 1 / math.cosh(a) ** 2) - (1 - p)
    at_zero = (1 / p - 3) * normal_averages(TANH)[1]
    assert (np.sign(at_source), np.sign(at_zero)) == (-1, 1)
    for sigma, start, grows in ((-1, 0.05, False), (1, 0.05, True), (-1, 0.99, True)):
        system = hebbian(
            sources=[THREE_POINTS],
            nonlinearity="tanh(x)",
            sigma=[sigma],
            mu=1e-5,
            start={"overlap": start},
        )
        assert (hdica.limit(system, times=[1e4]).R.values.item() > start) == grows


def moved(alpha, n, nu, start, time, count):
    """r = sqrt(n) R of chains at a time in n^3 steps, uniform source and x^3."""
    system = hebbian(nu=nu, alpha=alpha, start={"overlap": start / math.sqrt(n)})
    end = [round(time * n**3) / n]
    found = hdica.simulate(system, n=n, times=end, seeds=range(count), method="chain").R.values
    return found.ravel() * math.sqrt(n)


@pytest.mark.deep
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.95])
def test_24_and_25_hold_for_every_alpha_below_one(alpha):
    """Large nu, where (24) is linear: mean and variance of r after a time 1/(P nu^2)."""
    n, nu, start = 1000, 50.0, 2.0
    r = moved(alpha, n, nu, start, 1 / (P * nu**2), 1500)
    # Without the drift that r owes to Q, or with half of it; and with half the variance.
    assert_agrees(r, start * math.exp(-0.5), start, start * math.exp(-0.25))
    assert_agrees((r - r.mean()) ** 2, 1 - math.exp(-1), (1 - math.exp(-1)) / 2)


def test_24_is_correct_where_r_grows():
    """Small nu: the cubic term carries r away, on average over chains at n = 200."""
    n, nu, start, time, count = 200, 0.2, 3.0, 0.01, 600
    r = moved(0.5, n, nu, start, time, count)
    printed = (-P * nu**2 * start / 2 + C * nu * start**3 / 6) * time
    error = r.std(ddof=1) / math.sqrt(count)
    # A finite time and R = 0.2 change (24) by up to 6 %.
    assert abs(r.mean() - start - printed) < AGREES * error + 0.06 * printed
    assert r.mean() - start > REJECTED * error


@pytest.mark.deep
def test_26_is_correct_and_d_is_twice_a_diffusion_constant():
    """Large nu: r has the law exp(-2U/D), of variance one as the text says, not exp(-U/D)."""
    n, nu = 1000, 50.0
    r = moved(0.5, n, nu, 0.0, 8 / (P * nu**2), 1500)

    def potential(r):
        return P * nu**2 * r**2 / 4 - C * nu * r**4 / 24

    x, step = np.linspace(-8, 8, 4001), 1e-5
    slope = (potential(x + step) - potential(x - step)) / (2 * step)
    drift = -P * nu**2 * x / 2 + C * nu * x**3 / 6
    assert -slope == pytest.approx(drift, abs=1e-5 * np.abs(drift).max())
    variances = []
    for share in (2, 1):
        weight = np.exp(-share * potential(x) / (P * nu**2))
        variances.append(np.sum(weight * x**2) / np.sum(weight))
    assert variances == pytest.approx([1, 2], rel=0.06)
    assert_agrees(r**2, *variances)


def test_27_has_twice_the_exponent():
    """How log(nu^2 T) grows with nu, exactly: by 3P/(4C) and not 3P/(8C)."""
    printed = 3 * P / (8 * C)

    def growth(nu):
        one, other = (scaled_time(C / (6 * P * at)).log_mean for at in (nu, nu + 4))
        return (other - one) / 4

    gaps = [abs(growth(nu) - 2 * printed) for nu in (8.0, 16.0, 32.0)]
    assert gaps[0] < 0.01 * printed
    assert gaps[1] < gaps[0] / 3
    assert gaps[2] < gaps[1] / 3
    assert growth(32.0) - printed > 0.99 * printed


@pytest.mark.deep
def test_27_with_half_the_exponent_is_not_what_chains_do():
    """Rademacher, n = 100, nu = 3: the diffusion with the moments of a step, or with twice D."""
    nu, n, count = 3.0, 100, 200
    one = finite_range(CUBIC, RADEMACHER, near_zero(CUBIC, RADEMACHER), nu, n, "random", 0.8)
    doubled = Diffusion(one.diffusion.drift, lambda r: 2 * one.diffusion.variance(r))
    printed = first_passage(doubled, 0.0, one.high, one.start, scale=one.summit).mean / one.rate
    times = escape_steps("rademacher", n, nu, count) / n**3
    assert np.all(times > 0)
    assert_agrees(times, escape_law(one).mean, printed)


@pytest.mark.deep
def test_text_after_27_small_learning_rates_are_slow_too():
    """Printed: as the learning rate is reduced so is the time-scale for escape."""

    def mean(nu):
        return escape([UNIFORM], CUBIC, [-1], nu)

    nus = [0.1, 0.5, 1.0, 1.25, 2.0, 4.0]
    means = [mean(nu).mean.item() for nu in nus]
    best = mean(1.0)
    assert best.nu_optimal.item() == pytest.approx(1.2587, abs=1e-4)
    assert best.mean_optimal.item() < min(means) == means[3] < means[0] / 10
    small = [mean(nu).mean.item() for nu in (1e-5, 1e-4)]
    assert math.log10(small[0] / small[1]) == pytest.approx(1.5, abs=0.01)
    slow, fast = (escape_steps("uniform", 30, nu, 240) / 30**3 for nu in (0.05, 1.0))
    error = math.hypot(slow.std(ddof=1), fast.std(ddof=1)) / math.sqrt(240)
    assert slow.mean() - fast.mean() > REJECTED * error


def test_section_42_the_range_of_attraction_shrinks_with_mu():
    """Not with mu_0, which is the constant of annealing: (22) at a constant mu."""
    small = [edge(mu) for mu in (0.004, 0.0004)]
    assert small == pytest.approx([math.sqrt(P * m / 2.4) for m in (0.004, 0.0004)], rel=0.02)
    assert small[0] > 0.1 > small[1]
    for mu, leaves in ((0.004, False), (0.0004, True)):
        system = hebbian(mu=mu, start={"overlap": 0.1})
        assert (hdica.limit(system, times=[2e3]).R.values.item() > 0.1) == leaves


@pytest.mark.parametrize("nu", [0.1, 1.0, 4.0])
def test_figure_2_zero_is_a_stable_fixed_point(nu):
    """A minimum of (26), to which (17) returns: it is left by noise alone."""
    trap, n = near_zero(CUBIC, UNIFORM), 10**4
    for share in (0.5, -0.5):
        assert trap.potential(nu, share * trap.summit(nu)) > trap.potential(nu, 0.0)
    start = trap.summit(nu) / 2 / math.sqrt(n)
    system = hebbian(mu=nu / n, start={"overlap": start})
    path = hdica.limit(system, times=n**2 / nu**2 * np.array([0.0, 0.5, 1.0])).R.values.ravel()
    assert path[0] > 5 * path[1] > 25 * path[2] > 0


def test_figure_3c_the_barrier_lies_beyond_the_dashed_lines():
    """n = 100, nu = 4: maxima of (26) at R = 0.5, unstable fixed points of (17) at 0.575."""
    dashed = near_zero(CUBIC, UNIFORM).summit(4.0) / 10
    assert (dashed, edge(0.04)) == pytest.approx((0.5, 0.575), abs=5e-4)
    # Between the two the rule falls back.
    system = hebbian(mu=0.04, start={"overlap": 0.53})
    r = hdica.simulate(system, n=4000, times=[20.0], seeds=range(64), method="chain").R.values
    assert 0.53 - r.mean() > REJECTED * r.std(ddof=1) / 8


@pytest.mark.deep
def test_figure_3c_is_far_from_the_limit():
    """n = 100, nu = 4: 1227 n^3 steps to an escape, 585 by a diffusion, and not 10.3; chains are
    counted for 6e8.
    """
    n, nu, most = 100, 4.0, 2 * 10**7
    limit, finite = (
        escape([UNIFORM], CUBIC, [-1], nu, n=size, start="random").mean.item() * n**3
        for size in (None, n)
    )
    assert finite / limit == pytest.approx(56.7, abs=0.5)
    exact = hdica.escape_time(hebbian(mu=None, nu=nu, start="random"), n=n)
    assert float(exact["mean"]) * n**3 / limit == pytest.approx(118.85, abs=0.05)
    steps = escape_steps("uniform", n, nu, 32, most)
    spent = np.where(steps < 0, most, steps).sum()
    escapes, expected = np.sum(steps > 0), spent / limit
    assert expected - escapes > 6 * math.sqrt(expected)
    # Poisson: the chance of more, at the mean of the diffusion at n = 100 already, is below 1e-4.
    assert escapes <= 7


def test_section_43_symmetric_fixed_points_need_equal_signs():
    """R_11 = R_21 and R_12 = R_22: kept by (17), up to an instability, by equal signs alone."""
    sources = ["uniform", "rademacher"]
    shared = np.array([[0.5, 0.3], [0.5, 0.3]])
    for sigma, kept in (([-1, -1], True), ([-1, 1], False)):
        rate = make_field(sigma, CUBIC, laws(sources)).at(shared, 0.02)
        assert (np.abs(rate[0] - rate[1]).max() < 1e-15) == kept
    # Both projections share the first source: W'W = I leaves 1/sqrt 2 to each.
    half = np.array([[1.0, 0.0], [1.0, 0.0]]) / math.sqrt(2)
    field = make_field([-1, -1], CUBIC, laws(sources))
    learning, _ = field.parts(half)
    assert learning == pytest.approx(np.zeros((2, 2)), abs=1e-14)
    values, vectors = np.linalg.eig(as_matrix(part_jacobians(field, half)[0]))
    leaving = vectors[:, values.real.argmax()].reshape(2, 2)
    assert values.real.max() > 0.1
    assert leaving[0] == pytest.approx(-leaving[1], abs=1e-9)


@pytest.mark.deep
def test_section_43_symmetric_saddles_are_left_in_n_log_n_steps():
    """At mu = n eta fixed noise of order n^-1/2 breaks the symmetry, which grows as exp(k t)."""
    mu, level = 0.005, 0.3
    start = np.full((2, 2), 0.484902808814974)  # where (17) with this mu ends if it is symmetric
    field = make_field([-1, -1], CUBIC, laws(["rademacher"] * 2))
    assert np.abs(field.at(start, mu)).max() < 1e-9
    apart = np.array([[1.0, -1.0], [-1.0, 1.0]])
    rate = float(np.mean(field.at(start + 1e-5 * apart, mu) * apart)) / 1e-5
    given = {"sources": ["rademacher"] * 2, "projections": 2, "sigma": [-1, -1], "mu": mu}
    system = hebbian(**given, start={"overlap": start.tolist()})
    times, means, errors = np.arange(0.0, 1604.0, 4.0), [], []
    for n in (50, 800):
        found = []
        for first in range(0, 32, 8):
            streams = [stream_of(seed, n, "saddle") for seed in range(first, first + 8)]
            found += [
                values["R"] for values, _ in run_chains([rule(system)] * 8, times, n, streams)
            ]
        r = np.array(found)
        far = np.abs(r[:, :, 0] - r[:, :, 1]).max(axis=2) > level
        assert far.any(axis=1).all()
        left = times[far.argmax(axis=1)]
        means.append(left.mean())
        errors.append(left.std() / math.sqrt(left.size))
    # t grows as log(n)/(2 k), k the rate at which the fastest difference grows.
    z = (means[1] - means[0] - math.log(16) / (2 * rate)) / math.hypot(*errors)
    assert abs(z) < 3
    # n^2 steps would be times 16 times longer; and it is not independent of n.
    assert means[1] < 2 * means[0]
    assert means[1] - means[0] > 4 * math.hypot(*errors)
