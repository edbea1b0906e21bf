from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.status import DONE, PENDING
from hdica.store.paths import STUDY, manifest_path, work_path
from hdica.store.publish import is_current, publish
from hdica.store.results import open_results, status
from hdica.store.sealed import read_block
from hdica.store.verify import repair, verify
from hdica.store.working import place
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.harm import cut, empty, flip, remove

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that is computed in blocks of 5 and published."""
    toy.register()
    out = tmp_path_factory.mktemp("template") / "toy.zarr"
    study = study_from(toy.study())
    run(study, out, progress=False, block=5)
    publish(study, out)
    return out.parent


@pytest.fixture
def study(out: Path, template: Path) -> Study:
    """A fresh copy of the computed and published study."""
    shutil.copytree(template, out.parent)
    return study_from(toy.study())


def block(study: Study, out: Path) -> Path:
    """A block of five points of the first segment."""
    folder = place(study, out)[0].path
    return next(f for f in sorted(folder.iterdir()) if read_block(f).arrays["status"].size == 5)


@pytest.mark.deep
def test_a_whole_store_is_whole(study: Study, out: Path) -> None:
    verdict = verify(out)
    assert (verdict.code, verdict.points) == (0, 79)
    assert verdict.files > 20
    assert repair(out) == []


@pytest.mark.parametrize("harm", [flip, cut, empty])
def test_a_damaged_working_store_is_named_repaired_and_restored(
    study: Study, out: Path, harm: Callable[[Path], None], calls: Path
) -> None:
    before, file = values(out), block(study, out)
    harm(file)
    verdict = verify(out)
    assert verdict.code == 3
    assert verdict.files > 20  # of the published store, which is whole
    assert len(verdict.damaged) == 1
    assert str(file) in verdict.damaged[0]
    (done,) = repair(out)
    assert done.endswith("its points are pending")
    assert verify(out).code == 1
    summary = run(study, out, progress=False)
    assert summary.computed == len(calls.read_text().splitlines()) == 5
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


def test_a_published_block_that_is_gone_is_missed(study: Study, out: Path) -> None:
    before = values(out)
    block(study, out).unlink()
    verdict = verify(out)
    assert verdict.code == 1
    assert verdict.incomplete == (
        "5 points are not computed yet",
        f"5 points of walk are published and no longer in {work_path(out)} (hdica run "
        "--retry-failed computes them again)",
    )
    assert run(study, out, progress=False).computed == 5
    assert verify(out).code == 0
    assert values(out) == before


def test_a_block_that_was_never_published_is_pending_when_it_is_gone(out: Path) -> None:
    study = study_from(toy.study())
    run(study, out, progress=False, block=5)
    # A block that was killed before its commit looks the same: nothing is claimed of it.
    block(study, out).unlink()
    assert verify(out).incomplete[0] == "5 points are not computed yet"
    assert run(study, out, progress=False).computed == 5


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("walk/Q/c/0/0/0/0/0", flip),
        ("walk/status/c/0/0/0/0", remove),
        ("steady/root/c/0", cut),
        ("steady/status/c", flip),
    ],
)
def test_damaged_published_points_become_pending_and_come_back(
    study: Study, out: Path, harm: Callable[[Path], None], name: str, calls: Path
) -> None:
    before = values(out)
    harm(out / name)
    verdict = verify(out)
    assert verdict.code == 3
    assert str(out / name) in verdict.damaged[0]
    assert "point" in verdict.damaged[0]
    repair(out)
    after = verify(out)
    assert after.code == 1
    assert not is_current(study, out)
    group = open_results(out)[name.split("/")[0]].to_dataset()
    assert (group.status == PENDING).all()
    assert all(group[output].isnull().all() for output in group.attrs["outputs"].split())
    assert run(study, out, progress=False).computed == 0
    assert calls.read_text() == ""
    publish(study, out)
    assert values(out) == before
    assert verify(out).code == 0


def test_only_the_points_of_the_damaged_chunk_become_pending(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.store.publish.CHUNK_ELEMENTS", 100)
    study = study_from(toy.study())
    run(study, out, progress=False)
    publish(study, out)
    chunks = open_results(out)["walk"].Q.encoding["chunks"]
    assert chunks == (1, 2, 2, 6, 3)
    flip(out / "walk/Q/c/2/0/0/0/0")
    named = verify(out).damaged[0]
    assert "points of walk: tau 0.3, Q0 0.25 to 0.5, n 10 to 30, seed 0 to 5" in named
    repair(out)
    found = open_results(out)["walk"].to_dataset()
    assert (found.status.sel(tau=0.3) == PENDING).all()
    assert (found.status.sel(tau=[0.1, 0.2]) == DONE).all()
    assert found.Q.sel(tau=[0.1, 0.2]).notnull().all()
    assert "24 points" in verify(out).incomplete[0]


@pytest.mark.parametrize(
    "name", ["zarr.json", "walk/zarr.json", "walk/tau/c/0", "walk/Q/zarr.json"]
)
def test_damage_beyond_points_publishes_again(study: Study, out: Path, name: str) -> None:
    before = values(out)
    flip(out / name)
    assert verify(out).code == 3
    assert "publishes again" in repair(out)[0]
    assert verify(out).code == 1
    publish(study, out)
    assert values(out) == before


def test_a_manifest_that_is_gone_or_broken(study: Study, out: Path) -> None:
    manifest_path(out).write_text("{")
    assert verify(out).code == 3
    repair(out)
    verdict = verify(out)
    assert (verdict.code, verdict.incomplete) == (
        1,
        (f"{out} is not published yet: its manifest is missing",),
    )


@pytest.mark.parametrize("manifest", [True, False])
def test_a_published_store_alone_is_verified_and_repaired(
    study: Study, out: Path, manifest: bool
) -> None:
    shutil.rmtree(work_path(out))
    if not manifest:
        manifest_path(out).unlink()
    assert verify(out).code == 0
    assert repair(out) == []
    assert not work_path(out).exists()
    flip(out / "line/Q/c/0/0/0")
    assert verify(out).code == 3
    if manifest:
        assert status(out).source == "published store"
        assert len(repair(out)) == 1
        assert "points of" in verify(out).incomplete[0]
    else:
        damaged = (out / "line/Q/c/0/0/0").read_bytes()
        with pytest.raises(HdicaError, match="is a copy without its manifest and its working"):
            repair(out)
        assert (out / "line/Q/c/0/0/0").read_bytes() == damaged
        assert not work_path(out).exists()


def test_a_folder_of_an_earlier_hdica_is_mentioned(study: Study, out: Path) -> None:
    old = out.with_suffix(".versions")
    old.mkdir()
    assert verify(out).notes == (
        f"{old} was written by an earlier hdica, and nothing reads it (remove it)",
    )


def test_results_are_read_from_another_working_directory(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out.parent)
    tree = open_results(out.name)
    monkeypatch.chdir("/")
    assert tree["line"].Q.equals(open_results(out)["line"].Q)


@pytest.mark.deep
def test_what_is_not_computed_published_or_current_is_incomplete(out: Path) -> None:
    study = study_from(toy.study())
    with pytest.raises(HdicaError, match="does not exist"):
        verify(out)
    run(study, out, progress=False, shard=(0, 2), block=5)
    assert [s.split(" ", 1)[1] for s in verify(out).incomplete] == [
        "points are not computed yet",
        "is not published yet: it is not there",
    ]
    run(study, out, progress=False)
    publish(study, out)
    run(study_from(toy.study(times=[0, 1])), out, progress=False)
    assert "before the study or its code was changed" in verify(out).incomplete[0]


def test_failed_points_leave_a_study_incomplete(out: Path) -> None:
    study = study_from(toy.study(grid={"tau": [0.13, 0.17], "Q0": [0.5]}))
    run(study, out, progress=False)
    publish(study, out)
    verdict = verify(out)
    assert verdict.code == 1
    assert "12 points" in verdict.incomplete[0]
    assert "failed" in verdict.incomplete[0]


def test_status_counts_while_a_run_goes_on(out: Path) -> None:
    with pytest.raises(HdicaError, match="does not exist"):
        status(out)
    study = study_from(toy.study())
    run(study, out, progress=False, shard=(1, 3), block=4)
    found = status(out)
    assert found.source == "working store"
    assert found.total("points") == 79
    assert 0 < found.total("done") < 79
    assert found.total("pending") == 79 - found.total("done")
    assert json.loads(json.dumps(found.as_dict()))["rows"][0]["method"] == "walk"
    run(study, out, progress=False)
    publish(study, out)
    working = status(out)
    shutil.rmtree(work_path(out))
    alone = status(out)
    assert {(r.method, r.n, r.done) for r in alone.rows} == {
        (r.method, r.n, r.done) for r in working.rows
    }
    assert alone.total("done") + alone.total("diverged") == alone.total("points")


def test_results_whose_working_store_was_removed_are_not_replaced_by_nothing(
    study: Study, out: Path
) -> None:
    before = values(out)
    shutil.rmtree(work_path(out))
    for again in (study, study_from(toy.study(title="Another title"))):
        with pytest.raises(HdicaError, match="nothing was published"):
            publish(again, out)
    assert values(out) == before
    assert run(study, out, progress=False).computed == 79
    publish(study, out)
    assert values(out) == before


def test_a_folder_of_somebody_else_is_put_aside_with_all_that_is_in_it(
    study: Study, out: Path
) -> None:
    letter = work_path(out) / "mine" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("a year of work")
    in_place = block(study, out)
    in_place.unlink()
    in_place.mkdir()
    assert {in_place, letter.parent} <= {Path(s.split(" does")[0]) for s in verify(out).damaged}
    repair(out)
    aside = next(out.parent.glob("*.strays")).rglob("letter.txt")
    assert next(aside).read_text() == "a year of work"
    assert run(study, out, progress=False).computed == 5
    publish(study, out)
    assert verify(out).code == 0


def test_a_store_of_a_system_that_is_not_installed_is_not_damaged(study: Study, out: Path) -> None:
    toy.forget()
    verdict = verify(out)
    assert verdict.damaged == ()
    assert "is no study of this installation" in " ".join(verdict.incomplete)
    assert repair(out) == []
    toy.register()
    assert verify(out).code == 0


def test_a_record_that_is_no_text_is_written_anew(study: Study, out: Path) -> None:
    file = work_path(out) / STUDY
    raw = file.read_bytes()
    file.write_bytes(raw[:60] + bytes([raw[60] | 128]) + raw[61:])
    assert verify(out).damaged[0].startswith(str(file))
    run(study, out, progress=False)
    assert file.read_bytes() == raw


def test_digests_are_named_beside_the_metadata_that_should_name_theirs(
    study: Study, out: Path
) -> None:
    root, digests = out / "zarr.json", out / "digests.json"
    before, raw = values(out), root.read_bytes()
    root.write_bytes(digests.read_bytes())
    digests.write_bytes(raw)
    sentences = " ".join(verify(out).damaged)
    assert str(root) in sentences
    assert str(digests) in sentences
    repair(out)
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before
