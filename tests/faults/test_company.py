"""Two runs of one store at once, shards beside each other, and publishing during a run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hdica import open_results
from hdica.errors import HdicaError
from hdica.sweep.files.paths import work_path
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.publish import publish
from hdica.sweep.run import working_lock
from hdica.sweep.run.company import MARK, sweep_up, taking_part
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import study_from
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
    with taking_part(out) as first, taking_part(out) as second, taking_part(out) as third:
        assert (first, second, third) == (True, False, False)
    with taking_part(bench.out) as later:
        assert later


def test_a_link_is_no_mark(bench: Bench) -> None:
    work = work_path(bench.out)
    work.mkdir(parents=True)
    (work / MARK).symlink_to(bench.folder / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), taking_part(bench.out):
        pass
    assert not (bench.folder / "elsewhere").exists()


def test_what_killed_writers_left_goes_with_the_next_run(bench: Bench) -> None:
    study = study_from(content(sleep=0.0))
    run(study, bench.out, progress=False)
    work = work_path(bench.out)
    kept = sorted(work.rglob("*"))
    chunks = [path for path in kept if path.is_file() and path.parent.name == "c"]
    left = [path.with_name(f"{path.name}.0123.partial") for path in chunks]
    left.append(bench.out.parent / f".{bench.out.stem}.manifest.json.17.partial")
    with taking_part(bench.out):
        for path in left:
            path.write_bytes(b"torn")
        publish(study, bench.out)
        assert verify(bench.out).code == 0
        run(study, bench.out, progress=False)
        assert left[0].exists(), "somebody else may be writing it"
    for path in left:
        path.write_bytes(b"torn")
    run(study, bench.out, progress=False)
    assert sorted(work.rglob("*")) == kept
    assert not any(path.exists() for path in left)
    assert sweep_up(work) == 0


def test_what_killed_workers_left_goes_with_the_end_of_their_run(bench: Bench) -> None:
    torn = work_path(bench.out) / ".5.0123.partial"
    with taking_part(bench.out):
        torn.write_bytes(b"torn")
    assert not torn.exists()
    with taking_part(bench.out) as first:
        with taking_part(bench.out) as second:
            torn.write_bytes(b"torn")
        assert (first, second) == (True, False)
        assert torn.exists(), "the first may be writing it"
    assert not torn.exists()


def test_a_lock_that_is_never_given_back_is_one_sentence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_lock, "LOCK_SECONDS", 0.3)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with working_lock.locked(bench.out):
            os.write(write, b"held")
            signal.pause()
        os._exit(0)
    try:
        assert os.read(read, 4) == b"held"
        with pytest.raises(HdicaError, match=r"toy\.work has been held for 0 s by .*pid \d+ on"):
            run(study_from(bench.study), bench.out, progress=False)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
    with working_lock.locked(bench.out) as work:
        assert work == Path(work_path(bench.out))
