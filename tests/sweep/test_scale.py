"""What a large study needs: short locks, and few files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hdica.run.plan import MOST_BLOCKS, block_points, plan
from hdica.run.runner import run
from hdica.status import DONE
from hdica.store.files import lockable, try_lock
from hdica.store.paths import work_path
from hdica.store.results import status
from hdica.store.working import place
from hdica.study.segment import Segment, segments_of
from hdica.study.study import Study, study_from
from tests.sweep import toy


@pytest.fixture
def study() -> Study:
    return study_from(toy.study())


def test_keys_are_computed_before_the_lock_is_taken(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, free = Segment.keys, []

    def asked(segment: Segment) -> object:
        lock = work_path(out) / ".lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lockable(lock) as file:
            assert try_lock(file)
            free.append(segment.name)
        return keys(segment)

    monkeypatch.setattr(Segment, "keys", asked)
    for _ in range(2):
        free.clear()
        run(study, out, progress=False)
        assert free == [segment.name for segment in segments_of(study)]


def test_very_many_long_points_make_blocks_of_up_to_a_minute() -> None:
    assert block_points(1.0, 10**6) == 15
    assert MOST_BLOCKS > 0.95 * 10**6 / 15
    assert block_points(1.0, 10**7) == 60
    assert block_points(100.0, 10**6) == 1
    assert block_points(0.02, 10**6) == 100


def test_a_plan_counts_the_files_that_will_be_there(study: Study, out: Path) -> None:
    planned = plan(study, out)
    run(study, out, progress=False)
    files = [file for each in place(study, out) for file in each.path.iterdir()]
    assert len(files) == planned.files == sum(s.files for s in planned.segments)
    assert plan(study, out).files == planned.files
    assert planned.as_dict()["files"] == planned.files


def test_status_of_a_half_done_study_counts_what_it_took(study: Study, out: Path) -> None:
    run(study, out, shard=(0, 2), progress=False, block=5)
    walk, placed = status(out).rows[0], place(study, out)[0]
    done = placed.statuses == DONE
    assert walk.done == done.sum() > 0
    assert walk.cpu_seconds == pytest.approx(np.nansum(placed.cpu_seconds))
    assert np.isnan(placed.cpu_seconds[~done]).all()
