"""Whole chunks in other places: exchanged, taken from elsewhere, put back from before, or forged.

Each of them has a checksum that is right. None may be read as data, and ``verify`` says so.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from hdica.cli import call
from hdica.sweep.files import store
from hdica.sweep.files.paths import DamageError, TornError, work_path
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.publish import publish
from hdica.sweep.outcome.repair import repair
from hdica.sweep.run.plan import place, prepare
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.harm import empty

pytestmark = pytest.mark.faults

METHODS = {"walk": {"n": [10, 30], "seeds": 6}, "steady": {}}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study of two dimensions, in blocks of 5, one point of which failed."""
    toy.register()
    out = tmp_path_factory.mktemp("exchange") / "results" / "toy.zarr"
    study = study_from(content())
    run(study, out, progress=False, block=5)
    publish(study, out)
    return out.parent


def content(**changes: object) -> dict[str, object]:
    return toy.study(methods=METHODS, **changes)


@pytest.fixture
def study(out: Path, computed: Path) -> Study:
    shutil.copytree(computed, out.parent)
    return study_from(content())


def segment(study: Study, out: Path, n: int) -> Path:
    return next(p.path for p in place(study, out) if p.segment.n == n)


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def found(study: Study, out: Path, *names: str) -> str:
    """What ``verify`` says; a run refuses too, or else to publish what it reads."""
    verdict = verify(out)
    said = "\n".join(verdict.damaged)
    assert verdict.code == 3, (verdict.damaged, verdict.incomplete)
    assert all(name in said for name in names), said
    with pytest.raises(DamageError) as caught:
        run_and_publish(study, out)
    assert not isinstance(caught.value, TornError), "what was changed is not mended unasked"
    return said


def run_and_publish(study: Study, out: Path) -> None:
    run(study, out, progress=False)
    publish(study, out)


def comes_back(study: Study, out: Path, before: dict[str, bytes]) -> None:
    """After a repair and a run, the numbers are what they were."""
    assert repair(out)
    run(study, out, progress=False)
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


@pytest.mark.deep
def test_two_chunks_of_a_segment_are_exchanged(study: Study, out: Path) -> None:
    before, walk = values(out), segment(study, out, 10)
    exchange(walk / "Q/c/0", walk / "Q/c/1")
    said = found(study, out, f"{walk}/Q/c/0/0", f"{walk}/Q/c/1/0")
    assert "it is not the chunk that its commit record names" in said
    assert call(["verify", str(out)]) == 3
    comes_back(study, out, before)


def test_chunks_of_another_dimension_take_their_place(study: Study, out: Path) -> None:
    before = values(out)
    small, large = segment(study, out, 10), segment(study, out, 30)
    for block in (0, 1, 2):
        shutil.copytree(small / f"Q/c/{block}", large / f"Q/c/{block}", dirs_exist_ok=True)
    found(study, out, *(f"{large}/Q/c/{block}/0" for block in (0, 1, 2)))
    comes_back(study, out, before)


@pytest.mark.parametrize("names", [("status",), ("status", "Q", "cpu_seconds")])
def test_blocks_are_exchanged_with_their_commit_records(
    study: Study, out: Path, names: tuple[str, ...]
) -> None:
    before, walk = values(out), segment(study, out, 10)
    for name in names:
        exchange(walk / f"{name}/c/0", walk / f"{name}/c/2")
    said = found(study, out, f"{walk}/status/c/0", f"{walk}/status/c/2")
    assert "its commit record is of another place" in said
    with pytest.raises(DamageError, match="of another place"):
        run(study, out, progress=False)
    comes_back(study, out, before)


def test_a_block_of_another_segment_comes_with_its_commit_record(study: Study, out: Path) -> None:
    before = values(out)
    small, large = segment(study, out, 10), segment(study, out, 30)
    for name in ("status", "Q", "cpu_seconds"):
        shutil.copytree(small / f"{name}/c", large / f"{name}/c", dirs_exist_ok=True)
    found(study, out, f"{large}/status/c/0")
    comes_back(study, out, before)


def test_a_chunk_is_put_back_from_before_it_was_written_anew(out: Path) -> None:
    study = study_from(content(grid={"tau": [0.13, 0.2], "Q0": [0.5]}))
    run(study, out, progress=False, block=5)
    walk = segment(study, out, 10)
    older = {name: (walk / name / "c/1").exists() for name in ("Q", "status")}
    assert all(older.values())
    kept = {file: file.read_bytes() for file in (walk / "Q/c/1/0", walk / "status/c/1")}
    # Points that failed succeed: the block is written anew.
    method = toy.make()["walk"]
    object.__setattr__(method, "run", lambda *_: toy.PointResult({"Q": np.ones(3)}))
    toy.put(method)
    run(study, out, progress=False, retry_failed=True)
    publish(study, out)
    assert verify(out).code == 0
    for file, raw in kept.items():
        whole = file.read_bytes()
        file.write_bytes(raw)
        found(study, out, str(file) if "Q" in str(file) else f"{walk}/Q/c/1/0")
        file.write_bytes(whole)
    assert verify(out).code == 0


def as_if_nothing_had_been(study: Study, out: Path) -> None:
    """Computed to its end and published, the store is that of a first run."""
    fresh = out.with_name("fresh.zarr")
    for each in (out, fresh):
        run(study, each, progress=False)
        publish(study, each)
    assert values(out) == values(fresh)


