"""Whole blocks in other places: exchanged, taken from elsewhere, put back from before.

Each of them has digests that are right. None may be read as data, and ``verify`` says so.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hdica.cli import call
from hdica.run.runner import run
from hdica.store.files import DamageError, TornError
from hdica.store.publish import publish
from hdica.store.verify import repair, verify
from hdica.store.working import place
from hdica.study.study import Study, study_from
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


def blocks(study: Study, out: Path, n: int) -> list[Path]:
    return sorted(segment(study, out, n).iterdir())


def exchange(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def refused(study: Study, out: Path, *names: Path) -> str:
    """What ``verify`` says; a run refuses, too, or else to publish what it reads."""
    verdict = verify(out)
    said = "\n".join(verdict.damaged)
    assert verdict.code == 3, (verdict.damaged, verdict.incomplete)
    assert all(str(name) in said for name in names), said
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
    run_and_publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


def test_two_blocks_of_a_segment_are_exchanged(study: Study, out: Path) -> None:
    before, (first, second) = values(out), blocks(study, out, 10)[:2]
    exchange(first, second)
    said = refused(study, out, first, second)
    assert "it holds other points than its name says" in said
    assert call(["verify", str(out)]) == 3
    comes_back(study, out, before)


def test_a_block_of_another_dimension_takes_the_place_of_one(study: Study, out: Path) -> None:
    before = values(out)
    small, large = blocks(study, out, 10)[0], blocks(study, out, 30)[0]
    shutil.copyfile(small, large)
    refused(study, out, large)
    comes_back(study, out, before)


def test_a_block_of_another_segment_is_named_and_never_read(study: Study, out: Path) -> None:
    before = values(out)
    small, folder = blocks(study, out, 10)[0], segment(study, out, 30)
    shutil.copyfile(small, folder / small.name)
    verdict = verify(out)
    assert verdict.code == 3
    assert f"{folder / small.name} is damaged, it is of another segment" in verdict.damaged[0]
    run_and_publish(study, out)
    assert values(out) == before
    comes_back(study, out, before)


def test_a_block_is_put_back_from_before_its_points_were_tried_again(out: Path) -> None:
    study = study_from(content(grid={"tau": [0.13], "Q0": [0.5]}))
    run(study, out, progress=False, block=6)
    (file,) = blocks(study, out, 10)
    older = file.read_bytes()
    # Points that failed succeed: the block is written anew.
    method = toy.make()["walk"]
    object.__setattr__(method, "run", lambda *_: toy.PointResult({"Q": np.ones(3)}))
    toy.put(method)
    run(study, out, progress=False, retry_failed=True)
    publish(study, out)
    assert verify(out).code == 0
    file.write_bytes(older)
    verdict = verify(out)
    assert verdict.code == 1
    assert "6 points of walk are published and no longer in" in verdict.incomplete[-1]
    run(study, out, progress=False, retry_failed=True)
    assert verify(out).code == 0


def test_a_number_that_was_changed_is_never_read(study: Study, out: Path) -> None:
    before, file = values(out), blocks(study, out, 10)[3]
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    assert "the digest of Q is wrong" in refused(study, out, file)
    comes_back(study, out, before)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def half(file: Path) -> None:
    """Its first half reached the disk, and its size."""
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))


@pytest.mark.parametrize("harm", [cut, zeros, half, empty, Path.unlink])
def test_what_a_power_loss_cut_short_is_mended_by_the_next_run(
    study: Study, out: Path, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    before, file = values(out), blocks(study, out, 10)[1]
    harm(file)
    shutil.rmtree(out)
    yaml = out.with_name("toy.yaml")
    yaml.write_text(json.dumps(content()))
    assert call(["run", str(yaml), "--out", str(out), "--quiet"]) == 0
    assert verify(out).code == 0
    assert values(out) == before
    said = capsys.readouterr().err
    if harm is not Path.unlink:
        assert str(file) in said
        assert "its points are pending" in said
