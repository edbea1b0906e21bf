"""Filters over training beside the same computed plainly, beside chance, and in the subspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.analysis.trajectories.runs import half_way
from hdica.errors import HdicaError
from hdica.inputs.filters import Series
from hdica.inputs.images import load_images
from hdica.systems.filter_series.measures import principal
from hdica.systems.filter_series.record import patches
from hdica.systems.filter_series.system import rank
from hdica.systems.system import methods_of
from tests.systems.filter_series.series import save_series

IMAGES = {"bundled": ["china", "flower"]}
FEW: dict[str, Any] = {"images": IMAGES, "patches": 400}
STEPS = np.array([2, 5, 9])
SHIPPED = Path(__file__).parents[3] / "data"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data with a series of random filters."""
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    filters = np.random.default_rng(3).standard_normal((3, 6, 1, 5, 5)).astype(np.float32)
    save_series(Series(STEPS, filters), tmp_path / "mine")
    return tmp_path


def computed(system: Any, times: list[float], method: str = "auto", seeds: Any = 1) -> Any:
    return hdica.simulate(system, times=times, seeds=seeds, method=method, timeout=None)


def test_every_number_is_that_of_a_plain_computation(data: Path) -> None:
    system = hdica.FilterSeries(filters="mine", **FEW)
    found = computed(system, [2, 5, 9]).isel(seed=0)
    x = patches(system, 5, 0)
    x = x - x.mean(axis=0)
    basis = np.linalg.svd(x, full_matrices=False)[2][:10]
    w = np.moveaxis(hdica.load_filters(data / "mine").filters, 2, -1).reshape(3, 6, 25)
    w = w.astype(float)
    s = np.einsum("pd,tkd->ptk", x, w)
    without = np.einsum("pd,tkd->ptk", x - x.mean(axis=1, keepdims=True), w)
    expected = {
        "excess_overlap": hdica.excess_overlap(w, basis).mean(axis=1),
        "excess_overlap_sd": hdica.excess_overlap(w, basis).std(axis=1),
        "printed_overlap": hdica.excess_overlap(w, basis, squared=False).mean(axis=1),
        "normalised_overlap": hdica.excess_overlap(w, basis, normalised=True).mean(axis=1),
        "kurtosis": hdica.excess_kurtosis(s).mean(axis=1),
        "kurtosis_sd": hdica.excess_kurtosis(s).std(axis=1),
        "kurtosis_dcremoved": hdica.excess_kurtosis(without).mean(axis=1),
    }
    for name, values in expected.items():
        assert found[name].values == pytest.approx(values, rel=1e-9, abs=1e-9), name


def test_between_snapshots_everything_is_as_at_the_earlier_one(data: Path) -> None:
    system = hdica.FilterSeries(filters="mine", **FEW)
    found = computed(system, [0, 2, 4.5, 5, 8, 9, 1e6])["kurtosis"].values[0]
    assert np.isnan(found[0])
    assert found[1] == found[2]
    assert found[3] == found[4] != found[2]
    assert found[5] == found[6]
    assert system.steps == STEPS.tolist()


def test_filters_in_the_principal_subspace_have_all_that_there_is(data: Path) -> None:
    base = hdica.FilterSeries(filters="mine", k=7, **FEW)
    top = principal(patches(base, 5, 0)).components[:7].reshape(7, 1, 5, 5)
    save_series(Series(np.array([0]), top[None].astype(np.float32)), data / "top")
    found = computed(hdica.FilterSeries(filters="top", k=7, **FEW), [0]).isel(seed=0, time=0)
    assert float(found["excess_overlap"]) == pytest.approx(1 - 7 / 25, abs=1e-6)
    assert float(found["normalised_overlap"]) == pytest.approx(1, abs=1e-6)
    assert float(found["printed_overlap"]) == pytest.approx(1 - 7 / 25, abs=1e-3)


def test_untrained_filters_are_what_chance_gives() -> None:
    many, d = 2000, 36
    system = hdica.FilterSeries(filters={"random": {"filters": many, "width": 6}}, k=0.25, **FEW)
    found = computed(system, [0]).isel(seed=0, time=0)
    chance = hdica.limit(system, times=[0]).isel(time=0)
    for name in ("excess_overlap", "printed_overlap"):
        error = float(chance[f"{name}_sd"]) / np.sqrt(many)
        assert abs(float(found[name] - chance[name])) < 4 * error
    sd = float(chance["excess_overlap_sd"])
    assert sd == pytest.approx(hdica.random_excess_overlap(d, 9)[1])
    assert float(found["excess_overlap_sd"]) == pytest.approx(sd, rel=0.1)


