"""Workers in jobs, on commands that look like Slurm's; tests/cluster has the real ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.run import slurm as jobs
from hdica.run.cluster import connect, ready
from hdica.run.runner import run
from hdica.run.settings import ClusterSettings, SlurmSettings, cluster_settings
from hdica.run.slurm import job_script, shared_folder
from hdica.store.publish import publish
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.fake_slurm import FakeSlurm
from tests.sweep.outside import toy_environment, wait_until


def run_while_the_first_job_ends(
    slurm: FakeSlurm, study: Study, out: Path, how: ClusterSettings
) -> None:
    """All points are computed though the first job is killed once it has stored blocks."""

    def end_the_first() -> None:
        blocks = Path(str(out).replace(".zarr", ".work"))
        wait_until(lambda: len(list(blocks.glob("*/*.block"))) > 1, "the first blocks")
        slurm.kill(slurm.running()[0])

    killer = threading.Thread(target=end_the_first)
    killer.start()
    summary = run(study, out, cluster=how, progress=False, block=4)
    killer.join()
    assert (summary.computed, summary.pending, summary.lost) == (79, 0, [])


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


def test_a_folder_that_cannot_stand_in_a_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HdicaError, match=r"slurm.shared_folder = '.*a b' is not allowed"):
        shared_folder(SlurmSettings(shared_folder=str(tmp_path / "a b")))
    (tmp_path / "file").touch()
    with pytest.raises(HdicaError, match=r"cannot be made \(File exists\)"):
        shared_folder(SlurmSettings(shared_folder=str(tmp_path / "file")))


def test_without_the_commands_one_sentence_says_where_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HdicaError, match="needs the program sbatch"):
        ready(settings(tmp_path))


def test_a_job_says_what_was_asked_for(tmp_path: Path) -> None:
    how = SlurmSettings(
        queue="long", account="grant7", cores=8, processes=4, memory="16GiB", walltime="1-00:00:00",
        directives=["--qos=high"], prologue=["module load python", "export OMP_NUM_THREADS=64"],
    )  # fmt: skip
    lines = job_script(how, tmp_path, "hdica-1234", "tls://h:1", None).splitlines()
    assert lines[0].startswith("#!")
    directives = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    assert directives == [
        "-J hdica-1234", f"-o {tmp_path}/hdica-1234-%j.log", "-p long", "-A grant7", "-n 1",
        "--cpus-per-task=8", "--mem=16384M", "-t 1-00:00:00", "--qos=high",
    ]  # fmt: skip
    *prologue, command = lines[1 + len(directives) :]
    assert prologue == ["module load python", "export OMP_NUM_THREADS=64"]
    assert " -P -m hdica.run.node worker tls://h:1 " in command
    assert "--nthreads 1 " in command
    assert "--nworkers 4 " in command
    assert f"--memory-limit {4 * 2**30}B" in command
    assert "--lifetime 85275s --lifetime-stagger 225s" in command
    assert "--worker-class hdica.run.node.DrainingWorker" in command
    assert command.endswith('--name "$SLURM_JOB_ID"')


def directives(**changes: Any) -> set[str]:
    """What a job asks for beyond what it asks for by default."""

    def lines(how: SlurmSettings) -> set[str]:
        script = job_script(how, Path("/logs"), "hdica-1", "tls://h:1", None, tasks=20)
        return {line.removeprefix("#SBATCH ") for line in script.splitlines() if "#SBATCH" in line}

    return lines(SlurmSettings(**changes)) - lines(SlurmSettings())


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"exclude": "node[1-3],node7"}, {"-x node[1-3],node7"}),
        ({"requeue": False}, {"--no-requeue"}),
        ({"requeue": True}, {"--requeue"}),
        ({"account": 1234, "queue": 12}, {"-A 1234", "-p 12"}),
        ({"array": True}, {"--array=0-19", "-o /logs/hdica-1-%A_%a.log"}),
        ({"array": True, "at_once": 5}, {"--array=0-19%5", "-o /logs/hdica-1-%A_%a.log"}),
        ({"retry": {}}, set()),
    ],
)
def test_every_setting_is_a_line_for_slurm(changes: dict[str, Any], asked: set[str]) -> None:
    assert directives(**changes) == asked


def test_workers_of_an_array_are_called_as_slurm_calls_their_task() -> None:
    script = job_script(SlurmSettings(array=True), Path("/logs"), "hdica-1", "tls://h:1", None, 2)
    assert script.endswith('--name "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"\n')


@pytest.mark.deep
def test_an_array_of_jobs_has_the_bits_of_one_process(slurm: FakeSlurm, tmp_path: Path) -> None:
    study, out = slow_study(), tmp_path / "toy.zarr"
    how = settings(tmp_path, cores=2, maximum=3, array=True, requeue=False)
    summary = run(study, out, cluster=how, progress=False, block=8)
    assert (summary.computed, summary.pending, summary.lost) == (79, 0, [])
    publish(study, out)
    assert values(out) == serial(tmp_path, study)
    wait_until(lambda: not slurm.running(), "the end of all jobs", 20)
    # One submission.
    assert sorted(path.parent.name for path in slurm.folder.glob("jobs/*/script")) == [
        "100_0", "100_1", "100_2",
    ]  # fmt: skip


def greedy_study(megabytes: int) -> Study:
    """Nine points, of which three take much memory."""
    parameters = {"constants": {"megabytes": megabytes}}
    grid = {"tau": [0.1, 0.2, 0.3]}
    methods = {"walk": {"n": 10, "seeds": 3}}
    return study_from(toy.study(parameters=parameters, grid=grid, methods=methods))


@pytest.mark.deep
def test_what_lacked_memory_is_computed_again_in_larger_jobs(
    slurm: FakeSlurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = greedy_study(600), tmp_path / "toy.zarr"
    how = settings(tmp_path, memory="400MiB", retry={"memory": 1.5, "most": 2})
    summary = run(study, out, cluster=how, progress=None, block=2)
    assert (summary.computed, summary.pending, summary.lost) == (9, 0, [])
    asked = [line for script in slurm.scripts() for line in script.splitlines() if "--mem=" in line]
    assert asked == ["#SBATCH --mem=400M", "#SBATCH --mem=600M", "#SBATCH --mem=900M"]
    assert "3 points lacked memory or time: again, in jobs of 600MiB for" in capsys.readouterr().err
    publish(study, out)
    assert values(out) == serial(tmp_path, study)


@pytest.mark.deep
def test_what_lacks_memory_to_the_end_stays_pending(slurm: FakeSlurm, tmp_path: Path) -> None:
    study, out = greedy_study(600), tmp_path / "toy.zarr"
    how = settings(tmp_path, memory="400MiB", retry={"memory": 1.25, "most": 1})
    summary = run(study, out, cluster=how, progress=False)
    assert (summary.computed, summary.pending) == (6, 3)
    assert "beyond its memory" in summary.lost[0]
    assert len(slurm.scripts()) == 2


@pytest.mark.deep
def test_a_job_that_its_walltime_ends_is_followed_by_a_longer_one(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    study, out = slow_study(), tmp_path / "toy.zarr"
    how = settings(tmp_path, cores=2, maximum=1, retry={"walltime": 3, "memory": 2})
    run_while_the_first_job_ends(slurm, study, out, how)
    first, second = slurm.scripts()
    assert "#SBATCH -t 01:00:00\n" in first
    assert "#SBATCH -t 0-03:00:00\n" in second
    assert "--mem=4096M" in first
    assert "--mem=4096M" in second


@pytest.mark.deep
def test_a_study_in_jobs_has_the_bits_of_one_process_and_leaves_no_key(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
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


@pytest.mark.deep
def test_jobs_that_end_are_replaced(slurm: FakeSlurm, tmp_path: Path) -> None:
    study, out = slow_study(), tmp_path / "toy.zarr"
    how = settings(tmp_path, cores=2, maximum=1)
    run_while_the_first_job_ends(slurm, study, out, how)
    assert len(slurm.scripts()) == 2
    publish(study, out)
    assert values(out) == serial(tmp_path, study)


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
def test_neither_the_scheduler_nor_a_job_has_web_pages(slurm: FakeSlurm, tmp_path: Path) -> None:
    # Whatever a module of the site sets, workers have one thread.
    how = ready(settings(tmp_path, prologue=["export OMP_NUM_THREADS=64"]))
    with connect(how, 1) as client:
        about = client.scheduler_info()
        assert [about["services"], *(w["services"] for w in about["workers"].values())] == [{}] * 2
        threads = client.run(lambda: __import__("os").environ["OMP_NUM_THREADS"])
        assert list(threads.values()) == ["1"]


def test_jobs_that_end_at_once_are_not_submitted_for_ever(slurm: FakeSlurm, tmp_path: Path) -> None:
    how = ready(settings(tmp_path, prologue=["exit 1"]))
    with (
        pytest.raises(HdicaError, match=r"end before a worker has come \(their messages"),
        connect(how, 4),
    ):
        raise AssertionError("there is no worker")
    assert jobs.HOPELESS <= len(slurm.scripts()) <= jobs.HOPELESS + 2


def no_script(settings: SlurmSettings, tasks: int) -> str:
    return ""


class Steady:
    """A stand-in for Dask's scheduler."""

    def __init__(self) -> None:
        self.workers: dict[str, Any] = {}
        self.queued: list[Any] = []
        self.unrunnable: dict[str, Any] = {}
        self.transition_counter = 0

    def there(self, **blocks: int) -> None:
        """Workers, with so many blocks each; ``j1_0`` is the first of the job 1."""
        self.workers = {
            name: SimpleNamespace(name=name[1:].replace("_", "-"), nthreads=1, processing=[0] * b)
            for name, b in blocks.items()
        }


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now[0])

    def forward(seconds: float) -> None:
        now[0] += seconds

    return forward


