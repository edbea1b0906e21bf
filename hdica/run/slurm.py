"""Workers in Slurm jobs: submitting them, replacing those that end, cancelling idle ones."""

from __future__ import annotations

import logging
import math
import re
import shlex
import shutil
import stat
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hdica.errors import HdicaError, suggestion
from hdica.process.machine import in_bytes
from hdica.process.private import HOST, make_folders, private_folder, scratch
from hdica.run.processes import (
    NODE,
    certificates,
    certificates_in,
    own_dask,
    write_certificates,
)
from hdica.run.settings import WORD, ClusterSettings, SlurmSettings

if TYPE_CHECKING:
    from distributed import Client, Scheduler, SpecCluster
    from distributed.security import Security

LOOK = 10.0  # seconds between looks at the queue
IDLE = 60.0  # seconds with more workers than blocks after which jobs are cancelled
HOPELESS = 3  # jobs in a row that end before any worker of theirs has come
SLOWEST = 600.0  # seconds between attempts where jobs end before any worker has come
QUEUED = 30.0  # seconds after which a run says that it waits for a job
SLURM_ANSWER = 60.0  # seconds in which Slurm's commands have to end
RESERVED = 0.1  # part of the walltime for ending what runs: half a minute to a quarter of an hour
DEATH = 60  # seconds without a scheduler after which a worker ends
AWAY = "Requested node configuration is not available"
"""What Slurm says when asked of a job for which there is no node now, though it would take it."""
ENDED = (
    "", "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "TIMEOUT",
)  # fmt: skip
"""States of jobs that are over; none is that of a job which Slurm has forgotten (MinJobAge)."""
log = logging.getLogger(__name__)


def check_slurm(settings: ClusterSettings) -> None:
    """Check that Slurm would take jobs of workers, without submitting one."""
    import psutil  # Dask's, which looks the network's address up with it

    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise HdicaError(
                f"mode = 'slurm' needs the program {program} (run hdica where jobs are submitted)"
            )
    name, networks = settings.slurm.interface, sorted(psutil.net_if_addrs())
    if name and name not in networks:
        raise HdicaError(
            f"slurm.interface = {name!r} is none of this machine's ({suggestion(name, networks)})"
        )
    folder = shared_folder(settings.slurm)
    with _certificates(settings, folder) as security:
        script, field = scratch() / "check.sh", ""
        slurm: SlurmSettings | None = settings.slurm
        while slurm is not None:  # and then those of every further try
            address, tasks = "tcp://127.0.0.1:1", slurm.maximum
            text = job_script(slurm, folder, "hdica-check", address, security, tasks)
            script.write_text(text, encoding="utf-8")
            try:
                _ask("sbatch", "--test-only", str(script))
            except HdicaError as exc:
                if AWAY not in str(exc):
                    raise HdicaError(f"{field}{exc}") from exc
            slurm, field = slurm.larger(memory=True, walltime=True), "slurm.retry: "


def shared_folder(settings: SlurmSettings) -> Path:
    """The folder of logs and certificates, made if it is missing."""
    folder = Path(settings.shared_folder).expanduser().resolve()
    _check_path(str(folder), "slurm.shared_folder")
    try:
        make_folders(folder, 0o775)
        about = folder.stat()
    except OSError as exc:
        text = f"slurm.shared_folder = {str(folder)!r} cannot be made ({exc.strerror})"
        raise HdicaError(text) from exc
    if about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
        raise HdicaError(
            f"slurm.shared_folder = {str(folder)!r} is not allowed (all users can write to it, and "
            f"exchange the certificates in it: chmod o-w {folder})"
        )
    return folder


def _check_path(path: str, field: str) -> None:
    """Refuse a path that would need quotes in a job script."""
    if not re.fullmatch(WORD, path):
        text = "letters, digits and . _ - + = , : @ % / only, because it stands in job scripts"
        raise HdicaError(f"{field} = {path!r} is not allowed ({text})")


@contextmanager
def _certificates(settings: ClusterSettings, folder: Path) -> Iterator[Security | None]:
    """Certificates in files that the nodes see, at paths that a job's script can name.

    Those of this process lie in a private folder below ``folder``.
    """
    if (security := certificates(settings)) is None:
        yield None
    elif settings.tls:
        for path in (security.tls_ca_file, security.tls_worker_cert, security.tls_worker_key):
            _check_path(path, "tls")
        yield security
    else:
        with private_folder(folder, "tls-") as made:
            yield write_certificates(security, made)


