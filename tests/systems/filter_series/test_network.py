"""The recipe that trains the small network: the same bits again, and filters that studies read."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.inputs.filters import load_filters

RECIPE = Path(__file__).parents[3] / "data/filters/train.py"
TINY = {"steps": 4, "snapshots": 3, "filters": 4, "width": 5, "crop": 16, "batch": 8}
RNG = np.random.default_rng(0)
PICTURES = [RNG.random((20, 24)), RNG.random((30, 17))]


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    pytest.importorskip("torch", reason="training needs PyTorch: hdica[networks]")
    spec = importlib.util.spec_from_file_location("train_filters", RECIPE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_snapshots_are_spaced_evenly_in_the_logarithm(recipe: Any) -> None:
    tiny = recipe.Training(**TINY)
    long = replace(tiny, steps=1000, snapshots=4)
    assert recipe.snapshot_steps(long) == [0, 1, 10, 100, 1000]
    assert recipe.snapshot_steps(tiny) == [0, 1, 2, 4]


def test_crops_are_standardised_and_labelled_by_their_image(recipe: Any) -> None:
    tiny = recipe.Training(**TINY)
    crops, labels = recipe.crops_of(PICTURES, tiny, np.random.default_rng(1))
    assert crops.shape == (8, 1, 16, 16)
    assert crops.mean(axis=(1, 2, 3)) == pytest.approx(0, abs=1e-5)
    assert crops.std(axis=(1, 2, 3)) == pytest.approx(1, abs=1e-5)
    assert set(labels.tolist()) == {0, 1}
    flat, _ = recipe.crops_of([np.full((20, 20), 0.3)], tiny, np.random.default_rng(1))
    assert np.abs(flat).max() < 1e-6


def test_a_training_has_the_same_bits_again(recipe: Any) -> None:
    tiny = recipe.Training(**TINY)
    one, other = (dict(recipe.train(PICTURES, tiny)) for _ in range(2))
    assert list(one) == [0, 1, 2, 4]
    assert all(one[step].tobytes() == other[step].tobytes() for step in one)
    assert one[0].shape == (4, 1, 5, 5)
    assert len({filters.tobytes() for filters in one.values()}) == 4
    again = dict(recipe.train(PICTURES, replace(tiny, seed=1)))
    assert again[4].tobytes() != one[4].tobytes()
    colours = [RNG.random((20, 20, 3)) for _ in range(2)]
    assert dict(recipe.train(colours, tiny))[0].shape == (4, 3, 5, 5)


def test_trainings_are_written_where_studies_find_them(
    recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("skimage", reason="its photographs: hdica[images]")
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    options = [
        "--seeds",
        "0",
        "1",
        "--steps",
        "3",
        "--snapshots",
        "2",
        "--filters",
        "3",
        "--width",
        "5",
        "--batch",
        "4",
    ]
    monkeypatch.setattr(sys, "argv", ["train.py", str(tmp_path / "mine"), *options])
    recipe.main()
    assert load_filters(tmp_path / "mine", training=1).steps.tolist() == [0, 1, 3]
    images = {"bundled": ["china", "flower"]}
    system = hdica.FilterSeries(filters="mine", training=1, images=images, patches=100)
    assert np.all(np.isfinite(hdica.simulate(system, times=[0, 3], seeds=1)["kurtosis"]))


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_the_subspace_is_learnt_and_does_not_come_of_descent_alone(
    recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("skimage", reason="its photographs: hdica[images]")
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    ends = {}
    for labels in ("image", "random"):
        options = f"--seeds 0 --steps 150 --labels {labels}"
        recipe.main([str(tmp_path / labels), *options.split()])
        system = hdica.FilterSeries(filters=labels, patches=2000)
        found = hdica.simulate(system, times=[0, 150], seeds=1, timeout=None)
        ends[labels] = found["excess_overlap"].values[0]
    assert np.all(np.abs([ends["image"][0], *ends["random"]]) < 0.05)
    assert ends["image"][1] > 0.1
