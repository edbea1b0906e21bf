"""What a large study needs: short locks, few files, and statuses read past Zarr."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from hdica.sweep.files import store
from hdica.sweep.files.blocks import every_place
from hdica.sweep.files.paths import DamageError, work_path
from hdica.sweep.outcome.status import status
from hdica.sweep.run.plan import MOST_BLOCKS, block_points, place, plan, prepare
from hdica.sweep.run.runner import run
from hdica.sweep.study.segment import Segment, segments_of
from hdica.sweep.study.study import Study, study_from
from tests.sweep import toy


@pytest.fixture
def study() -> Study:
    return study_from(toy.study())


@pytest.fixture
def half(study: Study, out: Path) -> store.Working:
    """A segment of 36 points in blocks of 5, half of them computed."""
    run(study, out, shard=(0, 2), progress=False, block=5)
    return store.open_segment(place(study, out)[0].path)


@pytest.mark.parametrize("name", ["status", "cpu_seconds"])
def test_every_place_is_what_zarr_reads(half: store.Working, name: str) -> None:
    expected = half.read(name, slice(0, half.size))
    found = every_place(half, name)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()
    assert 0 < np.count_nonzero(every_place(half, "status")) < 36


def test_what_lies_beside_the_chunks_is_not_read(half: store.Working) -> None:
    folder = half.path / "status" / "c"
    expected = every_place(half, "status").tobytes()
    whole = (folder / "0").read_bytes()
    for name in ("0.1234.partial", "00", "8", "99999999999999999999", "²", "x"):
        (folder / name).write_bytes(whole)
    (folder / "more").mkdir()
    assert every_place(half, "status").tobytes() == expected


def test_an_empty_segment_is_pending(study: Study, out: Path) -> None:
    working = store.open_segment(prepare(study, out, block=5)[0].path)
    assert not every_place(working, "status").any()
    assert np.isnan(every_place(working, "cpu_seconds")).all()


@pytest.mark.faults
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "longer"])
def test_a_damaged_status_is_named(half: store.Working, damage: str) -> None:
    file = half.path / "status" / "c" / "0"
    raw = file.read_bytes()
    spoilt = {
        "flipped": raw[:-6] + bytes([raw[-6] ^ 1]) + raw[-5:],
        "cut": raw[:-1],
        "empty": b"",
        "longer": raw + b"\0",
    }
    file.write_bytes(spoilt[damage])
    with pytest.raises(DamageError, match="status"):
        every_place(half, "status")


def test_keys_are_computed_before_the_lock_is_taken(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, free = Segment.keys, []

    def asked(segment: Segment) -> object:
        lock = work_path(out) / ".lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=1):
            free.append(segment.name)
        return keys(segment)

    monkeypatch.setattr(Segment, "keys", asked)
    for _ in range(2):
        free.clear()
        prepare(study, out)
        assert free == [segment.name for segment in segments_of(study)]


def test_very_many_long_points_make_blocks_of_up_to_a_minute() -> None:
    assert block_points(1.0, 10**6, 10) == 15
    assert MOST_BLOCKS > 0.95 * 10**6 / 15
    assert block_points(1.0, 10**7, 10) == 60
    assert block_points(100.0, 10**6, 10) == 1
    assert block_points(0.02, 10**6, 10) == 100


def test_a_plan_counts_the_files_that_will_be_there(study: Study, out: Path) -> None:
    planned = plan(study, out)
    run(study, out, progress=False)
    found = [
        file
        for one in place(study, out)
        for file in one.path.rglob("c/**/*")
        if file.is_file() and file.relative_to(one.path).parts[0] not in store.PLANNER_ARRAYS
    ]
    assert len(found) == planned.files == sum(s.files for s in planned.segments)
    assert plan(study, out).files == planned.files
    assert planned.as_dict()["files"] == planned.files


def test_status_of_a_half_done_study_counts_what_it_took(
    half: store.Working, study: Study, out: Path
) -> None:
    walk = status(out).rows[0]
    done = every_place(half, "status") == store.DONE
    assert walk.done == done.sum() > 0
    assert walk.cpu_seconds == pytest.approx(every_place(half, "cpu_seconds")[done].sum())
