"""Workers in Slurm jobs: submitting them, replacing those that end, giving back idle ones."""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError, suggestion
from hdica.process.loopback import HOST
from hdica.process.private import scratch
from hdica.sweep.workers.folder import own_folder
from hdica.sweep.workers.local import APART, CALM
from hdica.sweep.workers.slurm import (
    OURS_ALONE,
    SlurmSettings,
    check_path,
    job_options,
    shared_folder,
    with_script_in,
)

if TYPE_CHECKING:
    from hdica.sweep.workers.settings import ClusterSettings

LOOK = 10.0
"""Seconds between looks at the queue."""
IDLE = 60.0
"""Seconds with more workers than blocks after which jobs are given back."""
HOPELESS = 3
"""Jobs in a row that end before any worker of theirs has come."""
SLOWEST = 600.0
"""Seconds between attempts where jobs end before any worker has come."""
QUEUED = 30.0
"""Seconds after which a run says that it waits for a job."""
SLURM_ANSWER = 60.0
"""Seconds in which Slurm's commands have to end."""
AWAY = "Requested node configuration is not available"
"""What Slurm says when asked of a job for which there is no node now, though it would take it."""
log = logging.getLogger(__name__)


def check_slurm(settings: ClusterSettings) -> None:
    """Check that jobs of workers can be submitted: libraries, programs, folder, certificates.

    Slurm itself is asked whether it would take such a job; none is submitted.
    """
    library = jobqueue()
    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise HdicaError(
                f"mode = 'slurm' needs the program {program} (run hdica where jobs are submitted)"
            )
    _check_interface(settings.slurm.interface)
    folder = shared_folder(settings.slurm)
    with _certificates(settings, folder):
        options = job_options(settings.slurm, folder, "hdica-check")
        job = library.SLURMJob("tcp://127.0.0.1:1", name="check", config_name="slurm", **options)
        _ask_slurm(job.job_script())


def jobqueue() -> Any:
    """The library; it takes SIGINT for itself when it is loaded, which is how a run is stopped."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        return import_module("dask_jobqueue.slurm")
    except ImportError as exc:
        raise HdicaError(
            "mode = 'slurm' needs the library dask-jobqueue (pip install 'hdica[slurm]')"
        ) from exc
    finally:
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)


def _check_interface(name: str) -> None:
    import psutil  # Dask's, which looks the address up with it

    known = sorted(psutil.net_if_addrs())
    if name and name not in known:
        raise HdicaError(
            f"slurm.interface = {name!r} is none of this machine's ({suggestion(name, known)})"
        )


def _ask_slurm(script: str) -> None:
    """Whether Slurm would take a job, without submitting it."""
    file = scratch() / "check.sh"
    file.write_text(script, encoding="utf-8")
    command = ["sbatch", "--test-only", str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SLURM_ANSWER)
    except subprocess.TimeoutExpired as exc:
        raise HdicaError(f"Slurm does not answer within {SLURM_ANSWER:g} s (sbatch)") from exc
    if done.returncode and AWAY not in done.stderr:
        raise HdicaError(f"Slurm refuses the jobs of cluster.slurm ({_said(done.stderr)})")


def _said(text: str) -> str:
    """What one of Slurm's commands has said, in one line."""
    lines = [line.split("error: ", 1)[-1].strip() for line in text.splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(lines)) or "no reason given"


@contextmanager
def _certificates(settings: ClusterSettings, folder: Path) -> Iterator[Any]:
    """Certificates for scheduler and workers, at paths that a job's script can hold."""
    from hdica.sweep.workers.tls import certificates

    with certificates(settings, folder) as found:
        if settings.tls:
            for path in (found.tls_ca_file, found.tls_worker_cert, found.tls_worker_key):
                check_path(path, "tls")
        yield found


