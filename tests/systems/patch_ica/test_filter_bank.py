"""All filters of patches: white, in order, dual to features, nearer to waves than chance."""

import numpy as np
import pytest

import hdica
from hdica.ingredients.save import NOTHING, Save
from hdica.inputs.images import random_patches
from hdica.systems.patch_ica.record import FILTER_BANK, patches
from hdica.systems.patch_ica.system import count

EXTRA = Save(extra=("filters", "features", "principal"))
SEED = 2


def system(**given):
    few = {"images": {"bundled": ["china", "flower"]}, "width": 5, "samples": 400, "kept": 4}
    return hdica.PatchICA(**{**few, "space": {"principal": 4}, **given})


def run(one, save=EXTRA):
    return FILTER_BANK.run(one, np.zeros(1), None, SEED, save).values


def covariance(one):
    source = patches(one, SEED)
    x = random_patches(source.images, one.width, count(one), source.stream("train"))
    return np.cov(x.T, ddof=0)


@pytest.fixture(scope="module")
def found():
    return run(system())


def flat(values):
    return values.reshape(len(values), -1)


def test_filters_are_uncorrelated_with_variance_one(found):
    a = flat(found["filters"])
    assert a @ covariance(system()) @ a.T == pytest.approx(np.eye(4), abs=1e-9)


def test_features_are_what_filters_find(found):
    assert flat(found["filters"]) @ flat(found["features"]).T == pytest.approx(np.eye(4), abs=1e-9)
    mixed = flat(found["filters"]) @ covariance(system())
    assert flat(found["features"]) == pytest.approx(mixed, abs=1e-9)


def test_principal_components_are_eigenvectors_with_their_shares(found):
    c = covariance(system())
    u = flat(found["principal"])
    assert u @ u.T == pytest.approx(np.eye(4), abs=1e-9)
    assert c @ u.T == pytest.approx(u.T * (found["variance"] * np.trace(c)), abs=1e-9)
    assert np.all(np.diff(found["variance"]) < 0)


@pytest.mark.deep
def test_the_least_gaussian_come_first_and_a_lack_is_nan(found):
    assert np.all(np.diff(np.abs(found["score"])) <= 0)
    padded = run(system(kept=6))
    assert np.isnan(padded["filters"][4:]).all()
    for name in ("score", "gabor_residual", "frequency", "variance"):
        assert padded[name][:4].tobytes() == found[name].tobytes()
        assert np.isnan(padded[name][4:]).all()
    fewer = run(system(kept=2), NOTHING)
    assert fewer["score"].tobytes() == found["score"][:2].tobytes()


def test_colours_are_channels():
    found = run(system(colour="rgb", width=2, kept=3))
    assert found["filters"].shape == (3, 2, 2, 3)
    assert np.ptp(found["filters"], axis=-1).max() > 0


@pytest.mark.deep
def test_filters_are_nearer_to_gabor_functions_than_random_ones_are():
    found = run(
        system(
            width=12, space={"principal": 24}, samples=6000, kept=16, iterations=100, tolerance=1e-4
        ),
        NOTHING,
    )
    ours, chance = found["gabor_residual"], found["gabor_residual_random"]
    assert np.median(ours) < 0.6
    assert np.median(chance) > np.median(ours) + 0.1
