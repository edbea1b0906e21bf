"""Entries of docs/reference/errata.md on "Reduce and Conquer" (2025): ICA in a principal subspace.

Inputs (3) and reduced inputs (4) are drawn here word by word.
"""

import math

import numpy as np
import pytest
from scipy.special import beta as beta_function

from hdica.ingredients.contrasts import make_contrast
from hdica.ingredients.sources import make_source
from hdica.systems.subspace_ica import loss as flow
from hdica.systems.subspace_ica.loss import Loss
from hdica.systems.subspace_ica.prediction import Reduction

AGREES, REJECTED = 4.5, 10.0  # standard errors
EXP = make_contrast("exp")
ALPHA, BETA = np.array([0.6, -0.64, 0.48]), np.array([4.0, 2.0, 1.0])


def signs(rng, size):
    return rng.integers(0, 2, size) * 2.0 - 1.0


def noise(rng, n, v, share=1.0):
    """Normal noise with covariance 1 - share v v'."""
    z = rng.standard_normal((n, v.size))
    return z - (1 - math.sqrt(1 - share)) * np.outer(z @ v, v)


def reduced(rng, n, size, gamma, h=signs):
    """Latent variables and inputs (4), with the feature along the first axis."""
    vt, latent = np.eye(size)[0], h(rng, n)
    return latent, math.sqrt(gamma) * np.outer(latent, vt) + noise(rng, n, vt, gamma)


def spiked(rng, n, beta, alpha, size):
    """Latent variables, spikes and noise of inputs (3) with u^rho = e_rho."""
    rank, h = beta.size, signs(rng, n)
    v = np.zeros(size)
    v[:rank] = alpha
    g = np.zeros((n, size))
    g[:, :rank] = np.sqrt(beta) * rng.standard_normal((n, rank))
    return h, v, g, noise(rng, n, v)


def far(values, expected):
    """How many standard errors the mean of values is away."""
    error = np.std(values, axis=0, ddof=1) / math.sqrt(len(values))
    return np.abs(np.mean(values, axis=0) - expected) / error


def filters(a, size):
    """A filter of overlap a with the first axis."""
    w = np.zeros(size)
    w[:2] = a, math.sqrt(1 - a * a)
    return w


def printed_loss(a):
    """Lemma 5 as printed."""
    top = (a**4 + 2 * a * a) / ((2 + a * a) * (4 - a * a))
    return -np.sqrt(2 / (4 - a * a)) * np.exp(-top)


@pytest.mark.parametrize("a", [0.6, 1.0])
def test_lemma_5_takes_the_signal_at_its_strength(a):
    rng = np.random.default_rng(1)
    _, y = reduced(rng, 2_000_000, 3, 0.5)
    values = EXP.value(y @ filters(a, 3))
    corrected = Loss(EXP, make_source("rademacher"), 0.5).at(np.array(a)).loss
    assert far(values, float(corrected)) < AGREES
    assert far(values, printed_loss(a)) > REJECTED


def test_lemma_5_as_printed_is_that_of_inputs_that_are_not_white():
    """Of s = h a + N(0, 1 - a^2/2), whose variance is 1 + a^2/2; and it rises with a^2."""
    rng, a = np.random.default_rng(2), 0.6
    s = signs(rng, 2_000_000) * a + math.sqrt(1 - a * a / 2) * rng.standard_normal(2_000_000)
    assert far(EXP.value(s), printed_loss(a)) < AGREES
    assert far(s * s, 1.0) > REJECTED
    near = printed_loss(np.array([0.0, 1e-3, 2e-3])) - printed_loss(0.0)
    assert near[2] / near[1] == pytest.approx(4, rel=1e-3)
    correct = Loss(EXP, make_source("rademacher"), 0.5).at(np.array([1e-3, 2e-3]))
    assert correct.slope[1] / correct.slope[0] == pytest.approx(8, rel=1e-3)


