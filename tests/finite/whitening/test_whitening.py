"""Mean, principal components and whitened scores against LAPACK on all samples."""

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.finite.fastica import whitening
from hdica.finite.fastica.whitening import sample_moments, whitened


def spiked(n, size, spikes=(3.0, 2.5, 2.0), seed=0):
    """Samples far from the origin, with some directions of larger variance."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, size))
    x[:, : len(spikes)] *= np.sqrt(1 + np.array(spikes))
    return 100.0 + x


def in_blocks(x, rows):
    return lambda: (x[k : k + rows] for k in range(0, len(x), rows))


def same_space(a, b):
    return np.min(np.linalg.svd(a.T @ b)[1])


@pytest.fixture
def products(monkeypatch):
    """Whitening without the covariance matrix, in at most so many iterations."""

    def whiten(x, d, most=200, tolerance=1e-8):
        with monkeypatch.context() as patched:
            for name, value in (("_QUICK", 10), ("_LARGE", 10), ("_MOST", most)):
                patched.setattr(whitening, name, value)
            patched.setattr(whitening, "_TOLERANCE", tolerance)
            return whitened(x, d)

    return whiten


def test_moments_are_those_of_numpy_for_any_blocks():
    x = spiked(301, 7)
    for samples in (x, in_blocks(x, 50), in_blocks(x, 1000)):
        found = sample_moments(samples)
        assert found.count == 301
        assert np.allclose(found.mean, x.mean(axis=0), rtol=1e-14)
        assert np.allclose(found.covariance, np.cov(x.T, ddof=0), atol=1e-13)


@pytest.mark.parametrize("d", [1, 3, None])
def test_scores_are_white(d):
    x = spiked(500, 12)
    found = whitened(x, d)
    d = d or 12
    values = np.linalg.eigvalsh(np.cov(x.T, ddof=0))[::-1][:d]
    assert np.allclose(found.variances, values, rtol=1e-12)
    assert np.allclose(found.directions.T @ found.directions, np.eye(d), atol=1e-12)
    y = found.scores(x)
    assert y.flags.c_contiguous
    assert np.allclose(y.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(y.T @ y / 500, np.eye(d), atol=1e-11)
    assert np.allclose(found.all_scores(in_blocks(x, 33)), y, atol=1e-12)
    largest = np.argmax(np.abs(found.directions), axis=0)
    assert np.all(found.directions[largest, np.arange(d)] > 0)
    other = spiked(20, 12, seed=1)
    assert np.allclose(found.scores(other), (other - x.mean(axis=0)) @ found.unmixing)


def test_products_alone_give_the_components_of_the_matrix(products):
    x = spiked(900, 300)
    exact, few = whitened(x, 3), products(x, 3)
    assert np.allclose(few.variances, exact.variances, rtol=1e-13)
    assert same_space(few.directions, exact.directions) > 1 - 1e-12
    assert np.allclose(few.directions, exact.directions, atol=1e-6)
    again = products(x, 3)
    assert np.array_equal(few.directions, again.directions)


def test_fewer_samples_than_dimensions(products):
    x = spiked(40, 400)
    exact, few = whitened(x, 3), products(x, 3)
    assert np.allclose(few.variances, exact.variances, rtol=1e-12)
    assert np.allclose(few.directions, exact.directions, atol=1e-6)


def test_lanczos_takes_over_where_products_do_not_suffice(products):
    x = spiked(900, 300, spikes=(0.4,))
    exact, few = whitened(x, 2), products(x, 2, 2)
    assert np.allclose(few.variances, exact.variances, rtol=1e-12)
    assert np.allclose(few.directions, exact.directions, atol=1e-6)


@pytest.mark.parametrize("most", [2, 200])
def test_eigenpairs_are_right_whether_or_not_the_first_iteration_arrives(most, products):
    """With two iterations Lanczos takes over."""
    x = spiked(900, 400, spikes=(3.0, 2.9, 2.8))
    found = products(x, 3, most, 1e-10)
    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    assert found.variances == pytest.approx(values[::-1][:3], rel=1e-12)
    assert np.allclose(np.abs(np.sum(found.directions * vectors[:, :-4:-1], axis=0)), 1, atol=1e-12)


def test_threads_of_blas_do_not_matter(products):
    from threadpoolctl import threadpool_limits

    x = spiked(600, 200)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append([whitened(x, 3), products(x, 3)])
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one.directions, other.directions)
        assert np.array_equal(one.scores(x), other.scores(x))


def test_many_dimensions_take_products_and_many_components_the_matrix(monkeypatch):
    made = []
    monkeypatch.setattr(whitening, "_of_products", lambda *a: made.append(a) or a_fail())

    def a_fail():
        raise HdicaError("products")

    x = spiked(60, 2400)
    with pytest.raises(HdicaError, match="products"):
        whitened(x, 3)
    assert whitened(x[:, :1000], 3).directions.shape == (1000, 3)
    assert len(made) == 1


def test_refusals():
    x = spiked(50, 4)
    with pytest.raises(HdicaError, match="d = 5 is not allowed"):
        whitened(x, 5)
    with pytest.raises(HdicaError, match="d = 0 is not allowed"):
        whitened(x, 0)
    with pytest.raises(HdicaError, match="at least 2"):
        whitened(x[:1], 2)
    with pytest.raises(HdicaError, match="samples of shape"):
        whitened(np.ones(5), 1)
    flat = x.copy()
    flat[:, 1] = 3.0
    with pytest.raises(HdicaError, match="the 50 samples vary in 3 directions"):
        whitened(flat, 4)
    with pytest.raises(HdicaError, match="vary in 0 directions"):
        whitened(np.ones((50, 4)), 2)
    with pytest.raises(HdicaError, match="not finite"):
        whitened(np.where(flat == 3, np.nan, flat), 2)
