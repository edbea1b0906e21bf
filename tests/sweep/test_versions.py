"""Readers of a store that is published anew: what is open stays what it was."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.cli import call
from hdica.run.runner import run
from hdica.store.files import DamageError, read_regular
from hdica.store.paths import manifest_path, partial_path, previous_path, work_path
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.store.sealed import read_manifest
from hdica.store.verify import repair, verify
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.harm import flip
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


def version(out: Path) -> str:
    return str((read_manifest(out) or {})["version"])


def plain(path: Path) -> xr.DataArray:
    """Opened lazily, by somebody who does not know hdica."""
    return xr.open_datatree(path, engine="zarr", chunks=None)["line"].Q


def test_values_of_a_lazy_tree_stay_under_their_labels(out: Path) -> None:
    published(out)
    ours, by_name = open_results(out), plain(out)
    published(out, [0.2, 0.3, 0.4])
    assert np.array_equal(ours["line"].Q, expected(TAUS))
    # Plain xarray: the newest store gives its own values under labels that were read before.
    assert by_name.tau.values.tolist() == TAUS
    assert np.array_equal(by_name, expected([0.2, 0.3, 0.4]))
    assert np.array_equal(open_results(out)["line"].Q, expected([0.2, 0.3, 0.4]))


def test_a_tree_is_refused_after_a_second_publication(out: Path) -> None:
    published(out)
    tree = open_results(out)
    published(out, [0.2, 0.3, 0.4])
    published(out, [0.3, 0.4, 0.5])
    with pytest.raises(DamageError, match="was published anew since it was opened"):
        tree["line"].Q.load()
    assert verify(out).code == 0


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_store_that_comes_back_between_two_looks_is_read(
    out: Path, monkeypatch: pytest.MonkeyPatch, exchanged: bool
) -> None:
    """Two grids are published in turns: a look sees the other one wherever it looks."""
    monkeypatch.setattr("hdica.store.provenance.now", lambda: "2026-01-01T00:00:00+00:00")
    if not exchanged:
        monkeypatch.setattr("hdica.store.publish._exchanged", lambda one, other: False)
    published(out)
    tree = open_results(out)
    published(out, [0.2, 0.3, 0.4])
    looks: list[str] = []

    def read(path: Path) -> bytes | None:
        content = read_regular(path)
        if path.match(CHUNK):
            looks.append(path.relative_to(out.parent).parts[0])
            if len(looks) == 1:
                publish(small(TAUS), out, replace=True)
                del looks[1:]  # what publishing has read
        return content

    monkeypatch.setattr("hdica.store.published.read_regular", read)
    assert np.array_equal(tree["line"].Q, expected(TAUS))
    assert looks == ["toy.zarr", ".toy.zarr.partial", ".toy.zarr.old", "toy.zarr"]


def test_the_store_before_the_current_one_stays_until_the_next_publication(out: Path) -> None:
    published(out)
    assert not previous_path(out).exists()
    published(out, [0.2, 0.3, 0.4])
    assert np.array_equal(plain(previous_path(out)), expected(TAUS))
    published(out, [0.3, 0.4, 0.5])
    assert np.array_equal(plain(previous_path(out)), expected([0.2, 0.3, 0.4]))
    assert {p.name for p in out.parent.iterdir()} == {
        "toy.zarr", ".toy.zarr.old", "toy.work", "toy.manifest.json"
    }  # fmt: skip


@pytest.mark.parametrize("command", ["cp -r", "rsync -a"])
def test_a_copy_of_a_published_store_is_a_whole_store(
    out: Path, tmp_path: Path, command: str
) -> None:
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    published(out)
    published(out, [0.2, 0.3, 0.4])
    subprocess.run([*command.split(), str(out), str(tmp_path)], check=True)
    copy = tmp_path / out.name
    assert verify(copy).code == 0
    assert np.array_equal(open_results(copy)["line"].Q, expected([0.2, 0.3, 0.4]))


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
    sent = out.parent / "sent.pickle"
    sent.write_bytes(pickle.dumps(open_results(out)["line"].Q.chunk({"tau": 1})))
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(sent)], stdin=-1, stdout=-1, text=True
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdin is not None
        assert worker.stdout.readline() == "ready\n"
        published(out, [0.2, 0.3, 0.4])
        worker.stdin.write("\n")
        worker.stdin.flush()
        assert worker.stdout.readline() == f"{expected(TAUS).tolist()}\n"
    published(out, [0.2, 0.3])
    # One that comes too late is refused.
    late = pickle.loads(sent.read_bytes())  # noqa: S301
    with pytest.raises(DamageError, match="was published anew since it was opened"):
        late.compute(scheduler="synchronous")


def test_what_is_published_again_as_it_was_is_the_same_version(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.store.provenance.now", lambda: "2026-01-01T00:00:00+00:00")
    study = published(out)
    first = version(out)
    published(out, [0.1, 0.2])
    assert version(out) != first
    run(study, out, progress=False)
    publish(study, out)
    assert version(out) == first


def test_where_folders_cannot_be_exchanged_all_works_the_same(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.store.publish._exchanged", lambda one, other: False)
    published(out)
    tree = open_results(out)
    published(out, [0.2, 0.3, 0.4])
    assert np.array_equal(tree["line"].Q, expected(TAUS))
    assert np.array_equal(open_results(out)["line"].Q, expected([0.2, 0.3, 0.4]))
    assert verify(out).code == 0


@pytest.mark.parametrize("manifest", [True, False])
def test_a_store_that_was_copied_alone_opens(out: Path, manifest: bool) -> None:
    published(out)
    points = verify(out).points
    shutil.rmtree(work_path(out))
    if not manifest:
        manifest_path(out).unlink()
    verdict = verify(out)
    assert (verdict.code, verdict.points) == (0, points)
    assert verdict.files > points > 0
    assert np.array_equal(open_results(out)["line"].Q, expected(TAUS))


def test_the_next_run_removes_what_a_killed_publication_left(out: Path, tmp_path: Path) -> None:
    study = published(out)
    yaml = tmp_path / "toy.yaml"
    yaml.write_text(study.model_dump_json())
    shutil.copytree(out, partial_path(out))
    assert call(["run", str(yaml), "--out", str(out), "--quiet"]) == 0
    assert not partial_path(out).exists()


def test_a_deleted_chunk_is_refused_where_plain_xarray_reads_nan(out: Path) -> None:
    published(out)
    (out / CHUNK).unlink()
    assert plain(out).isnull().all()
    with pytest.raises(DamageError, match=r"toy\.zarr/line/Q/c/0/0/0 is missing \(points of line"):
        open_results(out)
    assert verify(out).code == 3
    assert call(["query", str(out)]) == 3


def test_repair_writes_nothing_that_is_read(out: Path) -> None:
    study = published(out)
    before, tree = values(out), open_results(out)
    right = open_results(out)["line"].twice.load()
    with (out / "line/status/c/0/0").open("rb") as whole:
        status = whole.read()
        flip(out / CHUNK)
        repair(out)
        whole.seek(0)
        # The points are pending now, in files of their own.
        assert whole.read() == status
    assert np.array_equal(tree["line"].twice, right)
    verdict = verify(out)
    assert verdict.incomplete[0] == f"6 points of {out} are pending"
    assert open_results(out)["line"].Q.isnull().all()
    publish(study, out)
    assert values(out) == before
    assert verify(out).code == 0


class Cut(Exception):
    """The moment at which something is cut short."""


def cut_short(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], after: int) -> bool:
    """Do some work and end it before one of its renames; whether it came so far."""
    left = [after]

    def counted(rename: Callable[..., Any]) -> Callable[..., Any]:
        def function(*arguments: Any, **how: Any) -> Any:
            if not left[0]:
                raise Cut
            left[0] -= 1
            return rename(*arguments, **how)

        return function

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "replace"), (os, "rename")):
            patch.setattr(owner, name, counted(getattr(owner, name)))
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
    for moment in range(0, 99, 2):
        shutil.copytree(whole, out.parent)
        cut = cut_short(monkeypatch, lambda: repair(out), moment)
        repair(out)
        assert verify(out).code == 1
        run(study, out, progress=False)
        publish(study, out)
        assert verify(out).code == 0
        assert values(out) == before
        shutil.rmtree(out.parent)
        if not cut:
            break
    assert 5 < moment < 96