def test_lemma_5_proof_has_a_normal_variable_in_its_second_term():
    """w.x = (h a + a z_par)/sqrt 2 + w_perp.z has mean 0 and variance 1; as printed neither."""
    rng, a = np.random.default_rng(3), 0.8
    _, y = reduced(rng, 200_000, 3, 0.5)
    s = y @ filters(a, 3)
    assert far(s, 0.0) < AGREES
    assert far(s, a / math.sqrt(2)) > REJECTED
    assert far(s * s, a * a + 1 - a * a) < AGREES
    assert far((s - s.mean()) ** 2, a * a / 2 + 1 - a * a) > REJECTED


@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0])
def test_theorem_4_asks_for_the_slope(gamma):
    a = np.array([-1.0, -0.4, 0.05, 0.7, 1.0])
    found = Loss(EXP, make_source("rademacher"), gamma).at(a)
    assert np.all(found.slope * a > 0)
    assert np.all(found.loss[a > 0] * a[a > 0] < 0)


def descended(source, contrast, sign, start=0.8, steps=300, batch=2000, eta=1.0):
    """Final overlaps of six runs of (B.5), ascent for sign 1, in four dimensions, gamma = 1/2."""
    rng, given, law = np.random.default_rng(4), make_contrast(contrast), make_source(source)
    ends = []
    for _ in range(6):
        w = filters(start, 4)
        for _ in range(steps):
            _, y = reduced(rng, batch, 4, 0.5, law.sample)
            gradient = given.slope(y @ w) @ y / batch
            w = w + sign * eta * (gradient - w * (w @ gradient))
            w /= np.linalg.norm(w)
        ends.append(abs(w[0]))
    return np.array(ends)


@pytest.mark.deep
def test_theorem_4_needs_a_sign():
    """Super-Gaussian h and G = -exp(-s^2/2): ascent leaves the feature, descent finds it."""
    assert np.all(descended("laplace", "exp", 1.0) < 0.5)
    assert np.all(descended("laplace", "exp", -1.0) > 0.97)


def test_the_fourth_hermite_polynomial_has_a_square():
    fourth, printed = make_contrast("he4"), make_contrast("s**4 - 3")
    for k in range(4):
        assert fourth.hermite(k) == pytest.approx(0.0, abs=1e-12)
    assert printed.hermite(2) == pytest.approx(12.0)
    law, a = make_source("laplace"), np.linspace(-1, 1, 9)
    one, other = (Loss(given, law, 0.5).at(a) for given in (fourth, printed))
    assert one.loss == pytest.approx(other.loss, abs=1e-12)
    s = np.array([-1.3, 0.2, 2.0])
    assert printed.slope(s) - fourth.slope(s) == pytest.approx(12 * s)


def test_theorem_2_noise_is_correlated():
    rng, n = np.random.default_rng(5), 1_000_000
    _, _, g, z = spiked(rng, n, BETA, ALPHA, 3)
    zhat = (g + z) / np.sqrt(1 + BETA)
    a = ALPHA / np.sqrt(1 + BETA)
    expected = np.eye(3) - np.outer(a, a)
    for i, j in ((0, 0), (1, 1), (0, 1), (0, 2), (1, 2)):
        product = zhat[:, i] * zhat[:, j]
        assert far(product, expected[i, j]) < AGREES
        if i != j:
            assert far(product, 0.0) > REJECTED
    assert Reduction(BETA, ALPHA, 0.0).noise == pytest.approx(expected)


def test_theorem_2_proof_has_no_beta_4():
    """E h y = sqrt(gamma) vt: any other factor of h leaves y other than white."""
    rng, n = np.random.default_rng(6), 400_000
    h, v, g, z = spiked(rng, n, BETA, ALPHA, 3)
    found = Reduction(BETA, ALPHA, 0.0)
    for factor, white in ((1.0, True), (1.2, False)):
        y = (factor * np.outer(h, v) + g + z) / np.sqrt(1 + BETA)
        along = y @ found.direction
        assert bool(far(along**2, 1.0) < AGREES) is white
        assert bool(far(h * along, math.sqrt(found.gamma)) < AGREES) is white


