from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.run.runner import run
from hdica.status import PENDING
from hdica.store import publish as dense
from hdica.store import query
from hdica.store.files import DamageError
from hdica.store.publish import is_current, publish
from hdica.store.published import bound_digests, file_digest, version_of
from hdica.store.results import open_results
from hdica.store.sealed import read_manifest
from hdica.store.working import place
from hdica.study.study import study_from
from tests.sweep import toy
from tests.sweep.conftest import values


@pytest.fixture
def tree(out: Path) -> xr.DataTree:
    study = study_from(toy.study())
    run(study, out, progress=False)
    publish(study, out)
    return open_results(out)


def test_dimensions_are_those_of_the_study_in_its_order(tree: xr.DataTree) -> None:
    assert tree["walk"].Q.dims == ("tau", "Q0", "n", "seed", "time")
    assert tree["line"].Q.dims == ("tau", "Q0", "time")
    assert tree["steady"]["root"].dims == ("fixed_point",)
    assert tree["steady"].status.dims == ()
    assert tree["walk"].status.dims == ("tau", "Q0", "n", "seed")


def test_coordinates_are_sorted_and_found_by_the_decimals_one_types(tree: xr.DataTree) -> None:
    walk = tree["walk"]
    assert walk.tau.values.tolist() == [0.1, 0.2, 0.3]
    assert walk.n.dtype == np.int64
    assert walk.seed.values.tolist() == [*range(6)]
    found = tree["line"].Q.sel(tau=0.3, Q0=0.25, time=2.0)
    assert float(found) == 0.25 + 0.3 * 2


def test_every_number_is_where_it_belongs(tree: xr.DataTree) -> None:
    system = toy.Toy(tau=0.2, source="laplace", start={"overlap": 0.25})
    times = np.array([0, 0.5, 2])
    expected = toy.walk(system, times, 30, 4, NOTHING).values["Q"]
    found = tree["walk"].Q.sel(tau=0.2, Q0=0.25, n=30, seed=4).values
    assert found.tobytes() == expected.tobytes()


def test_the_step_behind_a_time_is_its_exact_floor(out: Path) -> None:
    times = [0, 0.1, 0.29, 0.3, 1.1, 2.999]
    study = study_from(toy.study(times=times, methods={"walk": {"n": [10, 100], "seeds": 1}}))
    run(study, out, progress=False)
    publish(study, out)
    walk = open_results(out)["walk"]
    assert walk.step.values.tolist() == [[0, 1, 2, 3, 11, 29], [0, 10, 29, 30, 110, 299]]
    assert "step" in walk.coords


def test_variables_and_groups_say_what_they_are(tree: xr.DataTree) -> None:
    walk = tree["walk"]
    assert walk.Q.attrs == {"long_name": "overlap", "units": "1"}
    assert walk.status.attrs["flag_meanings"] == "pending done diverged failed"
    assert walk.status.attrs["flag_values"] == [0, 1, 2, 3]
    assert walk.status.dtype == np.uint8
    assert (walk.cpu_seconds >= 0).all()
    assert walk.time.attrs["units"] == "samples per dimension (k/n)"
    assert walk.attrs["equations"] == "nobody 1900 (1)"
    assert walk.attrs["kernel"] == "7"
    assert walk.attrs["stochastic"] == 1
    assert "reason" not in walk
    study = study_from(toy.study())
    assert tree.attrs["study_hash"] == study.content_hash()
    assert study_from(json.loads(tree.attrs["study_yaml"])) == study
    assert tree.attrs["Conventions"] == "CF-1.11"
    assert json.loads(tree.attrs["package_versions"])["numpy"] == np.__version__


def test_words_on_an_axis(out: Path) -> None:
    grid = {"source": ["uniform", "laplace"], "tau": [0.1]}
    study = study_from(toy.study(grid=grid, parameters={}, methods={"line": {}}))
    run(study, out, progress=False)
    publish(study, out)
    line = open_results(out)["line"]
    assert line.source.values.tolist() == ["uniform", "laplace"]
    assert line.Q.sel(source="laplace", tau=0.1).shape == (3,)