@pytest.mark.parametrize("name", ["Q", "cpu_seconds", "status"])
def test_a_chunk_is_forged_with_checksums_that_are_right(
    study: Study, out: Path, name: str
) -> None:
    before, walk = values(out), segment(study, out, 10)
    array = zarr.open_group(walk, mode="r+")[name].with_config({"write_empty_chunks": True})
    array[5:10] = array[5:10] if name == "status" else array[5:10] + 1
    found(study, out, f"{walk}/{name}/c/1")
    comes_back(study, out, before)


@pytest.mark.parametrize("name", ["Q", "cpu_seconds"])
def test_a_forged_chunk_of_fewer_bytes_was_not_cut_short(
    study: Study, out: Path, name: str
) -> None:
    before, walk = values(out), segment(study, out, 10)
    size = (walk / name / "c/1").stat().st_size if name == "cpu_seconds" else 0
    array = zarr.open_group(walk, mode="r+")[name].with_config({"write_empty_chunks": True})
    array[5:10] = 1
    assert not size or (walk / name / "c/1").stat().st_size < size
    found(study, out, f"{walk}/{name}/c/1")
    comes_back(study, out, before)


def test_reasons_that_nobody_committed_are_not_read(study: Study, out: Path) -> None:
    walk = segment(study, out, 10)
    array = zarr.open_group(walk, mode="r+")["reason"]
    array[0:5] = np.array(["made up"] * 5, dtype=object)
    working = store.open_segment(walk)
    assert working.read("reason", slice(0, 5)).tolist() == [""] * 5


@pytest.fixture
def chunked(out: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study whose planner's arrays have several chunks, half computed."""
    monkeypatch.setattr("hdica.sweep.files.planned.PLANNED", 1)
    study = study_from(content())
    run(study, out, progress=False, block=5, shard=(0, 2))
    return study


@pytest.mark.deep
@pytest.mark.parametrize("name", ["key", "parameters", "seed"])
def test_what_was_planned_is_exchanged(chunked: Study, out: Path, name: str) -> None:
    walk = segment(chunked, out, 10)
    exchange(walk / f"{name}/c/1", walk / f"{name}/c/3")
    said = found(chunked, out, f"{walk}/{name}/c/1", f"{walk}/{name}/c/3")
    assert "it is not the chunk that was planned there" in said
    assert repair(out)
    as_if_nothing_had_been(chunked, out)


def test_the_keys_of_another_segment_take_their_place(study: Study, out: Path) -> None:
    small, large = segment(study, out, 10), segment(study, out, 30)
    shutil.rmtree(large / "key")
    shutil.copytree(small / "key", large / "key")
    found(study, out, f"{large}/key")


def test_other_points_take_places_that_were_given_up(out: Path) -> None:
    """The planner's arrays are put back from before they grew, and grow another way."""
    small, first, second = (
        study_from(content(grid={"tau": tau, "Q0": [0.5]}))
        for tau in ([0.1], [0.1, 0.2], [0.1, 0.3])
    )
    walk = prepare(small, out, block=6)[0].path
    shutil.copytree(walk, out.parent / "before")
    run(first, out, progress=False)
    for name in store.PLANNER_ARRAYS:
        shutil.rmtree(walk / name)
        shutil.copytree(out.parent / "before" / name, walk / name)
    prepare(second, out)
    verdict = verify(out)
    assert verdict.code == 3
    assert any("it is of other points" in text for text in verdict.damaged)
    with pytest.raises(DamageError, match="it is of other points"):
        publish(second, out)
    repair(out)
    as_if_nothing_had_been(second, out)


def test_metadata_of_fewer_places_are_refused(study: Study, out: Path) -> None:
    walk = segment(study, out, 10)
    older = work_path(out.with_name("older.zarr"))
    prepare(study_from(content(grid={"tau": [0.1], "Q0": [0.5]})), older.with_suffix(".zarr"))
    shutil.copy2(older / walk.name / "Q/zarr.json", walk / "Q/zarr.json")
    found(study, out, f"{walk}/Q/zarr.json")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def half(file: Path) -> None:
    """Its first half reached the disk, and its size."""
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))


@pytest.mark.deep
@pytest.mark.parametrize("harm", [cut, zeros, half, empty, Path.unlink])
@pytest.mark.parametrize(
    "name", ["Q/c/1/0", "cpu_seconds/c/1", "status/c/1", "key/c/0/0", "seed/c/0", "Q/zarr.json"]
)
def test_what_a_power_loss_cut_short_is_mended_by_the_next_run(
    study: Study, out: Path, name: str, harm: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    before, file = values(out), segment(study, out, 10) / name
    if harm is Path.unlink and name == "Q/zarr.json":
        pytest.skip("a folder without metadata may be one that is not there yet: it is not removed")
    harm(file)
    shutil.rmtree(out)
    yaml = out.with_name("toy.yaml")
    yaml.write_text(json.dumps(content()))
    assert call(["run", str(yaml), "--out", str(out), "--quiet"]) == 0
    assert verify(out).code == 0
    assert values(out) == before
    said = capsys.readouterr().err
    if not (harm is Path.unlink and name == "status/c/1"):
        assert str(file.parents[len(Path(name).parents) - 2]) in said
        assert ("it is written anew" if name == "Q/zarr.json" else "pending") in said
