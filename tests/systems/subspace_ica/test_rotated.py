"""Scores drawn without samples have the law of those of samples."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import ks_2samp

import hdica
from hdica.finite.random.streams import streams_of
from hdica.systems.subspace_ica import rotated as module
from hdica.systems.subspace_ica.rotated import frame_of, leading, middle, rotated
from hdica.systems.subspace_ica.samples import principal

SEEDS = 250
CASES = {
    "many samples": ({"dimension": 12, "rank": 2, "beta": [3, 1], "alpha": [0.6, 0.8]}, 2, 40),
    "few samples": ({"dimension": 40, "rank": 2, "beta": 4.0, "latent": "laplace"}, 2, 15),
    "as many": ({"dimension": 18, "rank": 2, "beta": 3.0}, 2, 21),
    "more components": ({"dimension": 9, "rank": 1, "beta": 2.0}, 4, 30),
    "fewer components": ({"dimension": 9, "rank": 3, "beta": [5, 2, 1]}, 1, 30),
    "all dimensions": ({"dimension": 3, "rank": 3, "beta": [5, 2, 1]}, 3, 20),
}
KINDS = {"samples": principal, "scores": rotated}


def stream(*content):
    return streams_of({"test": [str(one) for one in content]}, "rotated")(0)


def told(prepared):
    """Numbers of a draw: eigenvalues, overlaps, and moments of the scores that it is about."""
    frame, y = prepared.frame, prepared.y
    e = y @ frame.signal
    return [
        prepared.variances[0],
        prepared.variances[-1],
        frame.length,
        frame.overlap(frame.signal[None])[0],
        np.mean(e**4),
        np.mean(y**4),
        np.max(np.abs(y)),
        np.mean(e[1:] * e[:-1]),
    ]


@cache
def drawn(kind, case, sample=True, scale=1.0):
    given, d, count = CASES[case]
    beta = np.multiply(given["beta"], scale).tolist()
    spiked = hdica.SubspaceModel(**{**given, "beta": beta}).spiked
    make = KINDS[kind]
    return np.array([
        told(make(spiked, d, count, stream(kind, case, k, sample, scale), sample=sample))
        for k in range(SEEDS)
    ])  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("sample", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_what_is_told_of_both_has_one_law(case, sample):
    one, other = (drawn(kind, case, sample).T for kind in KINDS)
    # Of some hundred comparisons one in a hundred times one is below by chance.
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        if np.ptp(a) > 1e-9:  # in all dimensions nothing is lost of v
            assert ks_2samp(a, b).pvalue > 1e-4, place


@pytest.mark.parametrize("case", ["many samples", "few samples"])
def test_another_strength_is_told_from_it(case):
    """Negative control: 25 % more strength of the spikes, and eigenvalues differ in law."""
    found = ks_2samp(drawn("samples", case)[:, 0], drawn("scores", case, True, 1.25)[:, 0])
    assert found.pvalue < 1e-4


def matrix(r, count, dimension, seed=0):
    triangle = np.triu(np.random.default_rng(seed).standard_normal((r, r))) * np.sqrt(count)
    return middle(triangle, count, dimension, stream("middle", r, count, dimension))


SHAPES = [(2, 30, 10), (3, 9, 30), (2, 8, 7), (3, 9, 3)]


@pytest.mark.parametrize(("r", "count", "dimension"), SHAPES)
def test_products_are_those_of_the_matrix(r, count, dimension):
    m = matrix(r, count, dimension)
    dense = m.dense()
    assert dense.shape == m.shape
    assert m.shape[0] == r + min(count - 1 - r, dimension - r)
    x, y = (np.random.default_rng(1).standard_normal(size) for size in m.shape[::-1])
    assert m.times(x) == pytest.approx(dense @ x, abs=1e-12)
    assert m.transposed(y) == pytest.approx(dense.T @ y, abs=1e-12)


def test_squares_of_the_noise_add_up_to_those_of_as_many_normal_numbers():
    r, count, dimension = 2, 40, 25
    sums = [np.sum(matrix_of(k, r, count, dimension).dense()[:, r:] ** 2) for k in range(SEEDS)]
    numbers = (count - 1) * (dimension - r)
    assert np.mean(sums) == pytest.approx(numbers, abs=4 * np.sqrt(2 * numbers / SEEDS))
    assert np.var(sums) == pytest.approx(2 * numbers, rel=4 * np.sqrt(2 / SEEDS))


def matrix_of(k, r, count, dimension):
    return middle(np.eye(r), count, dimension, stream("sums", k))


@pytest.mark.parametrize(("count", "dimension"), [(300, 200), (120, 300)])
@pytest.mark.parametrize("d", [1, 4])
def test_iterations_find_what_all_singular_vectors_say(count, dimension, d, monkeypatch):
    m = matrix(3, count, dimension)
    left, values, right = leading(m, d, np.ones(dimension))
    monkeypatch.setattr(module, "DENSE", 0)
    near, found, far = leading(m, d, np.ones(dimension))
    assert found == pytest.approx(values, rel=1e-12)
    signs = np.sign(np.sum(near * left, axis=0))
    assert near * signs == pytest.approx(left, abs=1e-9)
    assert far * signs == pytest.approx(right, abs=1e-9)


def test_a_frame_is_orthonormal_to_itself_and_to_the_signal():
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 3)))[0]
    q = np.linalg.qr(q - q.mean(axis=0))[0]
    f = frame_of(50, q, 4, stream("frame"))
    assert f.T @ f == pytest.approx(np.eye(4), abs=1e-14)
    assert np.abs(q.T @ f).max() < 1e-14
    assert np.abs(f.sum(axis=0)).max() < 1e-13


def test_a_million_samples_in_many_dimensions_are_where_the_limit_is():
    """Of thresholds: phi^2 = (1 - c/beta^2)/(1 + c/beta), at c = 1/4."""
    spiked = hdica.SubspaceModel(dimension=20_000, rank=2, beta=1.0).spiked
    found = rotated(spiked, 2, 80_000, stream("large"), sample=True)
    assert found.frame.length**2 == pytest.approx(0.75 / 1.25, abs=0.03)
    assert found.variances == pytest.approx(2 * 1.25, abs=0.06)
    assert found.y.T @ found.y / 80_000 == pytest.approx(np.eye(2), abs=1e-11)
