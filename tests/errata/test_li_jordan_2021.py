"""Entries of docs/reference/errata.md on Li and Jordan 2021: online tensorial ICA.

The rule is simulated here word by word, many runs at a time, in the coordinates v = A'u.
"""

import itertools
import math

import numba
import numpy as np
import pytest

from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.bounds import orlicz_bound
from hdica.systems.tensorial_ica.fluctuation import stationary
from hdica.systems.tensorial_ica.rule import moments_of
from hdica.systems.tensorial_ica.transient import counts, time_to
from hdica.systems.tensorial_ica.traverse import escape_law, uniform_asymptote, uniform_law
from tests.systems.tensorial_ica.reference import tangent_gradient

AGREES, REJECTED = 4.5, 10.0  # standard errors
BLOCK = 200


def rademacher(rng, shape):
    return rng.integers(0, 2, shape, dtype=np.int8) * 2.0 - 1.0


def laplace(rng, shape):
    return rng.laplace(0.0, 0.5**0.5, shape)


THREE = np.repeat([-(2.8**0.5), 0.0, 2.8**0.5], [5, 18, 5])


def three_points(rng, shape):
    """0, or with the probability 1/2.8 +-sqrt 2.8: moments 2.8 and 2.8^2."""
    return THREE[rng.integers(0, 28, shape, dtype=np.uint8)]


@numba.njit
def move(v, samples, eta):
    """v' = Pi{v + eta y^3 Z} in place, v of shape (runs, d) and samples (steps, runs, d)."""
    for z in samples:
        for r in range(v.shape[0]):
            y = 0.0
            for k in range(v.shape[1]):
                y += v[r, k] * z[r, k]
            square = 0.0
            for k in range(v.shape[1]):
                v[r, k] += eta * y**3 * z[r, k]
                square += v[r, k] ** 2
            for k in range(v.shape[1]):
                v[r, k] /= math.sqrt(square)


def path(rng, v, eta, draw, steps, sign=-1.0, every=BLOCK):
    """Runs of shape (runs, d) after every so many steps, always the same array."""
    v, done = np.array(v, dtype=float), 0
    while done < steps:
        size = min(every, steps - done)
        move(v, draw(rng, (size, *v.shape)), sign * eta)
        done += size
        yield done, v


def after(*args, **options):
    """The same at the end."""
    *_, (_, v) = path(*args, **options)
    return v


def tan2(v):
    p = np.sort(v * v, axis=1)
    return p[:, :-1].sum(axis=1) / p[:, -1]


def uniform_starts(rng, runs, d):
    v = rng.standard_normal((runs, d))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def components(runs, d):
    """Starts at the first component."""
    return np.tile(np.eye(d)[0], (runs, 1))


def first_passages(rng, v, eta, level, most):
    """beta eta t at which tan^2 is at most a level, Rademacher sources."""
    found = np.where(tan2(v) <= level, 0.0, np.inf)
    for done, now in path(rng, v, eta, rademacher, most, every=20):
        found = np.where(np.isinf(found) & (tan2(now) <= level), 2 * eta * done, found)
        if np.all(np.isfinite(found)):
            return found
    raise AssertionError("a run has not arrived")


def assert_mean(samples, corrected, *printed, slack=0.0):
    mean, error = samples.mean(), samples.std(ddof=1) / math.sqrt(samples.size)
    assert abs(mean - corrected) < AGREES * error + slack
    for wrong in printed:
        assert abs(mean - wrong) > REJECTED * error + slack


