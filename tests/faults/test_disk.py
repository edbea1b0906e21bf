"""A full disk, a folder that may not be written, and points that a machine cannot compute."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import pytest

from hdica import open_results
from hdica.errors import Incomplete, Unwritable
from hdica.process import compile_cache
from hdica.report.place import DATA, PAGE, check, place
from hdica.run.runner import run
from hdica.store.paths import check_file, write_file
from hdica.store.publish import publish
from hdica.store.results import status
from hdica.store.verify import verify
from hdica.study.study import study_from
from tests.faults import trouble
from tests.faults.bench import LOCAL, SERIAL, Bench, content

pytestmark = pytest.mark.faults

LARGE = {"times": {"stop": 2, "num": 1001}, "save": {}}
"""8 kB a point, so that 91 points are more than a small disk holds."""


@dataclass(frozen=True)
class Disk:
    """A file system in memory, of a size that changes."""

    folder: Path

    def mount(self, *options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)

    def set(self, *options: str) -> None:
        self.mount("remount", *options)

    @property
    def used(self) -> int:
        return shutil.disk_usage(self.folder).used


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk: run this test as root on Linux")
    folder = tmp_path / "results"
    folder.mkdir()
    found = Disk(folder)
    try:
        found.mount("size=600k")
    except subprocess.CalledProcessError as exc:
        pytest.skip(f"no tmpfs can be mounted here, it takes CAP_SYS_ADMIN: {exc.stderr!r}")
    yield found
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.deep
@pytest.mark.parametrize("cluster", [SERIAL, LOCAL], ids=["serial", "local"])
def test_a_full_disk_ends_a_run_with_one_sentence(
    disk: Disk, bench: Bench, cluster: dict[str, Any]
) -> None:
    bench.study = content(sleep=0.005, **LARGE)
    full = bench.start(cluster)
    assert full.ended() == 1, full.text
    assert "cannot be written: no space left on device" in full.sentence
    assert "points of toy are pending, and a rerun computes them" in full.sentence
    assert full.text.count("no space left") == 1
    found = status(bench.out)
    assert 0 < found.total("done") < 91
    assert found.total("failed") == 0
    bench.undamaged()
    disk.set("size=20m")
    bench.finish()


@pytest.mark.deep
def test_a_full_disk_leaves_what_was_published_before(disk: Disk, bench: Bench) -> None:
    disk.set("size=20m")
    methods = {"walk": {"n": [10], "seeds": 4}, "line": {}}
    small = study_from(content(sleep=0.0, **LARGE, methods=methods))
    run(small, bench.out, progress=False)
    publish(small, bench.out)
    bench.study = content(sleep=0.0, **LARGE)
    study = study_from(bench.study)
    run(study, bench.out, progress=False)
    disk.set(f"size={disk.used + 100_000}")
    with pytest.raises(Unwritable, match=r"toy\.zarr cannot be written: no space left on device; "):
        publish(study, bench.out)
    assert open_results(bench.out)["walk"].sizes["seed"] == 4
    verdict = verify(bench.out)
    assert verdict.code == 1, verdict.damaged
    disk.set("size=20m")
    publish(study, bench.out)
    bench.whole()


@pytest.mark.deep
def test_a_folder_that_may_not_be_written_is_one_sentence(disk: Disk, bench: Bench) -> None:
    bench.study = content(sleep=0.0)
    disk.set("ro", "size=20m")
    refused = bench.start(SERIAL)
    assert refused.ended() == 1
    assert "cannot be written: read-only file system" in refused.sentence
    assert "\n" not in refused.text.strip()
    assert not list(disk.folder.iterdir())
    disk.set("rw")
    bench.finish()
    disk.set("ro")
    # What is whole and published can be read all the same.
    bench.whole()


def test_a_full_disk_leaves_the_report_and_the_answer_of_before(disk: Disk) -> None:
    out, answer = disk.folder / "toy", disk.folder / "q.csv"
    figures = {"bias.svg": bytes(40_000), "flow.svg": bytes(40_000)}
    place(out, bytes(40_000), bytes(40_000), figures)
    write_file(answer, bytes(40_000))
    full = f"size={disk.used + 20_000}"
    disk.set(full)
    room = r" cannot be written: no space left on device"
    with pytest.raises(Unwritable, match=room + "; what was there before is kept"):
        place(out, bytes(9_000), bytes(9_000), {"bias.svg": bytes(9_000), "flow.svg": b""})
    with pytest.raises(Unwritable, match=r"q\.csv" + room):
        write_file(answer, bytes(30_000))
    disk.set("ro", full)
    with pytest.raises(Unwritable, match=r"toy cannot be written: read-only file system"):
        check(out)
    with pytest.raises(Unwritable, match=r"q\.csv cannot be written: read-only file system"):
        check_file(answer)
    files = [path for path in disk.folder.rglob("*") if path.is_file()]
    assert sorted(p.name for p in files) == sorted([PAGE, DATA, "bias.svg", "flow.svg", "q.csv"])
    assert {path.stat().st_size for path in files} == {40_000}
    disk.set("rw", "size=20m")
    place(out, b"page", b"data", {})
    assert (out / PAGE).read_bytes() == b"page"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("fill", Unwritable, "kernel.nbi cannot be written: no space left on device"),
        ("starve", None, "out of memory (MemoryError: Unable to allocate 3 TiB)"),
        ("lose", None, "Too many open files (raise the limit: ulimit -n)"),
        ("cut", None, ".pyc is damaged: remove it"),
        ("lack", None, "filters need the package not_installed_here"),
        ("crowd", None, "can't start new thread"),
        ("sink", None, ""),
    ],
)
def test_a_point_that_this_machine_cannot_compute_is_pending_and_not_failed(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    error: type[Incomplete] | None,
    said: str,
) -> None:
    bench.study = content(sleep=0.0)
    monkeypatch.setenv(trouble.VARIABLE, str(bench.trouble))
    bench.trouble.write_text(kind)
    study = study_from(bench.study)
    how = {"block": 7}
    if error is None:
        summary = run(study, bench.out, progress=False, cluster=SERIAL, **how)
        assert summary.pending == 28
        assert said in " ".join(summary.lost)
    else:
        with pytest.raises(error, match="and a rerun computes them") as raised:
            run(study, bench.out, progress=False, cluster=SERIAL, **how)
        assert said in str(raised.value)
    found = status(bench.out)
    assert (found.total("failed"), found.total("done") > 0) == (0, True)
    assert found.total("pending") >= 28
    bench.trouble.unlink()
    bench.finish()


def test_a_full_disk_costs_a_compilation(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.set("size=4k")
    compile_cache.set_cache_folder()
    compile_cache._warn_once.cache_clear()
    monkeypatch.setenv(compile_cache.PLACE, str(disk.folder))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(disk.folder))
    with pytest.warns(match=r"no compiled function can be written to .*results"):
        assert numba.njit("float64(float64)", cache=True)(lambda x: x + 1.5)(1.0) == 2.5
