"""Metadata and small files of both stores: damage is named, and mended by one repair."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hdica.sweep.files import store
from hdica.sweep.files.paths import DamageError
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.publish import publish
from hdica.sweep.outcome.repair import repair
from hdica.sweep.outcome.status import status
from hdica.sweep.run.plan import place
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import study_from
from tests.sweep import small_files, toy
from tests.sweep.conftest import values
from tests.sweep.small_files import ALONE, CONTENT, PAIRS, Trials, draw, swapped

pytestmark = [pytest.mark.faults, pytest.mark.deep]

SAMPLE = 40
"""Of the 300 damages of ``python -m tests.sweep.small_files``."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    toy.register()
    return Trials(tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("number", range(SAMPLE))
def test_damage_is_named_and_mended_in_one_call(
    trials: Trials, tmp_path: Path, number: int
) -> None:
    trials.trial(draw(trials.out, SAMPLE, seed=1)[number], tmp_path)


def test_the_sample_has_every_kind_of_file_and_of_damage(trials: Trials) -> None:
    drawn = draw(trials.out, SAMPLE, seed=1)
    assert {one.kind for one in drawn} == set(small_files.small(trials.out))
    assert {one.harm for one in drawn} == {*ALONE, *PAIRS}


@pytest.fixture
def half(trials: Trials, out: Path) -> Path:
    """A segment of the study, one of whose two blocks is computed; nothing is published."""
    run(trials.study, out, progress=False, block=2, shard=(0, 2))
    store._cached.cache_clear()  # another process goes on
    return place(trials.study, out)[0].path


@pytest.mark.parametrize(
    ("one", "other"),
    [("Q", "cpu_seconds"), ("Q", "status"), ("status", "seed"), ("seed", "key"),
     ("reason", "parameters"), ("mse", "Q")],
)  # fmt: skip
def test_metadata_of_another_array_cost_no_point_but_for_those_of_the_keys(
    trials: Trials, out: Path, half: Path, one: str, other: str
) -> None:
    before, file = status(out).total("pending"), half / other / "zarr.json"
    shutil.copy(half / one / "zarr.json", file)
    with pytest.raises(DamageError, match=f"{file} is damaged, it is of another array"):
        run(trials.study, out, progress=False)
    assert [f"{file} is damaged" in text for text in verify(out).damaged] == [True]
    (said,) = repair(out)
    assert said.endswith("its points are pending" if other == "key" else "it is written anew")
    assert status(out).total("pending") == before + 2 * (other == "key")
    assert run(trials.study, out, progress=False).complete
    publish(trials.study, out)
    assert values(out) == trials.right


def test_a_file_in_place_of_a_segment_is_named_and_goes_and_no_other_file(
    trials: Trials, out: Path, half: Path
) -> None:
    shutil.rmtree(half)
    half.write_text("")
    (half.parent / "my-notes.txt").write_text("of somebody")
    assert [f"{half} is no folder" in text for text in verify(out).damaged] == [True]
    (said,) = repair(out)
    assert said.endswith("its points are pending")
    assert run(trials.study, out, progress=False).complete
    publish(trials.study, out)
    assert values(out) == trials.right
    assert (half.parent / "my-notes.txt").is_file()


def test_metadata_of_another_segment_are_written_anew(
    trials: Trials, out: Path, half: Path
) -> None:
    """Those of the segment itself are told from those of its arrays."""
    other = place(trials.study, out)[1].path
    before = status(out).total("pending")
    for name in ("zarr.json", "Q/zarr.json"):
        swapped(half / name, other / name)
        wrong = [f"{path / name} is damaged, it is of another" for path in (half, other)]
        damaged = sorted(verify(out).damaged)
        assert [text in said for text, said in zip(wrong, damaged, strict=True)] == [True, True]
        assert all(said.endswith("it is written anew") for said in repair(out))
        assert verify(out).damaged == ()
    assert status(out).total("pending") == before


def test_damage_that_damaged_metadata_hide_is_repaired_in_the_same_call(
    trials: Trials, out: Path, half: Path
) -> None:
    (half / "Q/zarr.json").write_text("{}")
    for chunk in (half / "cpu_seconds/c").iterdir():
        chunk.write_bytes(b"")
    assert len(repair(out)) == 2
    assert verify(out).damaged == ()


def test_a_segment_of_an_earlier_plan_is_given_up(trials: Trials, out: Path, half: Path) -> None:
    """Nothing says any more what its metadata have to be."""
    later = study_from({**CONTENT, "times": [0, 1]})
    run(later, out, progress=False)
    (half / "Q/zarr.json").write_text("{}")
    assert repair(out)[0].endswith("its points are pending")
    assert not half.exists()
    assert verify(out).damaged == ()
