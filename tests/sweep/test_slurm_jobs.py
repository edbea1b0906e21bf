"""Workers in jobs, on commands that look like Slurm's; tests/cluster has the real ones."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.sweep.outcome.publish import publish
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import Study, study_from
from hdica.sweep.workers import jobs
from hdica.sweep.workers.cluster import cluster_settings, connect, ready
from hdica.sweep.workers.settings import ClusterSettings
from hdica.sweep.workers.slurm import SlurmSettings, job_options
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.fake_slurm import FakeSlurm
from tests.sweep.outside import toy_environment, wait_until

LIBRARY = pytest.mark.skipif(
    importlib.util.find_spec("dask_jobqueue") is None,
    reason="needs the library dask-jobqueue: pip install 'hdica[slurm]'",
)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlurm]:
    fake = FakeSlurm(tmp_path / "slurm")
    fake.install()
    for name, value in {**toy_environment(), **fake.environment()}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(jobs, "LOOK", 0.5)
    yield fake
    fake.end()
    assert not fake.running()


def settings(tmp_path: Path, insecure: bool = True, **changes: Any) -> ClusterSettings:
    given = {"interface": "lo", "shared_folder": str(tmp_path / "shared"), "startup": 60, **changes}
    return cluster_settings({"mode": "slurm", "insecure": insecure, "slurm": given})


def slow_study() -> Study:
    """Some seconds of work for two workers."""
    parameters = {"source": "laplace", "constants": {"sleep": 0.05}}
    return study_from(toy.study(parameters=parameters))


def serial(tmp_path: Path, study: Study) -> dict[str, bytes]:
    out = tmp_path / "serial.zarr"
    run(study, out, cluster={"mode": "serial"}, progress=False, block=4)
    publish(study, out)
    return values(out)


def test_without_the_library_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue.slurm", None)
    study = study_from(toy.study())
    with pytest.raises(HdicaError) as caught:
        run(study, tmp_path / "results/toy.zarr", cluster={"mode": "slurm"}, progress=False)
    assert str(caught.value) == (
        "mode = 'slurm' needs the library dask-jobqueue (pip install 'hdica[slurm]')"
    )
    assert not (tmp_path / "results").exists()


def test_a_folder_that_cannot_stand_in_a_script_is_refused(tmp_path: Path) -> None:
    from hdica.sweep.workers.slurm import shared_folder

    with pytest.raises(HdicaError, match=r"slurm.shared_folder = '.*a b' is not allowed"):
        shared_folder(SlurmSettings(shared_folder=str(tmp_path / "a b")))
    (tmp_path / "file").touch()
    with pytest.raises(HdicaError, match=r"cannot be made \(File exists\)"):
        shared_folder(SlurmSettings(shared_folder=str(tmp_path / "file")))


@LIBRARY
def test_without_the_commands_one_sentence_says_where_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HdicaError, match="needs the program sbatch"):
        ready(settings(tmp_path))


@LIBRARY
def test_the_library_does_not_take_the_signals_that_stop_a_run() -> None:
    code = (
        "import signal; from hdica.sweep.workers.jobs import jobqueue; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "assert jobqueue().SLURMCluster; "
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@LIBRARY
def test_a_job_says_what_was_asked_for(tmp_path: Path) -> None:
    how = SlurmSettings(
        queue="long", account="grant7", cores=8, processes=4, memory="16GiB", walltime="1-00:00:00",
        directives=["--qos=high"], prologue=["module load python", "export OMP_NUM_THREADS=64"],
    )  # fmt: skip
    options = job_options(how, tmp_path, "hdica-1234")
    script = (
        jobs.jobqueue().SLURMJob("tls://h:1", name="j", config_name="slurm", **options).job_script()
    )
    lines = script.splitlines()
    for line in (
        "#SBATCH -J hdica-1234", "#SBATCH -p long", "#SBATCH -A grant7", "#SBATCH --mem=16G",
        "#SBATCH --cpus-per-task=8", "#SBATCH -t 1-00:00:00", "#SBATCH --qos=high",
        "module load python",
    ):  # fmt: skip
        assert line in lines
    # Whatever the site's lines set, threads are pinned after it and before the workers.
    pinned = [number for number, line in enumerate(lines) if "OMP_NUM_THREADS=" in line]
    (started,) = (number for number, line in enumerate(lines) if "hdica.sweep.workers.node" in line)
    assert lines[pinned[-1]] == (
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 "
        "NUMEXPR_NUM_THREADS=1 NUMBA_NUM_THREADS=1"
    )
    assert lines.index("export OMP_NUM_THREADS=64") < pinned[-1] < started
    command = lines[started]
    assert "--nthreads 1 " in command
    assert "--nworkers 4 " in command
    assert "--memory-limit 4.00GiB" in command
    assert "--lifetime 85275s --lifetime-stagger 225s" in command
    assert "--worker-class hdica.sweep.workers.draining.DrainingWorker" in command


@pytest.mark.deep
@LIBRARY
def test_a_study_in_jobs_has_the_bits_of_one_process_and_leaves_no_key(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    pytest.importorskip("cryptography", reason="needs the library cryptography")
    study, out = slow_study(), tmp_path / "toy.zarr"
    how = settings(tmp_path, insecure=False, cores=2, maximum=3)
    assert ready(how).workers == 6
    keys: list[str] = []

    def watch() -> None:
        wait_until(slurm.running, "a job")
        keys.extend(path.read_text() for path in tmp_path.glob("shared/tls-*/key.pem"))

    watching = threading.Thread(target=watch)
    watching.start()
    summary = run(study, out, cluster=how, progress=False, block=8)
    watching.join()
    assert (summary.computed, summary.pending, summary.lost) == (79, 0, [])
    publish(study, out)
    assert values(out) == serial(tmp_path, study)
    wait_until(lambda: not slurm.running(), "the end of all jobs", 20)
    # Eleven blocks for jobs of two workers, three jobs at most.
    assert len(slurm.scripts()) == 3
    assert all("--protocol tls:// " in script for script in slurm.scripts())
    # Certificates were there for the run alone.
    assert keys
    assert not list(tmp_path.glob("shared/tls-*"))
    texts = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(keys[0].splitlines()[1].encode() in path.read_bytes() for path in texts)


@LIBRARY
@pytest.mark.deep
def test_jobs_that_end_are_replaced(slurm: FakeSlurm, tmp_path: Path) -> None:
    study, out = slow_study(), tmp_path / "toy.zarr"
    how = settings(tmp_path, cores=2, maximum=1)

    def end_the_first() -> None:
        blocks = Path(str(out).replace(".zarr", ".work"))
        wait_until(lambda: len(list(blocks.glob("*/status/c/*"))) > 1, "the first blocks")
        slurm.kill(slurm.running()[0])

    killer = threading.Thread(target=end_the_first)
    killer.start()
    summary = run(study, out, cluster=how, progress=False, block=4)
    killer.join()
    assert (summary.computed, summary.pending, summary.lost) == (79, 0, [])
    assert len(slurm.scripts()) == 2
    publish(study, out)
    assert values(out) == serial(tmp_path, study)


@LIBRARY
def test_what_slurm_says_against_a_job_is_said_before_anything_is_written(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    slurm.refuse("nope")
    out = tmp_path / "results/toy.zarr"
    with pytest.raises(HdicaError) as caught:
        run(study_from(toy.study()), out, cluster=settings(tmp_path), progress=False)
    assert str(caught.value) == (
        "Slurm refuses the jobs of cluster.slurm (invalid partition specified: nope)"
    )
    assert not out.parent.exists()


@LIBRARY
def test_jobs_that_slurm_does_not_take_later_are_one_sentence_too(
    slurm: FakeSlurm, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    how = ready(settings(tmp_path))
    slurm.refuse("gone")
    with (
        pytest.raises(HdicaError, match=r"Slurm refuses the jobs .*invalid partition .*: gone\)"),
        connect(how, 4),
    ):
        raise AssertionError("there is no worker")
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.deep
@LIBRARY
def test_a_queue_that_is_full_is_waited_for_only_so_long(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.fill()
    how = ready(settings(tmp_path, queue="long", startup=2))
    with pytest.raises(HdicaError) as caught, connect(how, 4):
        raise AssertionError("there is no worker")
    said = str(caught.value)
    assert "no worker has come from Slurm's queue 'long' in slurm.startup = 2 s" in said
    assert "job 100 is PENDING: Resources; squeue --name=hdica-" in said
    assert str(tmp_path / "shared") in said
    assert (slurm.folder / "jobs/100/cancelled").exists()


@pytest.mark.deep
@LIBRARY
def test_neither_the_scheduler_nor_a_job_has_web_pages(slurm: FakeSlurm, tmp_path: Path) -> None:
    with connect(ready(settings(tmp_path)), 1) as client:
        about = client.scheduler_info()
        assert [about["services"], *(w["services"] for w in about["workers"].values())] == [{}] * 2


@LIBRARY
def test_jobs_that_end_at_once_are_not_submitted_for_ever(slurm: FakeSlurm, tmp_path: Path) -> None:
    how = ready(settings(tmp_path, prologue=["exit 1"]))
    with (
        pytest.raises(HdicaError, match=r"end before a worker has come \(what they said"),
        connect(how, 4),
    ):
        raise AssertionError("there is no worker")
    assert jobs.HOPELESS <= len(slurm.scripts()) <= jobs.HOPELESS + 2


class Steady:
    """A stand-in for a cluster of dask-jobqueue and its scheduler."""

    def __init__(self, names: list[str]) -> None:
        self.workers = {name: SimpleNamespace(job_id=name, status=None) for name in names}
        self.worker_spec: dict[str, Any] = dict.fromkeys(names)
        self.scheduler = SimpleNamespace(workers={}, queued=[], unrunnable={}, transition_counter=0)

    def there(self, **blocks: int) -> None:
        """Workers, with so many blocks each."""
        self.scheduler.workers = {
            name: SimpleNamespace(name=name.replace("_", "-"), nthreads=1, processing=[0] * count)
            for name, count in blocks.items()
        }

    def __await__(self) -> Iterator[None]:
        for name in set(self.workers) - set(self.worker_spec):
            del self.workers[name]
        yield from ()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now[0])

    def forward(seconds: float) -> None:
        now[0] += seconds

    return forward


def look(kept: jobs.Jobs, cluster: Steady, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that are left after a look at a queue in which all of them are."""

    async def queued(self: jobs.Jobs) -> set[str]:
        return set(cluster.workers)

    monkeypatch.setattr(jobs.Jobs, "_queued", queued)
    asyncio.run(kept.look())
    return sorted(cluster.worker_spec)