@dataclass
class Jobs:
    """The jobs of a cluster: as many as are wanted, as long as there is work for them.

    Dask's own adaptive scaling counts workers, not jobs: it stops busy workers along with an idle
    one of their job, and never replaces a job of several workers that has ended.
    """

    cluster: Any  # of dask-jobqueue
    name: str  # what Slurm calls the jobs
    each: int  # workers of a job
    minimum: int  # jobs to keep
    wanted: int  # jobs to have as long as there is work
    came: set[str] = field(default_factory=set)
    lost: int = 0
    refusal: str = ""
    next_ask: float = 0.0
    calm: tuple[float, int] | None = None
    task: Any = None

    async def begin(self) -> None:
        """Submit the first jobs, and keep looking after them."""
        await self._submit(self.wanted)
        if not self.cluster.workers:
            raise HdicaError(f"Slurm refuses the jobs of cluster.slurm ({self.refusal})")
        self.task = asyncio.create_task(self._keep())

    async def end(self) -> None:
        """Stop looking after them."""
        if self.task is not None:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    @property
    def hopeless(self) -> bool:
        """Whether jobs keep ending before any of their workers comes."""
        return self.lost >= HOPELESS

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.look()
            except Exception as exc:
                # Slurm may be away for a while; the run goes on with the workers it has.
                log.warning("cannot look after the jobs %s: %s", self.name, exc)

    async def look(self) -> None:
        """Forget jobs that have ended, submit what is missing, give back what has no work."""
        present = self._present()
        self.came |= set(present)
        queued = await self._queued()
        for name, job in list(self.cluster.workers.items()):
            if job.job_id not in queued and name not in present:
                self._forget(name)
        target = self._target()
        missing = target - len(self.cluster.worker_spec)
        if missing > 0 and time.monotonic() >= self.next_ask:
            await self._submit(1 if self.hopeless else missing)
        elif missing < 0:
            await self._give_back(-missing, present)

    def _present(self) -> dict[str, bool]:
        """Jobs of which workers are there, and whether any of them is busy."""
        found: dict[str, bool] = {}
        for worker in list(self.cluster.scheduler.workers.values()):
            name = str(worker.name)
            job = name.rpartition("-")[0] if self.each > 1 else name
            found[job] = found.get(job, False) or bool(worker.processing)
        return found

    async def _queued(self) -> set[str]:
        """Numbers of the jobs that wait or run."""
        command = ["squeue", "--noheader", "--format=%A", f"--name={self.name}"]
        answer = await asyncio.wait_for(self.cluster.job_cls._call(command), SLURM_ANSWER)
        return set(answer.split())

    async def described(self) -> str:
        """What Slurm says of the jobs now."""
        command = ["squeue", "--noheader", "--format=job %A is %T: %r", f"--name={self.name}"]
        with suppress(Exception):
            answer = await asyncio.wait_for(self.cluster.job_cls._call(command), SLURM_ANSWER)
            return "; ".join(answer.splitlines()[:3]) or "no job is left in the queue"
        return "Slurm does not answer"

    def _forget(self, name: str) -> None:
        """A job has ended; if no worker of it ever came, the next attempts are ever rarer."""
        self._drop(name)
        if name in self.came:
            self.came.discard(name)
            self.lost = 0
            return
        self.lost += 1
        if self.hopeless:
            log.warning("jobs of %s end before a worker has come", self.name)
            pause = min(SLOWEST, LOOK * 2.0 ** (self.lost - HOPELESS + 1))
            self.next_ask = time.monotonic() + pause

    async def _submit(self, count: int) -> None:
        """Submit so many jobs; those that Slurm refuses are as if they had not been asked for."""
        self.refusal = ""
        for _ in range(count):
            self.cluster.worker_spec.update(self.cluster.new_worker_spec())
        try:
            await self.cluster
        except (RuntimeError, ValueError, OSError) as exc:
            self.refusal = _said(str(exc).partition("stderr:")[2] or str(exc))
            self.next_ask = time.monotonic() + 3 * LOOK
        for name, job in list(self.cluster.workers.items()):
            if job.job_id is None:
                self._drop(name)
        if self.refusal and self.cluster.workers:
            log.warning("Slurm refuses more jobs of %s: %s", self.name, self.refusal)

    def _drop(self, name: str) -> None:
        """A job is none of the cluster's any more."""
        from distributed.core import Status

        self.cluster.workers.pop(name).status = Status.closed
        self.cluster.worker_spec.pop(name, None)

    def _target(self) -> int:
        """How many jobs there shall be: fewer once there is less than a block for each worker."""
        scheduler = self.cluster.scheduler
        threads = sum(worker.nthreads for worker in scheduler.workers.values())
        blocks = sum(len(worker.processing) for worker in scheduler.workers.values())
        blocks += len(scheduler.queued) + len(scheduler.unrunnable)
        if not threads or blocks >= threads:
            self.calm = None
            return self.wanted
        now, moves = time.monotonic(), scheduler.transition_counter
        self.calm = self.calm or (now, moves)
        since, before = self.calm
        # Until a block has ended the driver may not have seen that there are more workers.
        if now - since < IDLE or moves == before:
            return min(self.wanted, len(self.cluster.worker_spec))
        return min(self.wanted, max(self.minimum, math.ceil(blocks / self.each)))

    async def _give_back(self, count: int, present: dict[str, bool]) -> None:
        """Cancel so many jobs: first those that wait, then those without a busy worker."""
        waiting = [name for name in self.cluster.worker_spec if name not in present]
        idle = [name for name, busy in present.items() if not busy]
        for name in [*waiting, *idle][:count]:
            self.cluster.worker_spec.pop(name, None)
        await self.cluster


