"""The small network: the same bits again, and nothing learned where there is nothing to learn."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.inputs.network import Training, crops_of, snapshot_steps, train

TINY = Training(steps=4, snapshots=3, filters=4, width=5, crop=16, batch=8)
RNG = np.random.default_rng(0)
PICTURES = [RNG.random((20, 24)), RNG.random((30, 17))]


def test_snapshots_are_spaced_evenly_in_the_logarithm() -> None:
    assert snapshot_steps(replace(TINY, steps=1000, snapshots=4)).tolist() == [0, 1, 10, 100, 1000]
    assert snapshot_steps(TINY).tolist() == [0, 1, 2, 4]


def test_crops_are_standardised_and_told_which_image_they_are_of() -> None:
    crops, labels = crops_of(PICTURES, TINY, np.random.default_rng(1))
    assert crops.shape == (8, 1, 16, 16)
    assert crops.mean(axis=(1, 2, 3)) == pytest.approx(0, abs=1e-5)
    assert crops.std(axis=(1, 2, 3)) == pytest.approx(1, abs=1e-5)
    assert set(labels.tolist()) == {0, 1}
    flat, _ = crops_of([np.full((20, 20), 0.3)], TINY, np.random.default_rng(1))
    assert np.abs(flat).max() < 1e-6


def test_without_pytorch_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HdicaError, match="needs PyTorch, which is not installed"):
        train(PICTURES, TINY)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="training needs PyTorch: hdica[networks]")


def test_a_training_has_the_same_bits_again_and_leaves_pytorch_as_it_was(torch: Any) -> None:
    torch.manual_seed(7)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    one, other = (train(PICTURES, TINY) for _ in range(2))
    assert one.filters.tobytes() == other.filters.tobytes()
    assert one.filters.shape == (4, 4, 1, 5, 5)
    assert one.steps.tolist() == [0, 1, 2, 4]
    assert len({filters.tobytes() for filters in one.filters}) == 4
    assert train(PICTURES, replace(TINY, seed=1)).filters.tobytes() != one.filters.tobytes()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_colours_have_filters_of_three_channels(torch: Any) -> None:
    colours = [RNG.random((20, 20, 3)) for _ in range(2)]
    assert train(colours, TINY).channels == 3


def test_a_crop_must_fit(torch: Any) -> None:
    with pytest.raises(HdicaError, match="crop = 16 is not allowed"):
        train([np.zeros((15, 40))], TINY)


def test_trainings_are_written_where_studies_find_them(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    images = {"bundled": ["china", "flower"]}
    fields: dict[str, Any] = {"steps": 3, "snapshots": 2, "filters": 3, "width": 5, "batch": 4}
    hdica.train_filters(tmp_path / "mine", seeds=2, images=images, **fields)
    written = hdica.FilterSeries(filters="mine", training=1, images=images, patches=100)
    here = hdica.FilterSeries(filters={"trained": fields | {"seed": 1}}, images=images, patches=100)
    assert written.steps == here.steps == [0, 1, 3]
    both = [hdica.simulate(one, times=[0, 1, 3], seeds=1) for one in (written, here)]
    assert both[0]["kurtosis"].values.tobytes() == both[1]["kurtosis"].values.tobytes()


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_the_subspace_is_found_by_learning_and_not_by_descent_alone(torch: Any) -> None:
    pytest.importorskip("skimage", reason="its photographs: hdica[images]")
    ends = {}
    for labels in ("image", "random"):
        fields = {"steps": 150, "labels": labels}
        system = hdica.FilterSeries(filters={"trained": fields}, patches=2000)
        found = hdica.simulate(system, times=[0, 150], seeds=1, timeout=None)
        ends[labels] = found["excess_overlap"].values[0]
    assert np.all(np.abs([ends["image"][0], *ends["random"]]) < 0.05)
    assert ends["image"][1] > 0.1