def test_jobs_without_work_are_given_back_and_none_with_a_busy_worker(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Steady(["j-0", "j-1", "j-2", "j-3"])
    kept = jobs.Jobs(cluster, "hdica", 2, 1, 4)
    # j-3 still waits in the queue; j-1 has one idle and one busy worker.
    cluster.there(j_0_0=4, j_0_1=4, j_1_0=0, j_1_1=1, j_2_0=0, j_2_1=0)
    assert len(look(kept, cluster, monkeypatch)) == 4
    cluster.there(j_0_0=1, j_0_1=1, j_1_0=0, j_1_1=1, j_2_0=0, j_2_1=0)
    assert len(look(kept, cluster, monkeypatch)) == 4
    clock(2 * jobs.IDLE)
    # No block has ended since: the driver may not know the workers yet.
    assert len(look(kept, cluster, monkeypatch)) == 4
    cluster.scheduler.transition_counter = 7
    assert look(kept, cluster, monkeypatch) == ["j-0", "j-1"]
    # As soon as there is work for all, the others are wanted again.
    cluster.there(j_0_0=4, j_0_1=4, j_1_0=4, j_1_1=4)
    assert kept._target() == 4


def test_attempts_become_rare_where_jobs_end_at_once(
    clock: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Steady([])
    kept = jobs.Jobs(cluster, "hdica", 1, 1, 1)
    asked: list[float] = []

    async def submit(self: jobs.Jobs, count: int) -> None:
        assert count == 1
        asked.append(jobs.time.monotonic())
        cluster.workers["j"] = Steady(["j"]).workers["j"]
        cluster.worker_spec["j"] = None

    async def nothing(self: jobs.Jobs) -> set[str]:
        return set()

    monkeypatch.setattr(jobs.Jobs, "_submit", submit)
    monkeypatch.setattr(jobs.Jobs, "_queued", nothing)
    with caplog.at_level(logging.WARNING):
        for _ in range(400):
            asyncio.run(kept.look())
            clock(jobs.LOOK)
    pauses = [round(later - sooner) for sooner, later in pairwise(asked)]
    assert pauses[0] == jobs.LOOK
    assert max(pauses) <= jobs.SLOWEST + jobs.LOOK
    assert pauses == sorted(pauses)
    assert kept.hopeless
    assert "jobs of hdica end before a worker has come" in caplog.text
