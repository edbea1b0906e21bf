"""Offline baselines against scikit-learn, against each other and against their asymptotic error."""

from functools import partial

import numpy as np
import pytest
from sklearn.decomposition import FastICA

from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica import offline as samples_module
from hdica.systems.tensorial_ica.offline import (
    batch_fastica,
    batch_gradient,
    batch_level,
    highest,
    passes,
    whitening_of,
)
from hdica.systems.tensorial_ica.rule import draws, nearest_axis, run_together
from tests.systems.tensorial_ica.cases import near_axis, rule_of, stream_of
from tests.systems.tensorial_ica.reference import all_components

LEVEL = 4.0  # standard errors
BOTH = (batch_fastica, batch_gradient)
SKEWED = {"discrete": {"values": [0.0, 1.0], "weights": [0.05, 0.95]}}


def begin(source, d, seed):
    rng = np.random.default_rng(seed)
    return lambda count: make_source(source).sample(rng, count * d).reshape(count, d)


def blocks_of(source, d, count, seed=0, mixing=None):
    return passes(partial(begin, source, d, seed), d, count, mixing)


def rotation(d, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def start_of(d, seed=2):
    return np.random.default_rng(seed).standard_normal(d)


@pytest.fixture(scope="module")
def observed():
    """Blocks of uniform sources, mixed, the samples themselves and the mixing matrix."""
    mixing = rotation(5)
    blocks = blocks_of("uniform", 5, 10000, mixing=mixing)
    return blocks, np.concatenate(list(blocks())), mixing


@pytest.mark.parametrize("most", [1, 2, 3, 60])
def test_first_component_is_that_of_scikit_learn_on_white_data(observed, most):
    blocks, x, mixing = observed
    starts = np.array([start_of(5, seed) for seed in range(5)])
    ours = batch_fastica(blocks, starts[0], mixing, whiten=False, most=most)
    ica = FastICA(algorithm="deflation", whiten=False, fun="cube", max_iter=most, tol=1e-14)
    theirs = ica.set_params(w_init=starts).fit(x).components_[0]
    assert np.allclose(ours.vector, theirs, rtol=0, atol=1e-11)
    assert ours.converged == (most == 60)


@pytest.mark.parametrize("most", [1, 2, 60])
def test_first_component_is_that_of_scikit_learn_with_its_whitening(observed, most):
    blocks, x, mixing = observed
    # Its whitened coordinates are turned against the symmetric ones: so is the start.
    first = FastICA(whiten="unit-variance", whiten_solver="eigh", max_iter=1, random_state=0)
    with pytest.warns(UserWarning, match="did not converge"):
        theirs = first.fit(x).whitening_ * np.sqrt(len(x))
    turn = theirs @ np.linalg.inv(whitening_of(blocks)[1])
    starts = np.array([start_of(5, seed) for seed in range(5)])
    ica = FastICA(algorithm="deflation", fun="cube", whiten_solver="eigh", tol=1e-14)
    found = ica.set_params(max_iter=most, w_init=starts @ turn.T).fit(x).components_[0]
    ours = batch_fastica(blocks, starts[0], mixing, most=most).vector
    assert np.allclose(ours, found / np.linalg.norm(found), rtol=0, atol=1e-10)


@pytest.mark.parametrize("whiten", [True, False])
def test_both_find_a_critical_point_of_the_empirical_kurtosis(observed, whiten):
    blocks, x, mixing = observed
    # From near one axis both stay with it, and the critical point near it is the same.
    start = mixing[:, 3] + 0.1 * start_of(5)
    fast, slow = (algorithm(blocks, start, mixing, whiten=whiten) for algorithm in BOTH)
    assert fast.converged
    assert slow.converged
    assert fast.component == slow.component == 3
    assert abs(abs(fast.vector @ slow.vector) - 1) < 1e-12
    x = x - whiten * np.mean(x, axis=0)
    push = np.mean((x @ fast.vector)[:, None] ** 3 * x, axis=0)
    metric = np.cov(x.T, bias=True) if whiten else np.eye(5)
    expected = metric @ fast.vector
    along = push @ expected / (expected @ expected)
    assert np.linalg.norm(push - along * expected) < 1e-6


def errors(algorithm, source, d, count, seeds, **options):
    found = [
        algorithm(blocks_of(source, d, count, seed), start_of(d, 1000 + seed), **options)
        for seed in range(seeds)
    ]
    assert all(f.converged for f in found)
    tan2 = np.array([f.tan2 for f in found])
    return tan2.mean(), tan2.std(ddof=1) / np.sqrt(seeds)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize(
    ("algorithm", "source", "d", "count"),
    [
        (batch_fastica, "uniform", 10, 10000),
        (batch_fastica, "laplace", 10, 10000),
        (batch_gradient, "uniform", 5, 10000),
    ],
)
def test_mean_error_is_that_of_the_asymptotic_variance(algorithm, source, d, count, whiten):
    mean, error = errors(algorithm, source, d, count, 80, whiten=whiten)
    assert abs(mean - batch_level(make_source(source), d, count, whiten=whiten)) < LEVEL * error
    # Control: nothing of this holds for the variance of the other estimator.
    assert abs(mean - batch_level(make_source(source), d, count, whiten=not whiten)) > LEVEL * error


def test_annealed_online_rule_makes_the_error_of_unwhitened_samples():
    # eta = 1/(beta (t + t0)) sums what the batch averages, over T + t0 instead of T.
    d, count, t0, source = 5, 40000, 1500.0, make_source("uniform")
    rule = rule_of("uniform", d, f"1/(1.2*(t + {t0}))", start=near_axis(d, 0.02))
    streams = [stream_of(seed, "annealed") for seed in range(16)]
    times = np.array([float(count)])
    runs = [*run_together([rule] * 8, times, streams[:8])]
    runs += run_together([rule] * 8, times, streams[8:])
    online, batch, white = np.empty((3, 16))
    for k, stream in enumerate(streams):
        blocks = passes(lambda stream=stream: draws(source, d, stream("source")), d, count)
        start = rule.start(stream("start"))
        online[k] = runs[k][0]["tan2"][-1]
        batch[k] = batch_fastica(blocks, start, whiten=False).tan2
        white[k] = batch_fastica(blocks, start).tan2
    assert np.corrcoef(online, batch)[0, 1] > 0.97
    assert online.mean() / batch.mean() == pytest.approx((count / (count + t0)) ** 2, rel=0.08)
    # Control: whitening leaves a sixth of that error, and another one.
    assert white.mean() < batch.mean() / 3
    assert np.corrcoef(online, white)[0, 1] < 0.97


def test_moments_of_the_asymptotic_error():
    # By hand: uniform, beta = 6/5, mu4 = 9/5, mu6 = 27/7; Laplace, beta = 3, mu4 = 6, mu6 = 90.
    uniform, laplace = make_source("uniform"), make_source("laplace")
    assert batch_level(uniform, 11, 1000, whiten=False) == pytest.approx(0.01 * (27 / 7) / 1.44)
    white = (27 / 7 - 81 / 25) / 1.44
    assert batch_level(uniform, 11, 1000, whiten=True) == pytest.approx(0.01 * white)
    assert batch_level(laplace, 2, 100, whiten=False) == pytest.approx(0.1)
    assert batch_level(laplace, 2, 100, whiten=True) == pytest.approx(0.06)


@pytest.mark.parametrize("source", ["rademacher", SKEWED])
def test_sources_of_two_values_are_recovered_without_error_once_white(source):
    assert batch_level(make_source(source), 5, 20000, whiten=True) < 1e-12
    for algorithm in BOTH:
        found = algorithm(blocks_of(source, 5, 20000), start_of(5))
        assert found.converged
        assert found.tan2 < 1e-13
        raw = algorithm(blocks_of(source, 5, 20000), start_of(5), whiten=False)
        assert raw.tan2 > 1e-6


def test_line_search_finds_the_highest_point_of_a_circle():
    angle = np.linspace(-np.pi / 2, np.pi / 2, 20001)
    rng = np.random.default_rng(5)
    forms = [*rng.standard_normal((50, 5)), [0, 0, 0, 0, 1.0], [1.0, 0, 0, 0, 0], [1.0, 0, 6, 0, 1]]
    for form in np.array(forms):
        powers = np.arange(5)[:, None]
        values = form @ (np.cos(angle) ** (4 - powers) * np.sin(angle) ** powers)
        x = highest(form)
        best = form @ (np.cos(x) ** (4 - powers[:, 0]) * np.sin(x) ** powers[:, 0])
        assert values.max() - 1e-12 <= best < values.max() + 1e-5


def test_ascent_with_the_wrong_sign_finds_the_direction_farthest_from_all_axes():
    blocks = blocks_of("uniform", 5, 50000)
    right = batch_gradient(blocks, start_of(5), sign=-1)
    assert right.tan2 < 0.001
    assert right.vector.tolist() == batch_gradient(blocks, start_of(5)).vector.tolist()
    assert 2 < batch_gradient(blocks, start_of(5), sign=1).tan2 < 4.5


def test_samples_are_those_of_the_online_rule():
    source, stream = make_source("laplace"), stream_of(3)
    blocks = passes(lambda: draws(source, 5, stream("source")), 5, 9000)
    for _ in range(2):
        x = np.concatenate(list(blocks()))
        assert x.tobytes() == draws(source, 5, stream("source"))(9000).tobytes()


def test_samples_that_are_not_kept_give_the_same_bits(monkeypatch):
    kept = [algorithm(blocks_of("laplace", 4, 9000), start_of(4)) for algorithm in BOTH]
    monkeypatch.setattr(samples_module, "IN_MEMORY", 9000)
    for algorithm, one in zip(BOTH, kept, strict=True):
        other = algorithm(blocks_of("laplace", 4, 9000), start_of(4))
        assert other.vector.tobytes() == one.vector.tobytes()
        assert (other.tan2, other.iterations) == (one.tan2, one.iterations)


@pytest.mark.parametrize("algorithm", BOTH)
def test_a_mixing_matrix_changes_nothing_but_rounding(algorithm):
    mixing, start = rotation(6), start_of(6)
    plain = algorithm(blocks_of("uniform", 6, 20000), start)
    mixed = algorithm(blocks_of("uniform", 6, 20000, mixing=mixing), mixing @ start, mixing)
    assert mixed.component == plain.component
    assert mixed.tan2 == pytest.approx(plain.tan2, rel=1e-6)
    assert np.allclose(mixed.vector, mixing @ plain.vector, rtol=0, atol=1e-8)


@pytest.mark.parametrize("algorithm", ["deflation", "parallel"])
def test_scikit_learn_finds_all_components(observed, algorithm):
    blocks, _, mixing = observed
    starts = np.array([start_of(5, seed) for seed in range(5)])
    vectors = all_components(np.concatenate(list(blocks())), starts, algorithm)
    found = [nearest_axis(mixing.T @ u) for u in vectors]
    assert sorted(component for _, component in found) == list(range(5))
    assert max(tan2 for tan2, _ in found) < 0.002
    if algorithm == "deflation":
        alone = batch_fastica(blocks, starts[0], mixing)
        assert np.allclose(vectors[0], alone.vector, rtol=0, atol=1e-10)


def test_an_iteration_that_is_cut_short_says_so(observed):
    blocks, _, mixing = observed
    for algorithm in BOTH:
        found = algorithm(blocks, start_of(5), mixing, most=2)
        assert (found.iterations, found.converged) == (2, False)


def test_tangent_keeps_its_digits_near_an_axis():
    assert nearest_axis(np.array([1e-12, -1.0, 0.0])) == (1e-24, 1)


def test_refusals():
    with pytest.raises(HdicaError, match="samples = 5 is not allowed"):
        blocks_of("uniform", 5, 5)
    blocks = blocks_of("uniform", 3, 100)
    with pytest.raises(HdicaError, match=r"start of length 0\.0 is not allowed"):
        batch_fastica(blocks, np.zeros(3))
    with pytest.raises(HdicaError, match=r"source gaussian is not allowed \(a finite sixth"):
        batch_level(make_source("gaussian"), 5, 100, whiten=True)
    with pytest.raises(HdicaError, match="has no inverse"):
        whitening_of(lambda: [np.ones((10, 3))])