def test_theorem_2_needs_an_orthonormal_completion():
    """U = [u, e_(r+1), ..., e_D] is no rotation unless the spikes are in span(e_1, ..., e_r)."""
    rng, size, rank = np.random.default_rng(7), 6, 3
    u = np.linalg.qr(rng.standard_normal((size, rank)))[0]
    printed = np.hstack([u, np.eye(size)[:, rank:]])
    corrected = np.linalg.qr(printed)[0]
    c = np.eye(size) + u @ np.diag(BETA) @ u.T
    eigenvalues = np.concatenate([1 + BETA, np.ones(size - rank)])
    for basis, right in ((printed, False), (corrected, True)):
        off = float(np.max(np.abs(basis @ np.diag(eigenvalues) @ basis.T - c)))
        assert (off < 1e-12) is right
        assert np.allclose(basis.T @ basis, np.eye(size), atol=1e-12) is right
        assert right or off > 0.1


def test_the_covariance_needs_a_standardised_h():
    rng, n = np.random.default_rng(8), 200_000
    h, v, g, z = spiked(rng, n, BETA, ALPHA, 5)
    along = [((scale * np.outer(h, v) + g + z) @ v) ** 2 for scale in (1.0, math.sqrt(2))]
    expected = float(v @ (np.eye(5) + np.diag([*BETA, 0, 0])) @ v)
    assert far(along[0], expected) < AGREES
    assert far(along[1], expected) > REJECTED


PHI = 0.9
EPSILON = math.sqrt(1 - PHI**2)
TILDE = np.array([0.0, 0.6, 0.0, 0.8])


def test_lemma_3_variance_of_the_noise():
    """Of the first component, with uh = phi e_1 + eps ut in four dimensions."""
    rng, beta, alpha = np.random.default_rng(9), np.array([0.5, 0.5, 0.5]), ALPHA
    _, v, g, z = spiked(rng, 1_000_000, beta, alpha, 4)
    uh = PHI * np.eye(4)[0] + EPSILON * TILDE
    squares = ((g + z) @ uh) ** 2 / (1 + beta[0])
    common = PHI**2 * beta[0] + EPSILON**2 * float(np.sum(beta * TILDE[:3] ** 2))
    corrected = (common + 1 - float(v @ uh) ** 2) / (1 + beta[0])
    printed = (common + 1 - alpha[0] ** 2) / (1 + beta[0])
    assert far(squares, corrected) < AGREES
    assert far(squares, printed) > REJECTED


def test_b4_divides_the_noise_too():
    """At phi = 1 a component has variance 1; 1.32 with the noise as printed (alpha .6, beta 1)."""
    rng, n = np.random.default_rng(10), 400_000
    beta, alpha = np.array([1.0, 1.0]), np.array([0.6, 0.8])
    h, v, g, z = spiked(rng, n, beta, alpha, 2)
    corrected = (h * v[0] + g[:, 0] + z[:, 0]) / math.sqrt(2)
    printed = (h * v[0] + g[:, 0]) / math.sqrt(2) + z[:, 0]
    assert far(corrected**2, 1.0) < AGREES
    assert far(printed**2, 1.32) < AGREES
    assert far(printed**2, 1.0) > REJECTED


def components(seed, size, c, beta, rank):
    """Leading eigenvectors of the covariance of a sample of (3), shape (D, r)."""
    rng, alpha = np.random.default_rng(seed), np.full(rank, rank**-0.5)
    h, v, g, z = spiked(rng, round(size / c), np.full(rank, beta), alpha, size)
    x = np.outer(h, v) + g + z
    return np.linalg.eigh(x.T @ x / len(x))[1][:, : -rank - 1 : -1]


