"""Readers of a store that is published anew: versions that never change, held as they are read."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hdica
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.sweep.files.manifest import file_digest, read_manifest
from hdica.sweep.files.paths import DamageError, manifest_path, work_path
from hdica.sweep.outcome import versions
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.publish import is_current, publish
from hdica.sweep.outcome.repair import repair
from hdica.sweep.outcome.results import open_results
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.harm import flip, remove
from tests.sweep.republish import right as expected

TAUS = [0.1, 0.2, 0.3]
CHUNK = "line/Q/c/0/0/0"


def small(taus: list[float], **changes: object) -> Study:
    """A study of two points a step size, whose values say where they belong: Q0 + tau t."""
    grid = {"tau": taus, "Q0": [0.25, 0.5]}
    return study_from(toy.study(grid=grid, parameters={}, methods={"line": {}}, **changes))


def published(out: Path, taus: list[float] = TAUS, **changes: object) -> Study:
    study = small(taus, **changes)
    run(study, out, progress=False)
    publish(study, out)
    return study


def names(out: Path) -> set[str]:
    return {path.stem for path in versions.versions_in(out)}


def version(out: Path) -> str:
    return str((read_manifest(out) or {})["version"])


def plain(path: Path) -> xr.DataArray:
    """Opened lazily, by somebody who does not know hdica."""
    return xr.open_datatree(path, engine="zarr", chunks=None)["line"].Q


def test_values_of_a_lazy_tree_stay_under_their_labels(out: Path) -> None:
    published(out)
    first = hdica.version_path(out)
    ours, theirs, by_name = open_results(out), plain(first), plain(out)
    published(out, [0.2, 0.3, 0.4])
    assert ours.encoding["source"] == str(first)
    assert np.array_equal(ours["line"].Q, expected(TAUS))
    assert np.array_equal(theirs, expected(TAUS))
    # The attack: the newest store gives its own values under labels that were read before.
    assert by_name.tau.values.tolist() == TAUS
    assert np.array_equal(by_name, expected([0.2, 0.3, 0.4]))
    assert np.array_equal(open_results(out)["line"].Q, expected([0.2, 0.3, 0.4]))


def test_a_version_is_links_to_the_files_that_were_published(out: Path) -> None:
    published(out)
    folder = hdica.version_path(out)
    assert folder == out.with_name("toy.versions") / f"{version(out)}.zarr"
    files = (read_manifest(out) or {})["files"]
    assert all((folder / name).samefile(out / name) for name in files)
    assert all(file_digest(folder / name) == digest for name, digest in files.items())
    assert verify(out).code == 0


@pytest.mark.deep
def test_the_last_two_versions_stay_and_those_that_somebody_reads(out: Path) -> None:
    published(out)
    first, tree = version(out), open_results(out)
    published(out, [0.2, 0.3, 0.4])
    second = version(out)
    published(out, [0.3, 0.4, 0.5])
    third = version(out)
    assert names(out) == {first, second, third}
    assert np.array_equal(tree["line"].Q, expected(TAUS))
    assert (read_manifest(out) or {})["before"] == second
    del tree
    gc.collect()
    published(out, [0.4, 0.5])
    assert names(out) == {third, version(out)}
    assert verify(out).code == 0


WORKER = """
import pickle, sys
lazy = pickle.load(open(sys.argv[1], "rb"))
print("ready", flush=True)
sys.stdin.readline()
print(lazy.compute(scheduler="synchronous").values.tolist())
"""


@pytest.mark.deep
def test_what_was_sent_to_a_worker_reads_on(out: Path) -> None:
    published(out)
    sent, first = out.parent / "sent.pickle", version(out)
    sent.write_bytes(pickle.dumps(open_results(out)["line"].Q.chunk({"tau": 1})))
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(sent)], stdin=-1, stdout=-1, text=True
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdin is not None
        assert worker.stdout.readline() == "ready\n"
        gc.collect()
        for taus in ([0.2, 0.3, 0.4], [0.3, 0.4], [0.3]):
            published(out, taus)
        assert first in names(out)
        worker.stdin.write("\n")
        worker.stdin.flush()
        assert worker.stdout.readline() == f"{expected(TAUS).tolist()}\n"
    published(out, [0.2, 0.3])
    assert first not in names(out)
    # One that comes too late is told so.
    late = pickle.loads(sent.read_bytes())  # noqa: S301
    with pytest.raises(DamageError, match="was published anew since it was opened"):
        late.compute(scheduler="synchronous")


def test_what_is_published_again_as_it_was_is_the_same_version(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.sweep.files.provenance.now", lambda: "2026-01-01T00:00:00+00:00")
    study = published(out)
    first = version(out)
    published(out, [0.1, 0.2])
    before = version(out)
    for _ in range(3):
        run(study, out, progress=False)
        publish(study, out)
        assert (version(out), (read_manifest(out) or {})["before"]) == (first, before)
        assert names(out) == {first, before}


def only_within_a_folder(link: Callable[..., None]) -> Callable[..., None]:
    """Hard links as AFS has them; Zarr itself cannot write without those."""

    def tried(source: Path, target: Path, **how: bool) -> None:
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        link(source, target, **how)

    return tried


def test_where_there_are_no_links_there_are_no_versions_and_all_else_works(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", only_within_a_folder(os.link))
    study = published(out)
    assert not out.with_suffix(".versions").exists()
    assert verify(out).code == 0
    assert is_current(study, out)
    with pytest.raises(HdicaError, match="has no folder of its version"):
        hdica.version_path(out)
    tree = open_results(out)
    published(out, [0.2, 0.3, 0.4])
    with pytest.raises(DamageError, match="was published anew since it was opened"):
        tree["line"].Q.load()
    (out / CHUNK).unlink()
    assert repair(out)
    assert verify(out).code == 1
    publish(small([0.2, 0.3, 0.4]), out)
    assert np.array_equal(open_results(out)["line"].Q, expected([0.2, 0.3, 0.4]))


def alone(out: Path) -> None:
    shutil.rmtree(out.with_suffix(".versions"))
    shutil.rmtree(work_path(out))


@pytest.mark.parametrize("manifest", [True, False])
def test_a_store_that_was_copied_alone_opens(out: Path, manifest: bool) -> None:
    published(out)
    points = verify(out).points
    alone(out)
    if not manifest:
        manifest_path(out).unlink()
    verdict = verify(out)
    assert (verdict.code, verdict.points) == (0, points)
    assert verdict.files > points > 0
    assert np.array_equal(open_results(out)["line"].Q, expected(TAUS))


def test_the_next_run_makes_a_version_that_is_missing_and_removes_what_a_kill_left(
    out: Path, tmp_path: Path
) -> None:
    study = published(out)
    yaml = tmp_path / "toy.yaml"
    yaml.write_text(study.model_dump_json())
    folder = hdica.version_path(out)
    folder.rename(folder.with_name(f".{folder.name}.old"))
    for name in (f".{out.name}.old", f".{out.name}.partial"):
        shutil.copytree(out, out.with_name(name))
    assert call(["run", str(yaml), "--out", str(out), "--quiet"]) == 0
    assert hdica.version_path(out) == folder
    left = [p for p in out.parent.rglob(".*") if p.name not in (".lock", ".locks", ".running")]
    assert not left


def test_a_deleted_chunk_is_refused_where_plain_xarray_reads_nan(out: Path) -> None:
    published(out)
    (out / CHUNK).unlink()
    assert plain(out).isnull().all()
    with pytest.raises(DamageError, match=r"toy\.zarr/line/Q/c/0/0/0 is missing \(points of line"):
        open_results(out)
    assert verify(out).code == 3
    assert call(["query", str(out)]) == 3


# ------------------------------------------------------------------ damage of versions


def replaced(file: Path) -> None:
    """Another file in its place, as an editor or rsync writes it: links to it stay as they are."""
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    flip(copy)
    copy.replace(file)


@pytest.mark.parametrize("harm", [replaced, remove])
@pytest.mark.parametrize("name", [CHUNK, "zarr.json", "digests.json", "line/tau/c/0"])
def test_a_damaged_version_is_named_and_made_again(
    out: Path, harm: Callable[[Path], None], name: str
) -> None:
    published(out)
    folder = hdica.version_path(out)
    harm(folder / name)
    verdict = verify(out)
    assert verdict.code == 3
    assert [str(folder / name) in text for text in verdict.damaged] == [True]
    assert len(repair(out)) == 1
    assert verify(out).code == 0
    assert (folder / name).samefile(out / name)
    assert np.array_equal(open_results(out)["line"].Q, expected(TAUS))


def test_repair_leaves_no_damaged_version_and_writes_none_that_is_read(out: Path) -> None:
    study = published(out)
    before, tree, first = values(out), open_results(out), hdica.version_path(out)
    flip(out / CHUNK)
    with (first / CHUNK).open("rb") as held, (first / "line/status/c/0/0").open("rb") as whole:
        damaged, status = held.read(), whole.read()
        assert verify(out).code == 3
        repair(out)
        held.seek(0)
        whole.seek(0)
        # The points are pending now, in files of their own.
        assert (held.read(), whole.read()) == (damaged, status)
    assert not first.exists()
    assert names(out) == {version(out)}
    with pytest.raises(DamageError, match="was published anew since it was opened"):
        tree["line"].Q.load()
    verdict = verify(out)
    assert verdict.incomplete == (f"6 points of {out} are pending",)
    assert open_results(out)["line"].Q.isnull().all()
    publish(study, out)
    assert values(out) == before
    assert verify(out).code == 0


def test_an_old_version_is_checked_by_its_own_digests(out: Path) -> None:
    published(out)
    first = hdica.version_path(out)
    published(out, [0.2, 0.3, 0.4])
    whole = verify(first)
    assert (whole.code, whole.damaged, whole.incomplete) == (0, (), ())
    assert whole.points > 0
    flip(first / CHUNK)
    assert verify(first).code == 3
    verdict = verify(out)
    assert verdict.code == 3
    assert str(first / CHUNK) in verdict.damaged[0]
    assert np.array_equal(open_results(out)["line"].Q, expected([0.2, 0.3, 0.4]))
    repair(out)
    assert not first.exists()
    assert verify(out).code == 0


class Cut(Exception):
    """The moment at which something is cut short."""


def cut_short(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], after: int) -> bool:
    """Do some work and end it before one of its renames; whether it came so far."""
    real, left = Path.replace, [after]

    def replace(self: Path, target: Path) -> Path:
        if not left[0]:
            raise Cut
        left[0] -= 1
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        try:
            work()
        except Cut:
            return True
    return False


@pytest.mark.deep
def test_a_repair_that_is_cut_short_is_gone_on_with(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = published(out)
    before, whole = values(out), tmp_path / "whole"
    flip(out / CHUNK)
    out.parent.rename(whole)
    for moment in range(0, 99, 3):
        shutil.copytree(whole, out.parent)
        cut = cut_short(monkeypatch, lambda: repair(out), moment)
        repair(out)
        assert verify(out).code == 1
        run(study, out, progress=False)
        publish(study, out)
        assert verify(out).code == 0
        assert values(out) == before
        assert len(names(out)) <= 2
        shutil.rmtree(out.parent)
        if not cut:
            break
    assert 5 < moment < 96


# ------------------------------------------------------------------ files of somebody else


def test_a_version_itself_is_not_changed(out: Path) -> None:
    study = published(out)
    folder = hdica.version_path(out)
    before = sorted(str(p) for p in out.parent.rglob("*"))
    assert np.array_equal(open_results(folder)["line"].Q, expected(TAUS))
    assert verify(folder).code == 0
    for change in (repair, lambda path: publish(study, path)):
        with pytest.raises(HdicaError, match=r"is a version of .*toy\.zarr and never changes"):
            change(folder)
    assert sorted(str(p) for p in out.parent.rglob("*")) == before


def test_what_is_no_version_is_left_alone_and_named(out: Path, tmp_path: Path) -> None:
    published(out)
    folder, outside = out.with_suffix(".versions"), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("precious")
    (folder / "notes.txt").write_text("of somebody")
    (folder / "mine.zarr").mkdir()
    (folder / "mine.zarr" / "zarr.json").write_text("{}")
    (folder / "0123456789abcdef.zarr").symlink_to(outside)
    (folder / ".0123456789abcdef.zarr.old").symlink_to(outside)
    others = sorted(p for p in folder.iterdir() if p.stem != version(out))
    verdict = verify(out)
    assert verdict.code == 1
    assert [str(p) in " ".join(verdict.incomplete) for p in others] == [True] * 4
    for taus in ([0.2, 0.3], [0.3, 0.4], [0.4, 0.5]):
        published(out, taus)
        repair(out)
    assert [p for p in others if p.exists()] == others
    assert (outside / "precious.txt").read_text() == "precious"
    assert len(names(out)) == 2


@pytest.mark.deep
def test_a_version_with_a_file_of_somebody_is_not_removed(out: Path) -> None:
    published(out)
    first = hdica.version_path(out)
    (first / "notes.txt").write_text("of somebody")
    for taus in ([0.2, 0.3], [0.3, 0.4], [0.4, 0.5]):
        published(out, taus)
    assert (first / "notes.txt").read_text() == "of somebody"
    assert str(first / "notes.txt") in verify(out).damaged[0]
    repair(out)
    assert [p.read_text() for p in out.with_suffix(".strays").iterdir()] == ["of somebody"]
    published(out, [0.5, 0.6])
    assert not first.exists()
    assert verify(out).code == 0


@pytest.mark.parametrize("name", ["toy.versions", "toy.versions/VERSION.zarr"])
def test_a_link_or_a_file_where_versions_go_is_refused(
    out: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.sweep.files.provenance.now", lambda: "2026-01-01T00:00:00+00:00")
    study = published(out)
    place = out.parent / name.replace("VERSION", version(out))
    moved = tmp_path / "moved"
    place.rename(moved)
    place.symlink_to(moved)
    with pytest.raises(HdicaError, match=r"is a link|is no version"):
        publish(study, out)
    assert place.is_symlink()
    place.unlink()
    place.write_text("of somebody")
    with pytest.raises(HdicaError, match=r"is no folder|is no version"):
        publish(study, out)
    assert place.read_text() == "of somebody"


def test_a_version_has_lost_its_name_for_good_before_it_loses_files(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a power loss could bring back the name and not the files."""
    published(out)
    first = hdica.version_path(out)
    events: list[tuple[str, Path]] = []

    def noted(name: str) -> None:
        real = getattr(versions, name)

        def function(path: Path) -> None:
            events.append((name if path.exists() else "nothing", path))
            real(path)

        monkeypatch.setattr(versions, name, function)

    noted("sync_folder")
    noted("discard")
    assert versions.remove(first)
    old = first.with_name(f".{first.name}.old")
    assert events == [("nothing", old), ("sync_folder", first.parent), ("discard", old)]