@pytest.mark.deep
def test_it_opens_without_this_package_and_without_a_warning(tree: xr.DataTree, out: Path) -> None:
    code = (
        "import sys, xarray as xr; tree = xr.open_datatree(sys.argv[1], engine='zarr');"
        "one = xr.open_zarr(sys.argv[1], group='walk', chunks=None);"
        "print(float(tree['walk'].Q.sel(tau=0.3).sum()) == float(one.Q.sel(tau=0.3).sum()));"
        "assert 'hdica' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(out)], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == "True\n"


def test_no_step_warns(out: Path) -> None:
    study = study_from(toy.study(grid={"tau": [0.1, 0.13], "source": ["laplace"]}, parameters={}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(study, out, progress=False)
        publish(study, out)
        loaded = [node.to_dataset().load() for node in open_results(out).children.values()]
    assert all((data["status"] != 0).all() for data in loaded)


def test_the_manifest_holds_counts_and_the_store_every_digest(tree: xr.DataTree, out: Path) -> None:
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest["counts"]["walk"] == {"pending": 0, "done": 72, "diverged": 0, "failed": 0}
    digests = bound_digests(out)
    assert manifest["version"] == version_of(digests) == file_digest(out / "zarr.json")[:16]
    files = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert set(digests) == files
    assert all(file_digest(out / name) == digest for name, digest in digests.items())


def test_points_that_are_pending_are_nan_with_status_zero(out: Path) -> None:
    study = study_from(toy.study())
    run(study, out, shard=(0, 2), progress=False, block=4)
    manifest = publish(study, out)
    walk = open_results(out)["walk"].to_dataset()
    pending = walk.status == PENDING
    assert int(pending.sum()) == manifest["counts"]["walk"]["pending"] > 0
    assert walk.Q.where(pending, drop=True).isnull().all()
    assert walk.Q.where(~pending).count() == 3 * int((~pending).sum())
    assert not is_current(study, out)
    run(study, out, progress=False)
    publish(study, out)
    assert is_current(study, out)


def test_publishing_needs_no_computation_at_all(out: Path) -> None:
    study = study_from(toy.study())
    assert publish(study, out)["counts"]["steady"]["pending"] == 1
    assert open_results(out)["walk"].Q.isnull().all()


def test_a_block_that_is_removed_while_it_is_published_is_never_nan(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_from(toy.study())
    run(study, out, progress=False)
    (file,) = place(study, out)[0].path.iterdir()
    real = dense.write_variable

    def gone(*arguments: Any) -> None:
        file.unlink(missing_ok=True)
        real(*arguments)

    monkeypatch.setattr("hdica.store.publish.write_variable", gone)
    with pytest.raises(DamageError) as caught:
        publish(study, out)
    assert f"{file} is missing" in str(caught.value)
    assert not out.exists()


def test_a_missing_published_chunk_is_never_nan(tree: xr.DataTree, out: Path) -> None:
    (out / "line" / "Q" / "c" / "0" / "0" / "0").unlink()
    with pytest.raises(DamageError, match=r"line/Q/c/0/0/0 is missing"):
        open_results(out)


@pytest.mark.deep
def test_a_publication_cut_short_leaves_the_old_store(
    tree: xr.DataTree, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = values(out)
    larger = study_from(toy.study(grid={"tau": [0.1, 0.2, 0.3, 0.4], "Q0": [0.5]}))
    run(larger, out, progress=False)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hdica.store.publish._consolidate", cut)
        with pytest.raises(KeyboardInterrupt):
            publish(larger, out)
    assert values(out) == before
    publish(larger, out)
    assert not list(out.parent.glob(".*.partial"))
    assert open_results(out)["walk"].sizes["tau"] == 4


@pytest.mark.deep
@pytest.mark.parametrize("elements", [1, 3, 7, 20, 100, 10_000])
def test_chunks_of_any_size_hold_the_same_numbers(
    tree: xr.DataTree, out: Path, monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    before = values(out)
    monkeypatch.setattr(dense, "CHUNK_ELEMENTS", elements)
    monkeypatch.setattr(dense, "BAND", 8 * elements)
    monkeypatch.setattr(dense, "SPAN", 64)
    publish(study_from(toy.study()), out)
    assert values(out) == before


@pytest.mark.parametrize(
    ("swept", "whole", "chunks"),
    [
        ((), (12,), (12,)),
        ((40, 40, 1), (16, 2), (40, 40, 1, 16, 2)),
        ((1000, 1000), (), (500, 500)),
        ((1000, 1000, 1), (1, 101), (42, 32, 1, 1, 101)),
        ((3, 1000, 1000), (41,), (1, 51, 63, 41)),
        ((1000,), (1000, 101), (2, 1000, 101)),
        ((5, 7), (2**18,), (1, 1, 2**18)),
        ((5, 7), (10**6,), (1, 1, 2**18)),
        ((4,), (3, 200, 1000), (1, 1, 200, 1000)),
        ((4,), (3, 400, 1000), (1, 1, 262, 1000)),
    ],
)
def test_swept_parameters_share_the_room_of_a_chunk(
    swept: tuple[int, ...], whole: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    assert dense.chunk_shape(swept, whole) == chunks
    grid = np.arange(int(np.prod(swept))).reshape(swept)
    seen, end = np.zeros(swept, dtype=int), 0
    for band in dense.bands(swept, chunks[: len(swept)]):
        assert band.start == end
        end = band.stop
        assert 8 * (band.stop - band.start) * np.prod(chunks[len(swept) :]) <= dense.BAND
        seen[band.place or ...] += 1
        assert np.array_equal(grid[band.place or ...].ravel(), np.arange(band.start, band.stop))
        for side, size, chunk in zip(band.place, swept, chunks, strict=False):
            assert side.start % chunk == 0
            assert side.stop == min(side.start + chunk, size)
    assert (seen == 1).all()
    assert end == grid.size


def test_a_slice_along_any_parameter_reads_few_chunks() -> None:
    shape, whole = (1000, 1000, 1), (1, 101)
    chunks = dense.chunk_shape(shape, whole)
    counts = [-(-size // chunk) for size, chunk in zip(shape, chunks, strict=False)]
    for axis in (0, 1):
        assert np.prod(counts) / counts[axis] < 0.05 * np.prod(counts)


@pytest.mark.parametrize(
    ("places", "indexer"),
    [([3], slice(3, 4)), ([2, 3, 4, 3], slice(2, 5)), ([4, 3], [4, 3]), ([1, 3], [1, 3])],
)
def test_neighbours_are_read_as_a_slice(places: list[int], indexer: slice | list[int]) -> None:
    assert query._indexer(places) == indexer


def test_what_is_no_store_is_refused(out: Path, tmp_path: Path) -> None:
    with pytest.raises(HdicaError, match="does not exist"):
        open_results(out)
    with pytest.raises(HdicaError, match="is not a published store"):
        open_results(tmp_path)
    study = study_from(toy.study())
    run(study, out, progress=False)
    with pytest.raises(HdicaError, match="is not published yet"):
        open_results(out)
    with pytest.raises(HdicaError, match=r"must end in \.zarr"):
        run(study, tmp_path / "toy")


def test_each_step_of_a_publication_is_on_the_disk_before_the_next(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without order a power loss could keep the manifest of a store whose place is taken."""
    study, steps = study_from(toy.study()), list[str]()
    run(study, out, progress=False)
    publish(study, out)

    def noted(module: Any, name: str, step: str, first: Path | None = None) -> None:
        whole = getattr(module, name)

        def call(*arguments: Any) -> Any:
            if first is None or Path(arguments[0]) == first:
                steps.append(step)
            return whole(*arguments)

        monkeypatch.setattr(module, name, call)

    manifest = out.with_suffix(".manifest.json")
    noted(dense.files, "discard", "no manifest", manifest)
    noted(dense.files, "sync_folder", "names", out.parent)
    noted(dense, "_exchanged", "exchange")
    noted(dense.sealed, "write_sealed", "manifest", manifest)
    publish(study, out)
    first = steps.index("no manifest")
    assert steps[first:] == ["no manifest", "names", "exchange", "names", "manifest"]