def test_lemma_3_estimated_components_are_orthonormal():
    """The matrix R of Lemma 3 is 0, where (B.3) with random errors has terms of order eps."""
    found = components(0, 100, 0.5, 2.0, 4)
    assert np.max(np.abs(found.T @ found - np.eye(4))) < 1e-12
    rng = np.random.default_rng(11)
    tilde = rng.standard_normal((4, 100))
    tilde -= np.eye(4, 100) * tilde
    tilde /= np.linalg.norm(tilde, axis=1, keepdims=True)
    independent = PHI * np.eye(4, 100) + EPSILON * tilde
    assert np.max(np.abs(np.triu(independent @ independent.T, 1))) > 1e-2


@pytest.mark.deep
def test_b3_holds_of_subspaces_of_equal_spikes():
    size, c, beta, rank = 200, 0.5, 2.0, 4
    overlaps = np.array([components(seed, size, c, beta, rank)[:rank] ** 2 for seed in range(40)])
    phi2 = float(Reduction(np.full(rank, beta), np.full(rank, 0.5), c).phi2[0])
    assert phi2 == pytest.approx(0.7)
    subspace = overlaps.sum(axis=(1, 2)) / rank
    # The finite dimension leaves a term of order 1/D.
    assert abs(subspace.mean() - phi2) < AGREES * subspace.std(ddof=1) / math.sqrt(40) + 2 / size
    single = np.diagonal(overlaps, axis1=1, axis2=2).mean(axis=1)
    assert far(single, phi2) > REJECTED
    assert abs(single.mean() - phi2 / rank) < AGREES * single.std(ddof=1) / math.sqrt(40)


def test_lemma_3_linearly_many_samples_leave_an_angle():
    """At n = 2D the projection of v on the components stays at phi < 1, whatever D."""
    expected = Reduction(np.full(2, 2.0), np.full(2, 0.5**0.5), 0.5).length
    assert expected == pytest.approx(math.sqrt(0.7))
    for size in (50, 150):
        found = [components(seed, size, 0.5, 2.0, 2)[:2] for seed in range(20)]
        kept = np.array([np.linalg.norm(np.full(2, 0.5**0.5) @ one) for one in found])
        assert kept.mean() == pytest.approx(expected, abs=AGREES * kept.std() / 20**0.5 + 2 / size)
        assert far(kept, 1.0) > REJECTED


def test_theorem_4_proof_gradient_is_spherical_only():
    """E x g(w.x) = L'(a) vt + E[g'] w; without w it is the gradient of no loss on R^r."""
    rng, a, gamma = np.random.default_rng(12), 0.6, 0.5
    w, vt = filters(a, 2), np.eye(2)[0]
    _, y = reduced(rng, 1_000_000, 2, gamma)
    s = y @ w
    terms = y * EXP.slope(s)[:, None]
    slope = float(Loss(EXP, make_source("rademacher"), gamma).at(np.array(a)).slope)
    curvature = float(EXP.curvature(s).mean())
    assert np.all(far(terms, slope * vt + curvature * w) < AGREES)
    assert np.all(far(terms, slope * vt) > REJECTED)
    spherical = terms - np.outer(terms @ w, w)
    assert np.all(far(spherical, slope * (vt - a * w)) < AGREES)


def test_theorem_4_proof_takes_the_least_slope_on_the_way():
    """Where L' is not increasing, f with C = L'(a0) overtakes the flow; with the least it cannot.

    G = He_4 - 0.06 He_6 has L' = 12 a^3 - 10.8 a^5, which rises and falls, and is positive.
    """
    law = make_source("laplace")
    given = make_contrast("s**4 - 6*s**2 + 3 - 0.06*(s**6 - 15*s**4 + 45*s**2 - 15)")
    moves = flow.Flow(Loss(given, law, 1.0), 1)
    slopes = moves.loss.at(np.array([0.75, 0.9, 0.99])).slope
    assert slopes[0] > slopes[1] > slopes[2] > 0
    times = np.linspace(0.0, 2 / slopes[0], 41)
    path, error = moves.path(0.75, times)
    assert np.all(error < 1e-9)
    least = moves.least_slope(0.75, 1.0)
    assert np.all(flow.bound(least, 0.75, times) <= path + 1e-12)
    assert np.max(flow.bound(float(slopes[0]), 0.75, times) - path) > 1e-3


