"""Two runs of one store at once, shards beside each other, and publishing during a run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hdica import open_results
from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.store import paths as lock
from hdica.store.files import opened
from hdica.store.paths import RUNNING, locked, running, work_path
from hdica.store.publish import publish
from hdica.study.study import study_from
from tests.faults.bench import LOCAL, SERIAL, Bench, content

pytestmark = pytest.mark.faults


@pytest.mark.deep
def test_two_runs_at_once_share_the_work(bench: Bench) -> None:
    runs = [bench.start(SERIAL), bench.start(SERIAL)]
    for one in runs:
        assert one.ended() == 0, one.text
    bench.whole()
    # Each leaves out what the other has finished; only where they meet is anything done twice.
    assert len(bench.calls) < 1.6 * 91


@pytest.mark.deep
def test_two_runs_on_processes_and_a_shard_change_no_bit(bench: Bench) -> None:
    runs = [bench.start(LOCAL), bench.start(LOCAL), bench.start(SERIAL, "--shard", "1/3")]
    for one in runs:
        assert one.ended() == 0, one.text
        one.gone()
    bench.whole()


@pytest.mark.deep
def test_publishing_during_a_run_shows_what_is_there(bench: Bench) -> None:
    study = study_from(bench.study)
    going = bench.start(SERIAL)
    going.until(lambda: bench.done() > 0, "the first block")
    seen = []
    while going.process.poll() is None:
        publish(study, bench.out)
        seen.append(int((open_results(bench.out)["walk"].status == 1).sum()))
    assert going.ended() == 0, going.text
    assert seen == sorted(seen)
    assert 0 < seen[0] < 84
    publish(study, bench.out)
    bench.whole()


def test_a_run_knows_whether_it_is_alone(bench: Bench) -> None:
    out = bench.out
    with running(out) as first, running(out) as second, running(out) as third:
        assert (first, second, third) == (True, False, False)
    with running(bench.out) as later:
        assert later


def test_a_link_is_no_mark(bench: Bench) -> None:
    work = work_path(bench.out)
    work.mkdir(parents=True)
    (work / RUNNING).symlink_to(bench.folder / "elsewhere")
    with pytest.raises(HdicaError, match="is a link"), running(bench.out):
        pass
    assert not (bench.folder / "elsewhere").exists()


def test_what_killed_writers_left_goes_with_the_next_run_and_nothing_that_is_written(
    bench: Bench,
) -> None:
    study = study_from(content(sleep=0.0))
    run(study, bench.out, progress=False)
    work = work_path(bench.out)
    before = sorted(work.rglob("*"))
    folders = [bench.out.parent, work, *(path for path in before if path.is_dir())]
    left = [folder / ".hdica-17-0123abcd.partial" for folder in folders]
    for path in left:
        path.write_bytes(b"torn")
    with opened(folders[-1]) as folder, folder.beside("x", b"content") as partial:
        run(study, bench.out, progress=False)
        assert (folders[-1] / partial).exists(), "somebody is writing it"
    assert sorted(work.rglob("*")) == before
    assert not any(path.exists() for path in left)


def test_a_lock_that_is_never_given_back_is_one_sentence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOCK_SECONDS", 0.3)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with locked(bench.out):
            os.write(write, b"held")
            signal.pause()
        os._exit(0)
    try:
        assert os.read(read, 4) == b"held"
        with pytest.raises(HdicaError, match=r"toy\.work has been locked for 0 s by .*pid \d+ on"):
            run(study_from(bench.study), bench.out, progress=False)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
    with locked(bench.out) as work:
        assert work == Path(work_path(bench.out))