def test_over_ranks_it_is_the_same_as_at_one_rank(data: Path) -> None:
    method = methods_of("FilterSeries")["rank_spectrum"]
    system = hdica.FilterSeries(filters="mine", k=0.4, **FEW)
    from hdica.ingredients.save import NOTHING

    times = np.array([9.0])
    found = method.run(system, times, None, 4, NOTHING).values
    one = computed(system, [9], seeds=[4]).isel(seed=0, time=0)
    at = method.outputs.coords(times)["fraction"].tolist().index(0.4)
    for name in ("excess_overlap", "excess_overlap_sd", "printed_overlap"):
        assert found[name][at] == pytest.approx(float(one[name]), rel=1e-12)
    assert np.all(np.diff(found["explained"]) >= 0)
    assert found["explained"][-1] == pytest.approx(1)
    assert found["excess_overlap"][-1] == pytest.approx(0, abs=1e-12)


def test_patches_are_the_same_for_every_training_and_others_for_another_seed(data: Path) -> None:
    one = hdica.FilterSeries(filters="mine", k=3, **FEW)
    other = hdica.FilterSeries(filters={"random": {"width": 5}}, **FEW)
    assert np.array_equal(patches(one, 5, 1), patches(other, 5, 1))
    assert not np.array_equal(patches(one, 5, 1), patches(one, 5, 2))


def test_half_way_is_the_first_snapshot_there_whatever_the_direction() -> None:
    steps = np.array([0.0, 1, 10, 100])
    assert half_way(steps, np.array([0.0, 0.4, 0.6, 1])) == 10
    assert half_way(steps, np.array([1.0, 0.4, 0.6, 0])) == 1
    assert np.isnan(half_way(steps, np.array([0.0, np.nan, 0.6, np.nan])))


def test_another_content_is_another_point(data: Path) -> None:
    before = hdica.FilterSeries(filters="mine", **FEW).model_dump_json()
    save_series(Series(STEPS[:1], np.ones((1, 6, 1, 5, 5), np.float32)), data / "mine")
    assert hdica.FilterSeries(filters="mine", **FEW).model_dump_json() != before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"filters": "bundled"}, "filters = 'bundled'"),
        ({"filters": "nowhere"}, "there is no"),
        ({"filters": {"random": {"wide": 3}}}, "random.wide is not known"),
        ({"filters": {"random": {"width": 0}}}, "random.width = 0"),
        ({"filters": {"random": 3}}, "random = 3"),
        ({"filters": {"trained": {}}}, "a path of data"),
        ({"filters": {"random": {}}, "layer": "conv"}, "layer = 'conv'"),
        ({"filters": {"random": {}}, "training": 1}, "training = 1"),
        ({"filters": "mine", "k": 0}, "k = 0"),
        ({"filters": "mine", "k": 2.5}, "k = 2.5"),
        ({"filters": "mine", "k": True}, "k = True"),
    ],
)
def test_what_is_not_allowed_is_refused_in_a_sentence(
    data: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(HdicaError, match=words) as caught:
        hdica.FilterSeries(**{**FEW, **given})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"filters": "mine", "k": 25}, "k = 25 is not allowed for filters of 25 entries"),
        ({"filters": "mine", "colour": "rgb"}, "filters of 1 channels"),
        ({"filters": "mine", "training": 3}, "training = 3"),
    ],
)
def test_what_the_filters_do_not_allow_is_refused(
    data: Path, given: dict[str, Any], words: str
) -> None:
    system = hdica.FilterSeries(**{**FEW, **given})
    for name in ("filter_history", "rank_spectrum"):
        if "k" not in given or name == "filter_history":
            assert words in methods_of("FilterSeries")[name].scope.refuses(system)


def test_a_filter_without_direction_is_refused_and_makes_no_mean_nan(data: Path) -> None:
    filters = np.ones((2, 3, 1, 4, 4), dtype=np.float32)
    filters[1, 2] = 0
    save_series(Series(np.array([0, 7]), filters), data / "dead")
    system = hdica.FilterSeries(filters="dead", **FEW)
    with pytest.raises(HdicaError, match="filter 2 at step 7 has no direction"):
        computed(system, [0, 7])


def test_a_share_of_the_dimension_is_rounded() -> None:
    for d, expected in ((121, 48), (147, 59), (363, 145)):
        assert rank(hdica.FilterSeries(filters={"random": {}}, **FEW), d) == expected


@pytest.mark.parametrize("training", range(3))
def test_the_shipped_network_finds_the_subspace_before_non_gaussian_directions(
    training: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("skimage", reason="its photographs: hdica[images]")
    monkeypatch.setenv("HDICA_DATA", str(SHIPPED))
    system = hdica.FilterSeries(
        filters="filters/small_network", training=training, patches=4000, k=0.4
    )
    found = computed(system, [0, system.steps[-1]]).isel(seed=0)
    assert len(load_images("bundled")) == 11
    first, last = found["excess_overlap"].values
    sd = hdica.random_excess_overlap(121, 48)[1]
    assert abs(first) < 4 * sd / np.sqrt(32)
    assert last > 0.2
    start, end = found["kurtosis"].values
    assert end > start + 2
    every = computed(system, system.steps).isel(seed=0)
    names = ("excess_overlap", "kurtosis_dcremoved", "kurtosis")
    overlap, without, plain = (half_way(every["time"], every[name].values) for name in names)
    assert overlap < without <= plain