def _cluster(settings: SlurmSettings, folder: Path, name: str, security: Any) -> Any:
    """A scheduler in this process, without any job yet."""
    library = jobqueue()
    return library.SLURMCluster(
        **job_options(settings, folder, name),
        job_cls=with_script_in(scratch(), library.SLURMJob),
        config_name="slurm",
        interface=settings.interface or None,
        protocol="tls://" if security else "tcp://",
        security=security,
        shared_temp_directory=str(folder),
        # Until it is stopped, its HTTP server would listen on every network.
        scheduler_options={"dashboard": False, "dashboard_address": f"{HOST}:0"},
        silence_logs=logging.CRITICAL,
    )


@contextmanager
def slurm_client(settings: ClusterSettings, blocks: int | None = None) -> Iterator[Any]:
    """A client of workers in Slurm jobs, as many as the blocks are worth; cancelled at the end."""
    import dask
    import distributed

    jobqueue()  # the defaults of all three must be there before ours come and go
    slurm = settings.slurm
    folder, name = shared_folder(slurm), f"hdica-{uuid.uuid4().hex[:8]}"
    with (
        dask.config.set({**CALM, **APART, **OURS_ALONE}),
        own_folder(scratch()),
        _certificates(settings, folder) as security,
        _started(slurm, folder, name, security) as cluster,
    ):
        wanted = slurm.jobs_for(blocks)
        jobs = Jobs(cluster, name, slurm.workers_each, min(slurm.minimum, wanted), wanted)
        cluster.sync(jobs.begin)
        try:
            _wait(cluster, jobs, slurm, folder)
            with distributed.Client(cluster) as client:
                yield client
        finally:
            cluster.sync(jobs.end)


@contextmanager
def _started(settings: SlurmSettings, folder: Path, name: str, security: Any) -> Iterator[Any]:
    try:
        cluster = _cluster(settings, folder, name, security)
    except (RuntimeError, ValueError, OSError) as exc:
        raise HdicaError(f"cluster.slurm cannot start ({_said(str(exc))})") from exc
    with cluster:
        yield cluster


def _wait(cluster: Any, jobs: Jobs, settings: SlurmSettings, folder: Path) -> None:
    """Until the first worker has come."""
    where = f"queue {settings.queue!r}" if settings.queue else "default queue"
    begun, told = time.monotonic(), False
    while not cluster.scheduler_info["workers"]:
        if jobs.hopeless:
            raise HdicaError(
                f"jobs of Slurm's {where} end before a worker has come (what they said is in "
                f"{folder})"
            )
        waited = time.monotonic() - begun
        if waited > settings.startup:
            now = cluster.sync(jobs.described)
            raise HdicaError(
                f"no worker has come from Slurm's {where} in slurm.startup = "
                f"{settings.startup:g} s ({now}; squeue --name={jobs.name} shows jobs while a run "
                f"waits for them, and {folder} keeps what they said)"
            )
        if waited > QUEUED and not told:
            told = True
            log.warning("waiting for Slurm's %s (squeue --name=%s shows why)", where, jobs.name)
        time.sleep(0.1)