def test_b5_batches_and_steps_of_one_size_break_the_proof():
    """With K = B = sqrt(n) and eta K = 120 gradients err by far more than eta^2, and it works.

    The errors of the batches are independent, and average out over the steps.
    """
    rng, size, k = np.random.default_rng(13), 4, 1000
    eta, w = 120 / k, filters(0.5, size)
    loss = Loss(EXP, make_source("rademacher"), 0.5)
    errors = []
    for step in range(k):
        _, y = reduced(rng, k, size, 0.5)
        gradient = EXP.slope(y @ w) @ y / k
        gradient -= w * (w @ gradient)
        if step < 100:
            mean = float(loss.at(np.array(w[0])).slope) * (np.eye(size)[0] - w[0] * w)
            errors.append(np.linalg.norm(gradient - mean))
        w = w + eta * gradient
        w /= np.linalg.norm(w)
    spread = math.sqrt((size - 1) * float(np.mean(EXP.slope(rng.standard_normal(10**6)) ** 2)) / k)
    assert np.mean(errors) == pytest.approx(spread, rel=0.2)
    assert np.mean(errors) > 1.5 * eta**2
    assert abs(w[0]) > 0.995


D, K = 121, 48


def projected(seed, count=100_000):
    """Squared norms of random filters and of their projections on K of D directions."""
    rng = np.random.default_rng(seed)
    return rng.chisquare(K, count), rng.chisquare(D - K, count)


def test_a1_needs_squared_norms():
    inside, outside = projected(14)
    share = inside / (inside + outside)
    squared, printed = share - K / D, 1 - np.sqrt(1 - share) - K / D
    assert far(squared, 0.0) < AGREES
    spread = math.sqrt(2 * K * (D - K) / (D**2 * (D + 2)))
    assert np.std(squared) == pytest.approx(spread, rel=0.02)
    assert far(printed, 0.0) > REJECTED
    ratio = beta_function((D - K + 1) / 2, K / 2) / beta_function((D - K) / 2, K / 2)
    assert far(printed, 1 - ratio - K / D) < AGREES


def test_a1_in_the_span_is_not_one():
    """A filter in the span has 1 - k/d, squared or not; only divided by that 1."""
    w = np.zeros(D)
    w[:K] = np.random.default_rng(15).standard_normal(K)
    rest = np.linalg.norm(w[K:]) / np.linalg.norm(w)
    for power in (1, 2):
        assert 1 - rest**power - K / D == pytest.approx(1 - K / D)
        assert (1 - rest**power - K / D) / (1 - K / D) == pytest.approx(1.0)
    assert 1 - K / D < 0.61


def test_a2_needs_the_mean_subtracted():
    """Of a normal variable of mean 1/2 and variance 1, whose excess kurtosis is 0."""
    s = 0.5 + np.random.default_rng(16).standard_normal(200_000)
    scaled, centred = s / s.std(), (s - s.mean()) / s.std()
    assert far(centred**4 - 3, 0.0) < AGREES
    assert far(scaled**4 - 3, 0.0) > REJECTED


def one_step(rng, size, n, runs, gamma=0.95):
    """Overlaps after one FastICA step on n new samples from r^-1/2, as large as at random.

    Exact in law: y has components along vt and along the rest e of w, and its others are normal
    and independent of w.y, so that their sums with g(w.y) are normal given g.
    """
    a = size**-0.5
    b, ends = math.sqrt(1 - a * a), np.empty(runs)
    for k in range(runs):
        z, across = rng.standard_normal((2, n), dtype=np.float32)
        h = rng.integers(0, 2, n, dtype=np.int8) * np.float32(2) - np.float32(1)
        along = math.sqrt(gamma) * h + math.sqrt(1 - gamma) * z
        s = a * along + b * across
        normal = np.exp(-s * s / 2)
        g, bend = s * normal, float(np.mean((1 - s * s) * normal))
        w = [along @ g / n - bend * a, across @ g / n - bend * b]
        rest = math.sqrt(g @ g) / n * math.sqrt(rng.chisquare(size - 2))
        ends[k] = abs(w[0]) / math.sqrt(w[0] ** 2 + w[1] ** 2 + rest**2)
    return ends


