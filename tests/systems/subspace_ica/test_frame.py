"""What directions in whitened coordinates mean for the data."""

from __future__ import annotations

import numpy as np
import pytest

import hdica
from hdica.finite.random.streams import streams_of
from hdica.systems.subspace_ica.rotated import rotated
from hdica.systems.subspace_ica.samples import Frame, ambient, known, of_population, principal
from tests.systems.subspace_ica.golden import GOLDEN

MODEL = hdica.SubspaceModel(dimension=12, rank=3, beta=[4, 2, 1], alpha=[0.6, -0.64, 0.48])
MAKERS = {
    "principal": lambda *to, **how: principal(MODEL.spiked, 3, *to, **how),
    "principal 5": lambda *to, **how: principal(MODEL.spiked, 5, *to, **how),
    "principal 2": lambda *to, **how: principal(MODEL.spiked, 2, *to, **how),
    "rotated": lambda *to, **how: rotated(MODEL.spiked, 3, *to, **how),
    "rotated 5": lambda *to, **how: rotated(MODEL.spiked, 5, *to, **how),
    "known": lambda *to, **how: known(MODEL.spiked, *to, **how),
    "ambient": lambda *to, **how: ambient(MODEL.spiked, *to, **how),
}


def stream(seed):
    return streams_of({"test": "frame"}, "frame")(seed)


def made(kind, count=600, seed=0, *, sample=True):
    return MAKERS[kind](count, stream(seed), sample=sample)


@pytest.mark.parametrize("kind", MAKERS)
def test_samples_whitened_by_themselves_are_white(kind):
    y = made(kind).y
    assert np.abs(y.mean(axis=0)).max() < 1e-12
    assert y.T @ y / len(y) == pytest.approx(np.eye(y.shape[1]), abs=1e-10)


@pytest.mark.parametrize("kind", MAKERS)
def test_new_samples_are_white_if_the_population_whitens(kind):
    """And those in hand, up to the noise; in the principal components they vary more."""
    prepared = made(kind, sample=False)
    y = prepared.renew(stream(7))(40_000)
    assert np.abs(y.mean(axis=0)).max() < 5 / 40_000**0.5
    assert y.T @ y / len(y) == pytest.approx(np.eye(y.shape[1]), abs=0.04)


@pytest.mark.parametrize("kind", ["principal", "principal 5", "rotated", "rotated 5"])
def test_new_samples_have_the_covariance_of_their_projections(kind):
    prepared = made(kind, count=60)
    frame = prepared.frame
    inside = np.eye(frame.size) + (frame.rows.T * frame.spiked.beta) @ frame.rows
    expected = np.outer(frame.unmixing, frame.unmixing) * inside
    y = prepared.renew(stream(3))(100_000)
    error = 5 * np.sqrt(2 / len(y)) * np.abs(expected).max()
    assert np.cov(y.T) == pytest.approx(expected, abs=error)
    fourth = ((y - y.mean(axis=0)) @ frame.signal) ** 4
    assert fourth.mean() < 3 * np.var(y @ frame.signal) ** 2 - 3 * fourth.std() / len(y) ** 0.5


@pytest.mark.parametrize("kind", MAKERS)
def test_new_samples_do_not_depend_on_the_portions(kind):
    prepared = made(kind)
    whole = prepared.renew(stream(3))(5000)
    take = prepared.renew(stream(3))
    parts = np.concatenate([take(size) for size in (1, 1999, 3000)])
    assert parts.tobytes() == whole.tobytes()


@pytest.mark.parametrize("d", [2, 3, 6])
def test_overlap_and_correlation_are_those_of_the_directions_in_all_dimensions(d):
    rng = np.random.default_rng(d)
    u = np.linalg.qr(rng.standard_normal((12, d)))[0]
    k = rng.uniform(0.5, 2, d)
    frame, w = Frame(MODEL.spiked, u[:3], k, sample=True), rng.standard_normal((4, d))
    w /= np.linalg.norm(w, axis=1)[:, None]
    c, v = MODEL.covariance(), np.zeros(12)
    v[:3] = MODEL.spiked.alpha
    values, vectors = np.linalg.eigh(c)
    whitened = vectors @ np.diag(values**-0.5) @ vectors.T @ v
    best = np.linalg.solve(c, v)
    for one, overlap, correlation in zip(w, frame.overlap(w), frame.correlation(w), strict=True):
        f = u @ (k * one)
        expected = abs(f @ c @ best) / np.sqrt((f @ c @ f) * (best @ c @ best))
        assert correlation == pytest.approx(expected, rel=1e-12)
        assert overlap == pytest.approx(
            abs(u @ one @ whitened) / np.linalg.norm(whitened), rel=1e-12
        )
    assert frame.length == pytest.approx(np.linalg.norm(u.T @ v), rel=1e-12)


def test_in_the_true_spikes_the_reduced_feature_is_found_in_full():
    frame = known(MODEL.spiked, 50, stream(0), sample=False).frame
    w = MODEL.spike[None]
    assert frame.signal == pytest.approx(MODEL.spike, abs=1e-14)
    assert frame.overlap(w) == pytest.approx(1.0, abs=1e-14)
    assert frame.correlation(w) == pytest.approx(1.0, abs=1e-14)
    assert frame.length == pytest.approx(1.0)
    expected = GOLDEN["theorem2"]["values"]["whitened_dir_dot_v"]
    assert frame.coordinates(w)[0] @ MODEL.spiked.alpha == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("kind", ["known", "principal", "ambient", "rotated"])
@pytest.mark.parametrize("sample", [True, False])
def test_the_signal_is_the_direction_along_which_samples_carry_h(kind, sample):
    """Of many samples: that of the largest excess kurtosis, found by its tensor."""
    y = made(kind, count=200_000, sample=sample)
    e = y.frame.signal
    third = np.mean(((y.y @ e) ** 3)[:, None] * y.y, axis=0) - 3 * e
    found = -third / np.linalg.norm(third)
    assert abs(found @ e) > 0.99


def test_the_population_whitens_any_directions():
    u = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 4)))[0]
    k = of_population(MODEL.spiked, u[:3])
    assert k @ u.T @ MODEL.covariance() @ u @ k == pytest.approx(np.eye(4), abs=1e-12)