def test_the_tensor_is_that_of_moments():
    """T(u, u, u, u) = 3 + (mu4 - 3) sum (a.u)^4 is of E X^(4); the cumulant lacks the 3."""
    rng, d = np.random.default_rng(1), 3
    a = np.linalg.qr(rng.standard_normal((d, d)))[0]
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=d))) @ a.T
    moment = np.einsum("si,sj,sk,sl->ijkl", x, x, x, x) / len(x)
    eye = np.eye(d)
    pairs = [np.einsum(p, eye, eye) for p in ("ij,kl->ijkl", "ik,jl->ijkl", "il,jk->ijkl")]
    cumulant = moment - sum(pairs)
    for u in uniform_starts(rng, 5, d):
        right = 3 - 2 * np.sum((a.T @ u) ** 4)
        at = [np.einsum("ijkl,i,j,k,l->", t, u, u, u, u) for t in (moment, cumulant)]
        assert at == pytest.approx([right, right - 3], abs=1e-12)
        # Both have the same minimisers, on the unit sphere alone.
        assert np.einsum("ijkl,i,j,k,l->", moment, *[2 * u] * 4) == pytest.approx(16 * right)
        assert abs(16 * right - (3 - 2 * np.sum((2 * a.T @ u) ** 4))) > 40


@pytest.mark.deep
def test_phase_one_needs_the_fourth_cumulant_in_its_step():
    """With beta = 0.2, d ln T/T makes a fifth of the way; over beta T it makes all of it."""
    rng, d, steps, beta, runs = np.random.default_rng(2), 5, 100_000, 0.2, 200
    eta = 0.2 * d * math.log(steps) / steps
    starts, law = uniform_starts(rng, runs, d), uniform_law(d)
    share = []
    for size in (eta / beta, eta):
        end = after(rng, starts, size, three_points, steps // 2)
        share.append(np.mean(tan2(end) <= 1 / 3))
    way = beta * np.array([eta / beta, eta]) * steps / 2
    expected = law.reached(way)
    error = np.sqrt(expected * (1 - expected) / runs)
    assert share == pytest.approx(expected, abs=AGREES * error.max())
    assert share[0] > 0.85
    assert share[1] < share[0] - REJECTED * math.sqrt(0.25 / runs)


def test_warm_starts_need_room():
    """On the edge of D_warm-aux about half leave it at once; from D_warm none does."""
    rng, d, eta, runs = np.random.default_rng(3), 5, 1e-4, 200
    left = {}
    for edge, steps, every in ((1 / 2, 100, 1), (1 / 3, 8000, 20)):
        start = np.full((runs, d), math.sqrt(edge / (d - 1)))
        start[:, 0] = 1.0
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        out = np.zeros(runs, dtype=bool)
        for _, v in path(rng, start, eta, rademacher, steps, every=every):
            out |= tan2(v) > 1 / 2
        left[edge] = out.mean()
    assert left[1 / 2] > REJECTED * math.sqrt(0.25 / runs)
    assert left[1 / 3] == 0
    # v_1^2 - v_k^2 >= 1/3 on tan <= 1/sqrt 2, with equality on its edge alone: Lemma 3's rate.
    shares = rng.dirichlet(np.full(d - 1, 0.3), 1000)
    worst = [(1 - t2 * shares.max(axis=1)).min() / (1 + t2) for t2 in (1 / 2, 1 / 3)]
    assert worst[0] == pytest.approx(1 / 3, abs=1e-3)
    assert worst[1] > 0.499
    # And neither is necessary: every start with one largest component finds it.
    assert np.isfinite(time_to(np.array([1.0, 0.999, 0.0]), 1e-6))


def test_d_cubed_samples_suffice():
    """T = 2 d^3 does for every d, and T = d^3/2 at the larger step for none."""
    rng, runs = np.random.default_rng(4), 100
    share = []
    for d, kappa, c in ((10, 2.0, 0.2), (20, 2.0, 0.2), (28, 2.0, 0.2), (20, 0.5, 0.5)):
        steps = int(kappa * d**3)
        eta = c * d * math.log(steps) / (2 * steps)
        end = after(rng, uniform_starts(rng, runs, d), eta, rademacher, steps // 2)
        share.append(np.mean(tan2(end) <= 1 / 3))
    assert share[0] > 0.85
    # T/d^4 falls from 0.2 to 0.07, and the share does not fall: d^4 is not needed.
    assert min(share[1:3]) > 0.98
    assert share[3] < 0.1


def test_the_error_has_one_logarithm():
    """With eta2 = c ln T/(beta T) the squared error times T grows as ln T, not ln^2 T."""
    rng, d, runs = np.random.default_rng(5), 10, 600
    scaled = []
    for steps in (1e4, 3e5):
        eta = 1.5 * math.log(steps) / (2 * steps)
        end = tan2(after(rng, components(runs, d), eta, rademacher, int(0.5 / eta)))
        level = stationary(make_source("rademacher"), d, eta)
        grown = -math.expm1(-2) * level.S2 / level.S0  # after beta eta t = 1
        scaled.append(end / grown * steps / math.log(steps))
    few, many = scaled
    assert_mean(many, 1.5 * (d - 1) / 8)  # c (d - 1) mu6/(2 beta^2)
    wrong = few.mean() * math.log(3e5) / math.log(1e4)
    assert_mean(many, few.mean(), wrong, slack=AGREES / 2 * few.std() / math.sqrt(runs))


@pytest.mark.deep
def test_traverse_times_have_constants():
    """From the maximiser (d/4) ln(1/eta) + c, from anywhere d/(4 ln d): never d ln(1/eta) or d."""
    rng, d = np.random.default_rng(6), 5
    moments = moments_of(make_source("rademacher"))
    means = []
    for eta, most, runs in ((2e-3, 20_000, 400), (2e-4, 200_000, 200)):
        start = np.full((runs, d), d**-0.5)
        found = first_passages(rng, start, eta, 1 / 3, most)
        law = escape_law(moments, d, eta)
        assert_mean(found, law.mean, d * math.log(1 / eta), slack=0.6)
        means.append((found.mean(), found.std() / math.sqrt(runs)))
    growth = (means[1][0] - means[0][0]) / math.log(10)
    error = math.hypot(means[0][1], means[1][1]) / math.log(10)
    assert abs(growth - d / 4) < AGREES * error + 0.25
    assert abs(growth - d) > REJECTED * error
    uniform = first_passages(rng, uniform_starts(rng, 300, d), 1e-3, 1 / 3, 20_000)
    assert_mean(uniform, uniform_law(d).mean, d)
    # In units of d it falls with d, as 1/(4 ln d).
    per_d = np.array([uniform_law(n).mean / n for n in (10, 100, 1000)])
    assert np.all(per_d[1:] < 0.55 * per_d[:-1])
    ratios = [uniform_law(n).mean / uniform_asymptote(n) for n in (10, 100, 1000)]
    assert ratios[0] > ratios[1] > ratios[2] > 1
    # Near a component tan^2 falls as exp(-2 beta eta t): half of ln(1/eta) from a fixed level.
    eta, start = 1e-4, np.tile([1.0, 0.05, 0.0, 0.0, 0.0], (200, 1)) / math.sqrt(1.0025)
    floor = stationary(make_source("rademacher"), d, eta).S2
    end = tan2(after(rng, start, eta, rademacher, int(0.5 / eta))) + floor * math.expm1(-2)
    assert_mean(end, 0.0025 * math.exp(-2), 0.0025 * math.exp(-1))


def test_lemma_6_noise_grows_with_d_alone():
    rng, eta, runs = np.random.default_rng(7), 2e-4, 500
    levels = {}
    for d in (4, 16):
        end = tan2(after(rng, components(runs, d), eta, rademacher, int(1.5 / eta)))
        levels[d] = end
        assert_mean(end, stationary(make_source("rademacher"), d, eta).S2)
    ratio = levels[16].mean() / levels[4].mean()
    assert ratio == pytest.approx(15 / 3, rel=0.2)
    # sqrt(d^3 eta) has the ratio 64 of squares.
    error = math.hypot(*(end.std() / end.mean() for end in levels.values())) / math.sqrt(runs)
    assert abs(ratio - 64) > REJECTED * 64 * error


@pytest.mark.deep
def test_psi_2_excludes_laplace_and_the_level_does_not():
    rademacher_b, uniform_b = (orlicz_bound(make_source(s)) for s in ("rademacher", "uniform"))
    assert rademacher_b == pytest.approx(1.9614, abs=5e-5)
    assert uniform_b == pytest.approx(2.1855, abs=5e-5)
    # With that B the psi_2 norm of every u.X is at most B.
    rng, signs = np.random.default_rng(8), np.array(list(itertools.product((-1, 1), repeat=8)))
    for u in [*uniform_starts(rng, 50, 8), np.eye(8)[0], np.full(8, 8**-0.5)]:
        assert np.mean(np.exp((signs @ u / rademacher_b) ** 2)) <= 2
    # Of Laplace's law exp(Z^2/c^2) times the density grows without end, for any c.
    for c in (3.0, 30.0, 300.0):
        z = 2**0.5 * c * c * np.array([1.0, 2.0, 3.0])
        logarithms = z * z / c / c - 2**0.5 * z
        assert logarithms == pytest.approx(2 * c * c * np.array([0.0, 2.0, 6.0]))
    eta, d = 1e-4, 5
    end = tan2(after(rng, components(800, d), eta, laplace, int(1 / eta), sign=1.0))
    assert_mean(end, stationary(make_source("laplace"), d, eta).S2)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_number_of_saddles_is_correct(d):
    saddles = sum(counts(d)[1:-1])
    assert saddles == 3**d - 2**d - 2 * d - 1
    found = 0
    for p in itertools.product((-1, 0, 1), repeat=d):
        size = sum(map(abs, p))
        if 1 < size < d:
            found += 1
            assert np.abs(tangent_gradient(np.array(p) / math.sqrt(size))).max() < 1e-14
    assert found == saddles


def test_lemma_5_has_the_horizon_in_its_bound():
    """The vessel widens as eta sqrt T, T the horizon; the time T_x of leaving is far beyond."""
    rng, d, eta, runs = np.random.default_rng(9), 20, 2.5e-4, 300
    v = components(runs, d)
    product, sup, ratios = np.zeros_like(v), np.zeros_like(v), {}
    for done, now in path(rng, v, eta, rademacher, 400, every=1):
        # U_k(0) = 0, and so is the centre of the vessel.
        sup = np.maximum(sup, np.abs(now / now[:, :1] - product))
        if done in (100, 400):
            ratios[done] = sup[:, 1:].mean(axis=1) / (eta * math.sqrt(done))
    brownian = math.sqrt(math.pi / 2)
    for ratio in ratios.values():
        assert ratio.mean() == pytest.approx(brownian, rel=0.12)
    error = ratios[400].std() / math.sqrt(runs)
    assert abs(ratios[400].mean() - ratios[100].mean()) < 0.06 + AGREES * error
    # A bound with T_x in it says nothing: after 100 horizons no run has left.
    inside = all(np.all(tan2(w) < 1 / 2) for _, w in path(rng, v, eta, rademacher, 10_000))
    assert inside


def test_lemma_5_follows_the_realised_path():
    """The product over the path itself is the centre; that of the start alone is not."""
    rng, eta, steps, runs = np.random.default_rng(10), 1e-4, 5000, 200
    v0 = np.array([1.0, 0.5, 0.0]) / math.sqrt(1.25)
    realised, frozen = np.ones(runs), (1 - 2 * eta * (v0[0] ** 2 - v0[1] ** 2)) ** steps
    before = np.tile(v0, (runs, 1))
    for _, now in path(rng, before, eta, rademacher, steps, every=1):
        realised *= 1 - 2 * eta * (before[:, 0] ** 2 - before[:, 1] ** 2)
        before = now.copy()
    u = before[:, 1] / before[:, 0]
    assert_mean(u - 0.5 * realised, 0.0)
    assert_mean(u - 0.5 * frozen, (0.5 * (realised - frozen)).mean(), 0.0)
    assert (u - 0.5 * realised).std() < 3 * eta * math.sqrt(steps)