def samples_for_half(size, gamma=0.95, runs=250):
    """Samples at which half of the steps lead to an overlap above 1/2, and as they are predicted.

    The step is L'(a) vt and noise of variance E g^2/n in each of r - 1 directions.
    """
    slope = float(Loss(EXP, make_source("rademacher"), gamma).at(np.array(size**-0.5)).slope)
    expected = (size - 1) * 3**-1.5 / (3 * slope**2)
    rng, away = np.random.default_rng(size), np.log(2) * np.array([-0.8, -0.4, 0.0, 0.4, 0.8])
    share = [np.mean(one_step(rng, size, int(expected * math.exp(x)), runs) > 0.5) for x in away]
    rise, middle = np.polyfit(away, share, 1)
    return expected * math.exp((0.5 - middle) / rise), expected


@pytest.mark.deep
def test_one_step_takes_r_to_the_fourth_samples():
    """The information exponent 4; 2, which Lemma 5 as printed has, would take r^2."""
    sizes = np.array([5, 7, 10])
    found, expected = np.transpose([samples_for_half(int(r)) for r in sizes])
    assert found == pytest.approx(expected, rel=0.3)
    exponent, predicted = (np.polyfit(np.log(sizes), np.log(n), 1)[0] for n in (found, expected))
    assert exponent == pytest.approx(predicted, abs=0.6)
    assert 3.5 < exponent < 5.5


def test_f_is_correct():
    """The printed f is tanh(C t + artanh a0), which solves its equation."""
    least, a0, t = 0.3, 0.2, np.linspace(0, 5, 11)
    grown = (a0 + 1) * np.exp(2 * least * t)
    printed = (grown + a0 - 1) / (grown - a0 + 1)
    assert flow.bound(least, a0, t) == pytest.approx(printed, rel=1e-14)
    step = 1e-4
    slope = (flow.bound(least, a0, t + step) - flow.bound(least, a0, t - step)) / (2 * step)
    assert slope == pytest.approx(least * (1 - printed**2), rel=1e-6)


def test_b6_is_correct():
    """The mean of one step of (B.5) is eta L'(a)(1 - a^2) + O(eta^2)."""
    rng, a, gamma = np.random.default_rng(17), 0.6, 0.5
    w, batch, runs = filters(a, 4), 50, 20_000
    slope = float(Loss(EXP, make_source("rademacher"), gamma).at(np.array(a)).slope)
    _, y = reduced(rng, batch * runs, 4, gamma)
    terms = (EXP.slope(y @ w)[:, None] * y).reshape(runs, batch, 4).mean(axis=1)
    terms -= np.outer(terms @ w, w)
    moved = {}
    for eta in (0.05, 0.1):
        after = w + eta * terms
        after /= np.linalg.norm(after, axis=1, keepdims=True)
        moved[eta] = (after[:, 0] - a) / eta
    # Two steps together take the term of order eta away.
    assert far(2 * moved[0.05] - moved[0.1], slope * (1 - a * a)) < AGREES


def test_4_is_correct():
    """Projected and whitened inputs (3) are sqrt(gamma) h vt + noise, and white."""
    rng = np.random.default_rng(18)
    h, v, g, z = spiked(rng, 400_000, BETA, ALPHA, 5)
    y = ((np.outer(h, v) + g + z) @ np.eye(5)[:, :3]) / np.sqrt(1 + BETA)
    found = Reduction(BETA, ALPHA, 0.0)
    for i in range(3):
        for j in range(i + 1):
            assert far(y[:, i] * y[:, j], float(i == j)) < AGREES
    rest = y - math.sqrt(found.gamma) * np.outer(h, found.direction)
    assert np.all(far(rest * h[:, None], 0.0) < AGREES)
    assert far((rest @ found.direction) ** 2, 1 - found.gamma) < AGREES