def test_jobs_without_work_are_cancelled_and_none_with_a_busy_worker(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, cancelled = {"1", "2", "3", "4"}, list[str]()
    monkeypatch.setattr(jobs.Jobs, "_states", lambda self: dict.fromkeys(numbers, "RUNNING"))
    monkeypatch.setattr(jobs, "_ask", lambda *command: cancelled.extend(command))
    scheduler, how = Steady(), SlurmSettings(cores=2, maximum=4)
    made = jobs.Jobs(scheduler, "hdica", how, no_script, Path("script"), 4)
    made.there = dict.fromkeys(numbers, how)
    # The fourth still waits in the queue; the second has one idle and one busy worker.
    scheduler.there(j1_0=4, j1_1=4, j2_0=0, j2_1=1, j3_0=0, j3_1=0)
    made.look()
    scheduler.there(j1_0=1, j1_1=1, j2_0=0, j2_1=1, j3_0=0, j3_1=0)
    made.look()
    clock(2 * jobs.IDLE)
    # No block has ended since: the driver may not know the workers yet.
    made.look()
    assert (set(made.there), cancelled) == (numbers, [])
    scheduler.transition_counter = 7
    made.look()
    assert (set(made.there), cancelled) == ({"1", "2"}, ["scancel", "4", "3"])
    # As soon as there is work for all, the others are wanted again.
    scheduler.there(j1_0=4, j1_1=4, j2_0=4, j2_1=4)
    assert made._target() == 4


def test_attempts_become_rare_where_jobs_end_at_once(
    clock: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    asked: list[float] = []

    def ask(*command: str) -> str:
        if command[0] == "sbatch":
            asked.append(jobs.time.monotonic())
            return f"Submitted batch job {len(asked)}"
        return ""

    monkeypatch.setattr(jobs, "_ask", ask)
    made = jobs.Jobs(Steady(), "hdica", SlurmSettings(), no_script, tmp_path / "script", 1)
    with caplog.at_level(logging.WARNING):
        for _ in range(400):
            made.look()
            clock(jobs.LOOK)
    pauses = [round(later - sooner) for sooner, later in pairwise(asked)]
    assert pauses[0] == jobs.LOOK
    assert max(pauses) <= jobs.SLOWEST + jobs.LOOK
    assert pauses == sorted(pauses)
    assert made.hopeless
    assert "jobs of hdica end before a worker has come" in caplog.text


@dataclass
class Queue:
    """A stand-in for Slurm's commands: states of jobs, and what each was submitted with."""

    states: dict[str, str] = field(default_factory=dict)
    sizes: list[tuple[int, str]] = field(default_factory=list)  # tasks, and what they ask for
    refuses: tuple[str, ...] = ()  # sizes
    last: str = ""

    def script(self, settings: SlurmSettings, tasks: int) -> str:
        self.last = settings.size
        self.sizes.append((tasks, self.last))
        return ""

    def ask(self, *command: str) -> str:
        """Answer as Slurm's commands do."""
        if command[0] == "squeue":
            return "".join(f"{number} {state}\n" for number, state in self.states.items())
        if command[0] == "scancel":
            for number in command[1:]:
                self.states.pop(number)
            return ""
        if self.last in self.refuses:
            raise HdicaError("Slurm refuses the jobs of cluster.slurm (Requested time limit)")
        base = str(len(self.sizes))
        tasks = self.sizes[-1][0]
        array = [f"{base}_{task}" for task in range(tasks)]
        self.states |= dict.fromkeys(array if self.tasks else [base], "PENDING")
        return f"Submitted batch job {base}"

    tasks: bool = False


@pytest.fixture
def queue(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    monkeypatch.setattr(jobs, "_ask", made.ask)
    return made


def kept(queue: Queue, folder: Path, wanted: int = 1, **changes: Any) -> jobs.Jobs:
    """Jobs of a run, as many as are wanted submitted."""
    queue.tasks = changes.get("array", False)
    how = SlurmSettings(maximum=wanted, **changes)
    made = jobs.Jobs(Steady(), "hdica", how, queue.script, folder / "script", wanted)
    made.look()
    return made


SMALL = "4GiB for 01:00:00"


@pytest.mark.parametrize(
    ("state", "came", "then"),
    [
        ("TIMEOUT", True, "4096MiB for 0-02:00:00"),
        ("TIMEOUT", False, "4096MiB for 0-02:00:00"),
        ("OUT_OF_MEMORY", True, "12288MiB for 0-01:00:00"),
        ("FAILED", False, "12288MiB for 0-01:00:00"),  # before its workers had come
        ("FAILED", True, SMALL),
        ("COMPLETED", True, SMALL),
        ("CANCELLED", True, SMALL),
        ("NODE_FAIL", True, SMALL),
        ("PREEMPTED", False, SMALL),
        ("", True, SMALL),
    ],
)
def test_the_next_job_asks_for_more_of_what_one_lacked(
    queue: Queue,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    state: str,
    came: bool,
    then: str,
) -> None:
    made = kept(queue, tmp_path, retry={"memory": 3})
    made.came = {"1"} if came else set()
    queue.states["1"] = state
    if not state:
        del queue.states["1"]
    made.look()
    assert queue.sizes == [(1, SMALL), (1, then)]
    assert ("Slurm does not say how job 1 ended" in caplog.text) == (not state)
    assert (f"job 1 ended with {state}; the next ask for {then}" in caplog.text) == (then != SMALL)


def test_without_retry_the_next_job_asks_for_the_same(queue: Queue, tmp_path: Path) -> None:
    made = kept(queue, tmp_path)
    queue.states["1"] = "TIMEOUT"
    made.look()
    assert queue.sizes == [(1, SMALL)] * 2


def test_jobs_ask_for_more_only_so_often(queue: Queue, tmp_path: Path) -> None:
    made = kept(queue, tmp_path, retry={"walltime": 4, "most": 2})
    for number in ("1", "2", "3"):
        made.came.add(number)
        queue.states[number] = "TIMEOUT"
        made.look()
    hours = [size.rpartition("for ")[2] for _, size in queue.sizes]
    assert hours == ["01:00:00", "0-04:00:00", "0-16:00:00", "0-16:00:00"]


def test_several_jobs_that_end_alike_are_one_reason_and_none_waits_to_end_so_too(
    queue: Queue, tmp_path: Path
) -> None:
    made = kept(queue, tmp_path, wanted=4, retry={})
    queue.states |= {"1": "TIMEOUT", "2": "TIMEOUT", "3": "RUNNING"}  # the fourth still waits
    made.look()
    assert queue.states.keys() == {"1", "2", "3", "5", "6", "7"}
    assert queue.sizes[4:] == [(1, "4096MiB for 0-02:00:00")] * 3
    assert set(made.there) == {"3", "5", "6", "7"}
    # The third was submitted before: it says nothing of those that are longer.
    queue.states["3"] = "TIMEOUT"
    made.look()
    assert queue.sizes[7:] == [(1, "4096MiB for 0-02:00:00")]


def test_jobs_that_slurm_refuses_for_their_size_are_submitted_as_before(
    queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue.refuses = ("4096MiB for 0-02:00:00",)
    made = kept(queue, tmp_path, retry={})
    for number in ("1", "3", "4"):
        made.came.add(number)
        queue.states[number] = "TIMEOUT"
        made.look()
        made.look()
    assert [size for _, size in queue.sizes] == [SMALL, "4096MiB for 0-02:00:00", *[SMALL] * 3]
    assert f"(Requested time limit); jobs ask for {SMALL} again" in caplog.text


def test_an_array_is_submitted_at_once_and_what_ends_of_it_as_another(
    queue: Queue, tmp_path: Path
) -> None:
    made = kept(queue, tmp_path, wanted=5, array=True)
    assert set(made.there) == {f"1_{task}" for task in range(5)}
    made.came = {"1_0", "1_3"}
    queue.states |= {"1_0": "COMPLETED", "1_3": "NODE_FAIL"}
    made.look()
    assert queue.sizes == [(5, SMALL), (2, SMALL)]
    assert set(made.there) == {"1_1", "1_2", "1_4", "2_0", "2_1"}


def test_no_more_tasks_run_at_once_than_are_allowed(queue: Queue, tmp_path: Path) -> None:
    made = kept(queue, tmp_path, wanted=3, array=True, at_once=2)
    made.came = set(made.there)
    for task in range(3):
        assert len(queue.sizes) == 1
        queue.states[f"1_{task}"] = "COMPLETED"
        made.look()
    assert queue.sizes == [(3, SMALL)] * 2


def test_larger_jobs_than_slurm_takes_are_refused_before_any_work(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    slurm.refuse("long", "-t 0-04:00:00")
    assert ready(settings(tmp_path, retry={"most": 1})).workers == 1
    with pytest.raises(HdicaError, match=r"^slurm.retry: Slurm refuses .* specified: long\)"):
        ready(settings(tmp_path, retry={"most": 2}))
