"""The subspace model: its samples are those of (3), and what is derived of it is right."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from tests.systems.subspace_ica.golden import GOLDEN

MODEL = hdica.SubspaceModel(dimension=7, rank=3, beta=[4, 2, 1], alpha=[0.6, -0.64, 0.48])


def test_the_reduced_model_is_that_of_theorem_2():
    found = GOLDEN["theorem2"]
    given = found["params"]
    model = hdica.SubspaceModel(dimension=50, rank=3, beta=given["beta"], alpha=given["alpha"])
    assert model.a == pytest.approx(found["values"]["a"], abs=1e-10)
    assert model.spike == pytest.approx(found["values"]["vtilde"], abs=1e-10)
    assert model.gamma == pytest.approx(sum(a * a for a in found["values"]["a"]), abs=1e-12)


def test_gamma_is_that_of_the_covariance():
    v = np.zeros(7)
    v[:3] = [0.6, -0.64, 0.48]
    v /= np.linalg.norm(v)
    assert MODEL.gamma == pytest.approx(v @ np.linalg.solve(MODEL.covariance(), v), rel=1e-14)


def test_samples_have_mean_zero_and_the_covariance():
    x = MODEL.sample(40_000, seed=2)
    error = np.sqrt((np.outer(*2 * [np.diag(MODEL.covariance())]) + MODEL.covariance() ** 2) / 4e4)
    assert np.all(np.abs(x.mean(axis=0)) < 5 * np.sqrt(np.diag(MODEL.covariance()) / 4e4))
    assert np.all(np.abs(x.T @ x / len(x) - MODEL.covariance()) < 5 * error)


def test_along_v_there_is_no_noise_but_that_of_the_spikes():
    """Their strengths almost 0, x.v is h, and across it there is unit noise."""
    model = MODEL.model_copy(update={"beta": 1e-14})
    x, alpha = model.sample(5000, seed=1), model.spike
    assert np.abs(x[:, :3] @ alpha) == pytest.approx(1.0, abs=1e-6)
    across = np.linalg.svd(alpha[None])[2][1:] @ x[:, :3].T
    assert np.cov(across) == pytest.approx(np.eye(2), abs=0.1)


def test_excess_kurtosis_is_along_v_alone():
    x = MODEL.sample(200_000, seed=4)[:, :3]
    y = x / np.sqrt(np.diag(MODEL.covariance())[:3])
    across = np.linalg.svd(MODEL.spike[None])[2][1]
    for w, kurtosis in ((MODEL.spike, -2 * MODEL.gamma**2), (across, 0.0)):
        fourth = (y @ w) ** 4
        assert fourth.mean() - 3 == pytest.approx(kurtosis, abs=5 * fourth.std() / len(x) ** 0.5)


@pytest.mark.parametrize("dimension", [3, 7, 900])
def test_samples_do_not_depend_on_the_blocks(dimension):
    model = MODEL.model_copy(update={"dimension": dimension, "latent": "laplace"})
    whole = model.sample(5000, seed=3)
    for rows in (1, 333, 4096, 10**6) if dimension < 900 else (777,):
        blocks = list(model.blocks(5000, 3, rows))
        assert max(map(len, blocks)) == min(rows, 5000)
        assert np.concatenate(blocks).tobytes() == whole.tobytes()
    assert model.sample(10, seed=3).tobytes() == whole[:10].tobytes()
    assert not np.array_equal(model.sample(10, seed=4), whole[:10])


def test_a_system_has_the_samples_of_its_model():
    shared = MODEL.model_dump()
    system = hdica.SubspaceICA(**shared, samples=100, contrast="logcosh")
    assert system.sample(4, seed=1).tobytes() == MODEL.sample(4, seed=1).tobytes()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n": 0}, "n = 0 is not allowed"),
        ({"n": 2.5}, "n = 2.5 is not allowed"),
        ({"n": 5, "seed": -1}, "seed = -1 is not allowed"),
        ({"n": 10**13}, "GB of memory"),
    ],
)
def test_samples_that_are_not_allowed_are_refused(given, sentence):
    with pytest.raises(HdicaError, match=sentence):
        MODEL.sample(**given)


def test_a_covariance_larger_than_the_memory_is_refused():
    with pytest.raises(HdicaError, match=r"dimension = 100000000 is not allowed .*memory"):
        MODEL.model_copy(update={"dimension": 10**8}).covariance()


def test_alpha_is_scaled_to_length_one_without_overflow():
    model = hdica.SubspaceModel(dimension=4, rank=2, beta=1, alpha=[3e200, -4e200])
    assert model.spike == pytest.approx([0.6, -0.8], rel=1e-15)
    equal = hdica.SubspaceModel(dimension=4, rank=4, beta=3)
    assert equal.a == pytest.approx(4 * [0.25], rel=1e-15)
    assert equal.gamma == pytest.approx(0.25)
    assert math.isclose(np.linalg.norm(equal.spike), 1)
