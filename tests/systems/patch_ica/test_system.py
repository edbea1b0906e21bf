"""Parameters of ICA of patches: normal forms, how many samples, refusals."""

import re

import numpy as np
import pytest
from PIL import Image

import hdica
from hdica.errors import HdicaError
from hdica.systems.patch_ica.system import count, dimension, rank

FEW = {"images": {"bundled": ["china"]}}


def system(**given):
    return hdica.PatchICA(**{"width": 6, **FEW, **given})


def test_numbers_of_a_patch_and_of_samples():
    assert (dimension(system()), rank(system()), count(system())) == (36, 36, 72)
    tinted = system(colour="rgb", space="principal", samples_per_dimension=2.5)
    assert (dimension(tinted), rank(tinted), count(tinted)) == (108, 32, 270)
    assert tinted.space == {"principal": 32}
    assert rank(system(d=7)) == 7
    assert count(system(d=7, samples=9)) == 9
    assert count(system(samples_per_dimension=1.01)) == 37
    assert system(colour="rgb", kept=5).dims() == {
        "component": tuple(range(5)), "row": tuple(range(6)), "column": tuple(range(6)),
        "channel": (0, 1, 2),
    }  # fmt: skip


def test_it_survives_its_own_json():
    one = system(space="principal", contrast="log(cosh(c*s))", constants={"c": 2.0})
    assert hdica.PatchICA.model_validate_json(one.model_dump_json()) == one
    assert len(one.images["sha256"]) == 64


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"width": 1}, "width = 1"),
        ({"width": True}, "width"),
        ({"colour": "blue"}, "colour = 'blue'"),
        ({"contrast": "log(s)"}, "contrast = 'log(s)' is not allowed"),
        ({"space": "small"}, "space = 'small' is not allowed (allowed: 'ambient', 'principal'"),
        ({"space": {"principal": 2.5}}, "space = {'principal': 2.5} is not allowed"),
        ({"space": {"principal": 37}}, "at most the 36 dimensions of a patch"),
        ({"width": 5, "space": "principal"}, "at most the 25 dimensions of a patch"),
        ({"samples": 36}, "samples = 36 with d = 36 is not allowed (d < n"),
        ({"samples_per_dimension": 1.0}, "samples n = 36 with d = 36 is not allowed"),
        ({"samples": 90, "samples_per_dimension": 2.0}, "at most one of them"),
        ({"d": 3, "space": "ambient"}, "d is short for space"),
        ({"restarts": 0}, "restarts = 0"),
        ({"tolerance": 1.0}, "tolerance = 1"),
        ({"images": "nowhere"}, "nowhere"),
        ({"images": {"bundled": ["cat"]}}, "bundled = ['cat']"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(given, sentence):
    with pytest.raises(HdicaError, match=re.escape(sentence)) as caught:
        system(**given)
    assert "\n" not in str(caught.value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data with one picture of noise."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50), dtype=np.uint8)
    (tmp_path / "images" / "mine").mkdir(parents=True)
    Image.fromarray(pixels).save(tmp_path / "images" / "mine" / "noise.png")
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    return tmp_path


def test_other_pixels_are_other_points(folder):
    one = system(images="images/mine")
    first = hdica.simulate(one, times=[0, 3], seeds=2)
    pixels = np.random.default_rng(1).integers(0, 256, (40, 50), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "images" / "mine" / "noise.png")
    other = system(images="images/mine")
    assert other != one
    second = hdica.simulate(other, times=[0, 3], seeds=2)
    assert not np.array_equal(first["train_loss"], second["train_loss"])
    with pytest.raises(HdicaError, match="it is other data"):
        system(images=one.images)


def test_patches_that_do_not_vary_or_fit_are_refused_in_one_sentence(folder):
    Image.fromarray(np.full((9, 30), 7, np.uint8)).save(folder / "images" / "mine" / "noise.png")
    with pytest.raises(HdicaError, match="vary in [01] directions"):
        hdica.simulate(system(images="images/mine"), times=[0, 1], seeds=1)
    with pytest.raises(HdicaError, match="width = 12 is not allowed"):
        hdica.simulate(system(images="images/mine", width=12), times=[0, 1], seeds=1)