def _ask(*command: str) -> str:
    """What one of Slurm's commands says; what it says against it is one sentence."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SLURM_ANSWER)
    except subprocess.TimeoutExpired as exc:
        raise HdicaError(f"Slurm does not answer within {SLURM_ANSWER:g} s ({command[0]})") from exc
    if done.returncode:
        lines = (line.split("error: ", 1)[-1].strip() for line in done.stderr.splitlines())
        reason = "; ".join(dict.fromkeys(filter(None, lines))) or "no reason is named"
        what = "the jobs of cluster.slurm" if command[0] == "sbatch" else command[0]
        raise HdicaError(f"Slurm refuses {what} ({reason})")
    return done.stdout


def lifetime(walltime: int) -> tuple[float, float]:
    """After how many seconds workers begin to end, and by how much that may differ among them.

    The last of them begins when a tenth of the walltime is left: a block may still take as much.
    """
    reserved = min(max(RESERVED * walltime, 30.0), 900.0, walltime / 4)
    stagger = reserved / 4
    return walltime - reserved - stagger, stagger


def job_script(
    settings: SlurmSettings,
    folder: Path,
    name: str,
    address: str,
    security: Security | None,
    tasks: int = 1,
) -> str:
    """The script of a job of workers, named ``name``, whose messages go to a folder.

    ``tasks`` are those of an array, if the settings want one. Workers are called as squeue calls
    their job.
    """
    each, memory = settings.workers_each, in_bytes(settings.memory)
    log_name, number, array = "%j", "$SLURM_JOB_ID", []
    if settings.array:
        log_name, number = "%A_%a", "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
        running = settings.running(tasks)
        array = [f"--array=0-{tasks - 1}{f'%{running}' if running else ''}"]
    requeue = {None: [], True: ["--requeue"], False: ["--no-requeue"]}[settings.requeue]
    directives = [
        f"-J {name}",
        f"-o {folder}/{name}-{log_name}.log",
        *array,
        *([f"-p {settings.queue}"] if settings.queue else []),
        *([f"-A {settings.account}"] if settings.account else []),
        "-n 1",
        f"--cpus-per-task={settings.cores}",
        f"--mem={memory // 2**20}M",
        f"-t {settings.walltime}",
        *([f"-x {settings.exclude}"] if settings.exclude else []),
        *requeue,
        *settings.directives,
    ]
    begin, stagger = lifetime(settings.seconds)
    options = [
        *("--nworkers", str(each), "--nthreads", "1", "--memory-limit", f"{memory // each}B"),
        *("--death-timeout", f"{DEATH}", "--worker-class", f"{NODE}.DrainingWorker"),
        *("--lifetime", f"{begin:g}s", "--lifetime-stagger", f"{stagger:g}s"),
        *(("--interface", settings.interface) if settings.interface else ()),
    ]
    if security:
        options += ["--protocol", "tls://", "--tls-ca-file", security.tls_ca_file]
        options += ["--tls-cert", security.tls_worker_cert, "--tls-key", security.tls_worker_key]
    command = shlex.join([sys.executable, "-P", "-m", NODE, "worker", address, *options])
    lines = [f"#SBATCH {line}" for line in directives]
    last = f'{command} --name "{number}"\n'
    return "\n".join(["#!/usr/bin/env bash", *lines, *settings.prologue, last])


def example_script(settings: ClusterSettings) -> str:
    """The script of the jobs of a run; RUN, HOST and PORT stand for what only a run knows."""
    slurm = settings.slurm
    folder = Path(slurm.shared_folder).expanduser().resolve()
    security = None
    if settings.tls or not settings.insecure:
        security = certificates_in(settings.tls or str(folder / "tls-RUN"), settings.tls_key)
    address = f"{'tls' if security else 'tcp'}://HOST:PORT"
    return job_script(slurm, folder, "hdica-RUN", address, security, slurm.maximum)


@dataclass
class Jobs:
    """The jobs of a run: as many as are wanted, as long as there is work for them.

    Dask's adaptive scaling stops busy workers along with an idle one of their job, and never
    replaces a job of several workers that has ended.
    """

    scheduler: Scheduler  # in this process
    name: str  # what Slurm calls the jobs
    settings: SlurmSettings  # of those that are submitted next
    script: Callable[[SlurmSettings, int], str]  # of a job, or of so many tasks of an array
    file: Path  # where Slurm reads it
    wanted: int  # jobs to have as long as there is work
    # Jobs that have not ended, by number, and what each was submitted with.
    there: dict[str, SlurmSettings] = field(default_factory=dict)
    before: SlurmSettings | None = None  # of smaller jobs, which Slurm has taken
    came: set[str] = field(default_factory=set)  # of these, those of which a worker has come
    failed: int = 0  # jobs in a row that have ended before a worker came
    next_try: float = 0.0
    calm: tuple[float, int] | None = None
    over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have jobs, in a thread that looks after them, and cancel them at the end."""
        looking = threading.Thread(target=self._keep, daemon=True)
        try:
            self._submit(self.wanted if self.settings.array else 1)
            looking.start()
            yield
        finally:
            self.over.set()
            if looking.is_alive():
                looking.join()  # what it is submitting now is to be cancelled, too
            with suppress(HdicaError):  # some have ended
                self._cancel(sorted(self.there))

    @property
    def hopeless(self) -> bool:
        """Whether jobs end one after the other before any of their workers comes."""
        return self.failed >= HOPELESS

    def _keep(self) -> None:
        while not self.over.is_set():
            try:
                self.look()
            except Exception as exc:
                # Slurm may be away for a while; the run goes on with the workers it has.
                log.warning("cannot look after the jobs %s: %s", self.name, exc)
                self.next_try = time.monotonic() + 3 * LOOK
            self.over.wait(LOOK)

    def look(self) -> None:
        """Forget jobs that have ended, submit what is missing, cancel what has no work."""
        # Jobs of which workers are there, and whether any of them is busy.
        present: dict[str, bool] = {}
        for worker in list(self.scheduler.workers.values()):
            number = str(worker.name).partition("-")[0]
            present[number] = present.get(number, False) or bool(worker.processing)
        self.came |= set(present)
        states = self._states()
        for number in self.there.keys() - present.keys():
            if (state := states.get(number, "")) in ENDED:
                self._forget(number, state)
        small = (number for number, used in self.there.items() if used is not self.settings)
        self._cancel([number for number in small if states.get(number) == "PENDING"])
        missing = self._target() - len(self.there)
        if self.settings.at_once and self.there:
            missing = min(missing, 0)  # tasks of two arrays would run beside each other
        if missing > 0 and time.monotonic() >= self.next_try:
            self._submit(1 if self.hopeless else missing)
        elif missing < 0:
            # First those that wait, then those without a busy worker.
            idle = [number for number, busy in present.items() if not busy]
            self._cancel([*sorted(self.there.keys() - present.keys()), *idle][:-missing])

    def _states(self) -> dict[str, str]:
        """States of the jobs by number, also of those that have ended not long ago."""
        form = ("--noheader", "--array", "--states=all", "--format=%i %T")
        lines = _ask("squeue", *form, f"--name={self.name}").splitlines()
        return dict(line.split(maxsplit=1) for line in lines)

    def described(self) -> str:
        """What Slurm says of the jobs now."""
        with suppress(HdicaError):
            form = "--format=job %i is %T: %r"
            answer = _ask("squeue", "--noheader", form, f"--name={self.name}")
            return "; ".join(answer.splitlines()[:3]) or "no job is left in the queue"
        return "Slurm does not answer"

    def _forget(self, number: str, state: str) -> None:
        """A job has ended; if no worker of it ever came, the next attempts are ever rarer."""
        if (used := self.there.pop(number)) is self.settings:
            self._grow(number, state)
        if number in self.came:
            self.failed = 0
            return
        if used is not self.settings:
            return  # the larger ones are still to be tried
        self.failed += 1
        if self.hopeless:
            log.warning("jobs of %s end before a worker has come", self.name)
            pause = min(SLOWEST, LOOK * 2.0 ** (self.failed - HOPELESS + 1))
            self.next_try = time.monotonic() + pause

    def _grow(self, number: str, state: str) -> None:
        """Let the next jobs ask for more of what a job has ended for want of."""
        memory = state == "OUT_OF_MEMORY" or (state == "FAILED" and number not in self.came)
        larger = self.settings.larger(memory, walltime=state == "TIMEOUT")
        if not state and self.settings.retry:
            log.warning("Slurm does not say how job %s ended; the next asks for the same", number)
        elif larger is not None:
            log.warning("job %s ended with %s; the next ask for %s", number, state, larger.size)
            self.before, self.settings, self.failed = self.settings, larger, 0

    def _submit(self, count: int) -> None:
        tasks = count if self.settings.array else 1
        for _ in range(count // tasks):
            if self.over.is_set():
                return
            self.file.write_text(self.script(self.settings, tasks), encoding="utf-8")
            try:
                answer = _ask("sbatch", str(self.file))
            except HdicaError as exc:
                if self.before is None:
                    raise
                log.warning("%s; jobs ask for %s again", exc, self.before.size)
                self.settings, self.before = self.before.model_copy(update={"retry": None}), None
                return
            if (number := re.search(r"batch job (\d+)", answer)) is None:
                raise HdicaError(f"sbatch names no job ({answer.strip()})")
            several = [f"{number[1]}_{task}" for task in range(tasks)]
            numbers = several if self.settings.array else [number[1]]
            self.there.update(dict.fromkeys(numbers, self.settings))

    def _cancel(self, numbers: list[str]) -> None:
        if numbers:
            _ask("scancel", *numbers)
            for number in numbers:
                self.there.pop(number, None)

    def _target(self) -> int:
        """How many jobs there shall be: fewer once there is less than a block for each worker."""
        scheduler = self.scheduler
        workers = list(scheduler.workers.values())
        threads = sum(worker.nthreads for worker in workers)
        blocks = sum(len(worker.processing) for worker in workers)
        blocks += len(scheduler.queued) + len(scheduler.unrunnable)
        if not threads or blocks >= threads:
            self.calm = None
            return self.wanted
        now, moves = time.monotonic(), scheduler.transition_counter
        self.calm = self.calm or (now, moves)
        since, before = self.calm
        # Until a block has ended the driver may not have seen that there are more workers.
        if now - since < IDLE or moves == before:
            return min(self.wanted, len(self.there))
        least, each = self.settings.minimum, self.settings.workers_each
        return min(self.wanted, max(least, math.ceil(blocks / each)))


@contextmanager
def slurm_client(settings: ClusterSettings, blocks: int) -> Iterator[Client]:
    """A client of workers in Slurm jobs, as many as the blocks are worth; cancelled at the end."""
    from distributed import Client

    slurm = settings.slurm
    folder, name = shared_folder(slurm), f"hdica-{uuid.uuid4().hex[:8]}"
    with (
        own_dask(),
        _certificates(settings, folder) as security,
        _scheduler(slurm, security) as cluster,
    ):

        def script(settings: SlurmSettings, tasks: int) -> str:
            return job_script(settings, folder, name, cluster.scheduler_address, security, tasks)

        # Among all temporary files somebody else may take its name before Slurm reads it.
        file = scratch() / f"{name}.sh"
        jobs = Jobs(cluster.scheduler, name, slurm, script, file, slurm.jobs_for(blocks))
        with jobs.running():
            _wait(jobs, slurm, folder)
            with Client(cluster) as client:
                yield client


def _scheduler(settings: SlurmSettings, security: Security | None) -> SpecCluster:
    """A scheduler in this process, without any worker yet."""
    from distributed import Scheduler, SpecCluster

    options = {
        "interface": settings.interface or None,
        "protocol": "tls://" if security else "tcp://",
        "security": security,
        # Until it is stopped, its HTTP server would listen on every network.
        "dashboard": False,
        "dashboard_address": f"{HOST}:0",
    }
    scheduler = {"cls": Scheduler, "options": options}
    try:
        return SpecCluster(
            scheduler=scheduler, workers={}, security=security, silence_logs=logging.CRITICAL
        )
    except (RuntimeError, ValueError, OSError) as exc:
        reason = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise HdicaError(f"cluster.slurm cannot start ({reason})") from exc


def _wait(jobs: Jobs, settings: SlurmSettings, folder: Path) -> None:
    """Until the first worker has come."""
    where, begun, noted = settings.where, time.monotonic(), False
    while not jobs.scheduler.workers:
        if jobs.hopeless:
            raise HdicaError(
                f"jobs of Slurm's {where} end before a worker has come (their messages are in "
                f"{folder})"
            )
        waited = time.monotonic() - begun
        if waited > settings.startup:
            raise HdicaError(
                f"no worker has come from Slurm's {where} in slurm.startup = "
                f"{settings.startup:g} s ({jobs.described()}; squeue --name={jobs.name} shows jobs "
                f"while a run waits for them, and {folder} keeps their messages)"
            )
        if waited > QUEUED and not noted:
            noted = True
            log.warning("waiting for Slurm's %s (squeue --name=%s shows why)", where, jobs.name)
        time.sleep(0.1)
