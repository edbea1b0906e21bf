"""Metadata and small files of both stores: damage is named, and mended by one repair."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.verify import repair, verify
from hdica.store.working import place
from tests.sweep import small_files, toy
from tests.sweep.conftest import values
from tests.sweep.small_files import ALONE, PAIRS, Trials, draw

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


def test_a_file_in_place_of_a_segment_is_named_and_goes_and_no_other_file(
    trials: Trials, out: Path
) -> None:
    run(trials.study, out, progress=False, block=2, shard=(0, 2))
    folder = place(trials.study, out)[0].path
    shutil.rmtree(folder)
    folder.write_text("")
    assert [f"{folder} does not belong" in text for text in verify(out).damaged] == [True]
    assert len(repair(out)) == 1
    assert (out.parent / "toy.strays").is_dir()
    assert run(trials.study, out, progress=False).complete
    publish(trials.study, out)
    assert values(out) == trials.right
