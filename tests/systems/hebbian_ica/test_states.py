"""The list of fixed points of (17): its parts, its proof, and whether anything is missing."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.systems.hebbian_ica.certificate import certify, needed, states
from hdica.systems.hebbian_ica.ode import jacobian, make_field
from hdica.systems.hebbian_ica.polynomial import (
    polynomial,
    rates,
    rates_and_slopes,
    representatives,
    symmetries,
)
from hdica.systems.hebbian_ica.search import search
from tests.systems.hebbian_ica import fixed_points_campaign as campaign
from tests.systems.hebbian_ica.fixed_points_reference import images, newton, random_starts, rate

CASES = [
    ("x**3", [-1, -1], ["uniform", "rademacher"]),
    ("x**3 + 0.3*x**2 - x", [1, -1, 1], [{"chi2": 3}, "laplace"]),
    ("x**5", [-1], ["uniform", {"chi2": 4}]),
    ("x**2 - 1", [1, -1], ["laplace"]),
    ("x", [1, 1], ["uniform"]),
]


def field(phi, sigma, sources):
    return make_field(sigma, parse_formula(phi), [make_source(s) for s in sources])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cumulants_give_the_same_right_hand_side_as_moments(case):
    one, mu = field(*case), 0.07
    poly = polynomial(one, mu)
    r = 0.3 * np.random.default_rng(1).normal(size=(*one.shape, 3))
    value, slope = rates_and_slopes(poly, r)
    assert rates(poly, r).tolist() == value.tolist()
    for b in range(3):
        want, steep = one.at(r[..., b], mu) / mu, jacobian(one, r[..., b], mu) / mu
        assert value[..., b] == pytest.approx(want, abs=1e-13 * (1 + np.abs(want).max()))
        assert slope[..., b] == pytest.approx(steep, abs=1e-13 * (1 + np.abs(steep).max()))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_majorant_bounds_the_rest_of_taylors_formula(case):
    one = field(*case)
    poly, rng = polynomial(one, 0.07), np.random.default_rng(2)
    c, x = rng.uniform(-1, 1, size=(2, *one.shape, 400))
    r = rng.random(400) * np.abs(x)
    x = c + r * rng.uniform(-1, 1, size=x.shape)
    value, slope = rates_and_slopes(poly, c)
    low, low_slope = rates_and_slopes(poly.majorant, np.abs(c))
    rest = rates(poly, x) - value - np.einsum("ijklb,klb->ijb", slope, x - c)
    high = rates(poly.majorant, np.abs(c) + r)
    bound = high - low - np.einsum("ijklb,klb->ijb", low_slope, r)
    assert np.all(np.abs(rest) <= bound + 1e-13 * high)
    if case[0] != "x":
        assert np.any(np.abs(rest) > 0.2 * bound)


@pytest.mark.parametrize(
    ("phi", "sigma", "sources", "count"),
    [
        ("x**3", [-1, -1], ["uniform", "uniform"], 64),
        ("x**3", [-1, 1], ["uniform", "uniform"], 32),
        ("x**2", [1, 1, 1], [{"chi2": 3}, {"chi2": 3}], 12),
        ("x**2", [1, -1], [{"chi2": 3}, "uniform"], 2),
        ("tanh(x)", [1, 1], ["uniform", "laplace"], 32),
    ],
)
def test_symmetries_are_those_of_the_system(phi, sigma, sources, count):
    one = field(phi, sigma, sources)
    group = symmetries(one)
    assert group.rows.size * group.column_count == count
    r = 0.3 * np.random.default_rng(3).normal(size=one.shape)
    for kind in (r, np.full(one.shape, 0.2), np.where(np.arange(r.size).reshape(r.shape), 0, r)):
        every = group.images(kind)
        found, multiplicity = representatives(group, every)
        assert np.ptp(found, axis=0).max() < 1e-15
        assert set(multiplicity.tolist()) == {float(len(every))}
        turned = group.random(np.random.default_rng(4))
        assert one.at(turned(kind), 0.1) == pytest.approx(turned(one.at(kind, 0.1)), abs=1e-9)


@pytest.mark.deep
def test_the_certificate_finds_what_is_kept_from_it():
    one = field("x**3", [-1, -1], ["uniform", "uniform"])
    poly, group = polynomial(one, 0.01), symmetries(one)
    known = search(poly, group, 400, 4000).zeros
    zeros, complete = certify(poly, group, known)
    assert complete
    assert len(zeros) == len(known) == 17
    alone, complete = certify(poly, group, known[:0])
    assert complete
    gap = np.abs(alone[:, None] - known).max(axis=(2, 3))
    assert gap.shape == (17, 17)
    assert gap.min(axis=0).max() < 1e-12
    assert not certify(poly, group, known, most=100)[1]


@pytest.mark.parametrize("sources", [["uniform"] * 3, [{"chi2": 3}] * 2, ["uniform", {"chi2": 3}]])
@pytest.mark.parametrize("sigma", [[-1], [1, -1], [1, 1], [1, 1, 1]], ids=str)
@pytest.mark.parametrize("phi", ["x**3", "x**2", "x**3 + x**2"])
def test_every_orbit_has_an_image_that_the_proof_looks_at(phi, sigma, sources):
    one = field(phi, sigma, sources)
    group, rng = symmetries(one), np.random.default_rng(5)
    for kind in range(12):
        r = rng.normal(size=one.shape)
        # With zeros and equal entries as well, where an image is at the rim of what is looked at.
        r = [r, np.round(r), np.sign(np.round(r)), r * (rng.random(r.shape) < 0.6)][kind % 4]
        r /= max(1.0, float(np.linalg.norm(r, 2)))
        every = group.images(r).reshape(-1, r.size).T
        assert np.any(needed(group, one.shape, every, np.zeros_like(every)))
    far = np.full((r.size, 1), 1.01)
    assert not needed(group, one.shape, far, np.full_like(far, 1e-3)).any()


def test_at_a_fold_nothing_is_certified():
    """Where two states meet neither is alone, however small the cube around it."""
    one = field("x**3", [-1], ["uniform"])
    assert states(one, 0.0591).certified
    assert states(one, 0.0592).certified
    assert not states(one, 0.05913016700).certified


def roots(rate_of, points=301):
    """Zeros in (0, 1) of a function of one variable."""
    grid = np.linspace(1e-4, 1, points)
    values = [rate_of(x) for x in grid]
    pairs = [i for i in range(points - 1) if values[i] * values[i + 1] < 0]
    return [brentq(rate_of, grid[i], grid[i + 1], xtol=1e-15) for i in pairs]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sigma", "direction", "mu", "known"),
    [
        ([-1], [[1, 1]], 0.01, [0.2686, 0.6787]),
        ([-1], [[1, 1]], 0.02, [0.4266, 0.6238]),
        ([-1, -1], [[1, 1], [1, 1]], 0.01, [0.3197, 0.4000]),
    ],
)
def test_mixing_states_of_two_uniform_sources(sigma, direction, mu, known):
    """R = r * ones, where (17) is one equation; section 4.3 of Rattray for two projections."""
    ones = np.array(direction, dtype=float)
    system = (tuple(sigma), (0, 0, 0, 1), ("uniform", "uniform"), mu)
    found = roots(lambda r: rate(r * ones[None], *system)[0, 0, 0])
    assert found == pytest.approx(known, abs=5e-5)
    listed = states(field("x**3", sigma, ["uniform", "uniform"]), mu)
    assert listed.certified
    for r in found:
        gap = np.abs(listed.r - r * ones).max(axis=(1, 2))
        assert gap.min() < 1e-12
        assert listed.multiplicity[np.argmin(gap)] == (4 if len(sigma) == 1 else 8)


@pytest.mark.parametrize("number", [1, 3, 6, 9, 12, 13, 16, 18, 20, 21])
def test_random_starts_find_nothing_that_is_not_listed(number):
    unlisted, seen, listed = campaign.missing(campaign.SYSTEMS[number], 300)
    assert not len(unlisted)
    assert int(listed["certified"]) == 1
    assert seen > 0.6 * int(listed["multiplicity"].sum())


@pytest.mark.deep
def test_random_starts_find_nothing_else_of_three_projections_and_sources():
    unlisted, seen, listed = campaign.missing(campaign.SYSTEMS[25], 300)
    assert not len(unlisted)
    assert seen > 150
    assert (int(listed["certified"]), listed.sizes["fixed_point"]) == (0, 137)
    assert int(listed["hits"].min()) >= 4
    assert float(listed["unseen"]) == 0.0


def test_the_random_starts_see_what_the_list_of_before_missed():
    """A negative control: starts with one source or none a projection found no mixing state."""
    system = campaign.SYSTEMS[4]
    found = newton(system, random_starts((1, 2), 300, 1))
    alone = np.array([[[0.99120813, 0.0]], [[0.25809481, 0.0]], [[0.0, 0.0]]])
    every = images(system, alone)
    gap = np.abs(found[:, None] - every).max(axis=(2, 3)).min(axis=1)
    assert np.mean(gap > 1e-6) > 0.2


@pytest.mark.deep
@pytest.mark.parametrize(
    ("hidden", "plain", "sigma", "sources"),
    [
        ("x**2*abs(x)*sign(x)", "x**3", [-1], ["uniform", "uniform"]),
        ("x*abs(x)*sign(x)", "x**2", [-1], [{"chi2": 2}]),
        ("x*abs(x)*sign(x) + 0*x", "x**2", [1, -1], [{"chi2": 3}]),
    ],
)
def test_the_search_by_quadrature_finds_what_is_proved_of_a_polynomial(
    hidden, plain, sigma, sources
):
    one, proved = field(hidden, sigma, sources), states(field(plain, sigma, sources), 0.02)
    if one.exact:
        pytest.fail(f"{hidden} is known to be a polynomial")
    found = states(one, 0.02)
    assert proved.certified
    assert not found.certified
    assert found.r == pytest.approx(proved.r, abs=1e-7)
    assert found.multiplicity.tolist() == proved.multiplicity.tolist()
    assert found.hits.sum() <= found.starts


@pytest.mark.deep
def test_states_of_tanh_are_fixed_points_and_stand_for_their_images():
    one = field("tanh(x)", [1], ["uniform", "rademacher"])
    found = states(one, 0.02)
    for r in found.r:
        for image in symmetries(one).images(r):
            assert np.abs(one.at(image, 0.02)).max() / 0.02 < 1e-10
    for a, b in itertools.combinations(found.r, 2):
        assert np.abs(a - b).max() > 1e-3
    # Each source alone with both its barriers, the two together, and R = 0.
    assert (len(found.r), found.multiplicity.sum()) == (7, 17)
    assert found.hits.min() >= 1
    assert found.hits.sum() <= found.starts


@pytest.mark.deep
def test_a_continuum_of_fixed_points_is_refused_in_one_sentence():
    with pytest.raises(HdicaError, match="are not isolated: .* have a singular Jacobian"):
        states(field("1 + 0*x", [-1, -1], ["uniform", "uniform"]), 0.01)


def test_a_search_that_runs_away_ends():
    """At mu = 100 Powell's method comes to places that are no numbers."""
    field = make_field([1, 1], parse_formula("tanh(x)"), [make_source("rademacher")])
    found = states(field, 100.0)
    assert np.array_equal(found.r, np.zeros((1, 2, 1)))
