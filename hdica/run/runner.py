"""Run a study: compute what is pending, block by block, here or wherever Dask runs."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, Incomplete, Removed, Stopped, Unwritable
from hdica.process.compile_cache import nothing_compiled, refuse_interpreter
from hdica.process.machine import in_bytes
from hdica.process.private import remove_ended_scratch
from hdica.run.block import Block, block_of
from hdica.run.cluster import connect, ready
from hdica.run.plan import Task, check_room, tasks
from hdica.run.processes import WARM_START, start_loading, start_seconds, unguarded
from hdica.run.progress import Progress, Wanted, report
from hdica.run.settings import ClusterSettings, cluster_settings
from hdica.run.signals import aside, heeding, unbroken
from hdica.run.spread import LOOK, NO_SCHEDULER, Patience, spread
from hdica.run.worker import Care, Worker, run_block, worker_here
from hdica.status import PENDING, STATUS_NAMES
from hdica.store.another import refuse_another
from hdica.store.files import DamageError, make_folder, no_link, removed, write_text, written
from hdica.store.lock import locked, remove_partials, running
from hdica.store.paths import STUDY, names_in, work_path
from hdica.store.sealed import sealed_text
from hdica.store.working import Placed, place
from hdica.study.study import Study
from hdica.systems.registry import check_installed

LEAST_LOOK, LOOK_SHARE = 0.2, 0.02
"""Seconds at least between looks at what other runs have committed, and the share of a run's time
that these looks may take."""
MOST_LOST = 8
"""Blocks that may be lost before a run gives up: then it is no accident of single blocks."""


@dataclass
class RunSummary:
    """What a run did."""

    computed: int = 0  # points
    counts: Counter[str] = field(default_factory=Counter)  # how many of them ended with each status
    cpu_seconds: float = 0.0
    pending: int = 0  # points of this shard that still are
    lost: list[str] = field(default_factory=list)  # one sentence a block that could not be computed

    @property
    def complete(self) -> bool:
        """Whether nothing of this shard is pending."""
        return not self.pending


def _check_shard(shard: tuple[int, int]) -> None:
    index, count = shard
    if count < 1 or not 0 <= index < count:
        raise HdicaError(f"shard = {index}/{count} is not allowed (i/m with 0 <= i < m)")


def run(
    study: Study,
    out: str | Path,
    workers: int = 1,
    shard: tuple[int, int] = (0, 1),
    cluster: ClusterSettings | dict[str, Any] | str | None = None,
    progress: Wanted = None,
    retry_failed: bool = False,
    block: int | None = None,
    replace: bool = False,
) -> RunSummary:
    """Compute the pending points of a study, or of one shard of it. Nothing is published.

    Killed at any moment it loses at most the blocks in flight; the next call goes on. Two calls at
    once compute the same bits: each leaves out what the other has committed.

    Parameters
    ----------
    study
        A validated study.
    out
        Path of the published store; the working store lies beside it.
    workers
        Processes, where ``cluster`` does not say it.
    shard
        ``(i, m)``: part i of m parts.
    cluster
        Where Dask runs: settings, a mapping ``{mode, workers, address, ...}`` or one word such as
        ``"slurm"`` or ``"tls://host:8786"``.
    progress
        False for silence; otherwise a bar on a terminal and sparse lines elsewhere. A stream gets
        lines with bars beside them.
    retry_failed
        Compute failed points again.
    block
        Points a block; chosen from the cost model if None. Shards of one study have to agree.
    replace
        Whether the results of another study may be there: what is published is replaced then.

    Returns
    -------
    RunSummary
        What was computed, and what is still pending because it could not be.
    """
    _check_shard(shard)
    if not replace:
        refuse_another(study, out)
    methods = study.methods_used()
    if any(
        e.startswith("hdica.finite") for name in study.methods for e in methods[name].about.engines
    ):
        refuse_interpreter()
    settings = ready(cluster_settings(cluster, workers))
    _check_installed(study.system, settings)
    placed = place(study, out)
    if settings.kind not in ("scheduler", "slurm"):
        check_room(study, placed)
    remove_ended_scratch()
    with heeding(), ExitStack() as part:
        with written(work_path(out)):
            alone = part.enter_context(running(out))
            _begin(study, out, placed, replace)
        todo = tasks(placed, shard, retry_failed, block, settings.workers)
        if not alone and shard == (0, 1):
            # The other run begins at the other end: what it commits is not computed here.
            todo.reverse()
        return _Run(study, placed, todo, settings, Care(settings.budget, _memory(settings))).run(
            progress
        )


def _begin(study: Study, out: str | Path, placed: list[Placed], replace: bool) -> None:
    """Record the study in its working store, and make the folders of its segments."""
    text = sealed_text(study.model_dump(mode="json"))
    with locked(out) as work:
        if not replace:
            # Again: two studies may have begun at once, and the first that comes here has the path.
            refuse_another(study, out)
        file = no_link(work / STUDY)
        if not file.is_file() or file.read_bytes() != text.encode():
            write_text(file, text)
    remove_partials(work.parent)
    for each in placed:
        if (each.statuses == PENDING).any():
            make_folder(no_link(each.path))
        remove_partials(each.path)


def _memory(settings: ClusterSettings) -> int:
    """Bytes that a process may take that computes; 0 for no limit."""
    if settings.kind == "slurm":
        return in_bytes(settings.slurm.memory) // settings.slurm.workers_each
    return in_bytes(settings.memory) if settings.memory else 0


def _check_installed(system: str, settings: ClusterSettings) -> None:
    """Refuse to hand points to processes of this machine that do not know their system."""
    if settings.kind != "local":
        return
    try:
        check_installed(system)
    except HdicaError:
        import dask

        # What else workers load is up to whoever configured them.
        if not dask.config.get("distributed.worker.preload", None):
            raise


@dataclass
class _Run:
    """One run of a study: its tasks, and what has become of them."""

    study: Study
    placed: list[Placed]
    todo: list[Task]
    settings: ClusterSettings
    care: Care
    summary: RunSummary = field(default_factory=RunSummary)
    there: dict[Path, NDArray[np.uint8]] = field(default_factory=dict)  # statuses at the last look
    next_look: float = field(default_factory=lambda: time.monotonic() + LEAST_LOOK)

    def run(self, progress: Wanted) -> RunSummary:
        points = sum(task.points.size for task in self.todo)
        seconds = sum(task.seconds for task in self.todo)
        name = self.study.study
        try:
            with report(
                name, points, seconds, progress, self.settings.workers, self._first()
            ) as shown:
                if left := self._here(shown):
                    self._distributed(left, shown)
            self._count()
        except (Incomplete, Stopped, DamageError) as exc:
            if isinstance(exc, Removed):
                raise
            if gone := next((f for f in self._folders() if not f.is_dir()), None):
                raise removed(gone) from exc
            if not isinstance(exc, DamageError):
                exc.args = (f"{exc}; {self._left()}",)
            raise
        return self.summary

    def _first(self) -> str:
        """What comes before the first point, in words; empty if an earlier run did it."""
        used = (engine for each in self.placed for engine in each.segment.method.about.engines)
        simulates = any(engine.startswith("hdica.finite") for engine in used)
        return "compiling, once" if simulates and nothing_compiled() else ""

    def _folders(self) -> list[Path]:
        return list(dict.fromkeys(task.placed.path for task in self.todo))

    def _committed(self) -> int:
        """Files in the folders of the tasks."""
        return sum(len(names_in(folder)) for folder in self._folders())

    def _now(self) -> dict[Path, Placed]:
        """The segments of the tasks with the blocks that there are now."""
        folders = set(self._folders())
        some = (each for each in self.placed if each.path in folders)
        return {each.path: each.again() for each in some}

    def _count(self) -> None:
        """Count what has become of the points that were to compute: the store says it."""
        now, summary = self._now(), self.summary
        for task in self.todo:
            there = now[task.placed.path]
            status = there.statuses[task.points]
            for code, number in zip(*np.unique(status, return_counts=True), strict=True):
                if code != PENDING:
                    summary.counts[STATUS_NAMES[code]] += int(number)
            ended = status != PENDING
            summary.computed += int(ended.sum())
            summary.pending += int((~ended).sum())
            summary.cpu_seconds += float(there.cpu_seconds[task.points][ended].sum())

    def _left(self) -> str:
        """What a run that ends early leaves to the next one."""
        name = self.study.study
        with suppress(HdicaError, OSError):
            now = self._now()
            count = sum(
                int((now[t.placed.path].statuses[t.points] == PENDING).sum()) for t in self.todo
            )
            if not count:
                return f"all points of {name} are computed, and a rerun publishes them"
            return f"{count} points of {name} are pending, and a rerun computes them"
        return "what was committed is kept"

    def _blocks(self, todo: list[Task], shown: Progress) -> Iterator[Block]:
        """Blocks to compute, without the points that another run has committed meanwhile."""
        for task in todo:
            if (begun := time.monotonic()) >= self.next_look:
                self.there = {path: each.statuses for path, each in self._now().items()}
                took = time.monotonic() - begun
                self.next_look = begun + took + max(LEAST_LOOK, took / LOOK_SHARE)
            placed, points = task.placed, task.points
            if (now := self.there.get(placed.path)) is not None:
                points = points[now[points] == placed.statuses[points]]
                shown.advance(
                    task.points.size - points.size,
                    task.seconds * (1 - points.size / task.points.size),
                )
            if points.size:
                yield block_of(placed, points)

    def _here(self, shown: Progress) -> list[Task]:
        """Compute blocks in a process of this machine as long as no cluster is worth it.

        What is left is judged by the cost model, corrected by the time that the blocks so far have
        taken. Where a cluster would pay if its workers' libraries were loaded, they are loaded
        meanwhile. Returns the tasks that are left.
        """
        settings, todo = self.settings, self.todo
        if settings.kind in ("scheduler", "slurm") or settings.mode == "local":
            return todo
        gained = 0.0 if settings.kind == "serial" else 1 - 1 / settings.workers
        left, modelled, taken = sum(task.seconds for task in todo), 0.0, 0.0
        with worker_here() as worker:
            for number, task in enumerate(todo):
                gain = gained * left * (taken / modelled if modelled else 1.0)
                if gain > start_seconds():
                    return todo[number:]
                if gain > WARM_START:
                    start_loading()
                started = time.perf_counter()
                for block in self._blocks([task], shown):
                    if not self._one_here(block, worker, shown):
                        return []
                left -= task.seconds
                # The first block may have had to load or even to compile code.
                if number:
                    modelled, taken = modelled + task.seconds, taken + time.perf_counter() - started
        return []

    def _one_here(self, block: Block, worker: Worker, shown: Progress) -> bool:
        """Compute one block; whether it is worth to go on with others."""
        try:
            run_block(block, self.care, worker, shown.note)
            shown.advance(block.size, block.seconds)
        except Unwritable:
            raise
        except Incomplete as exc:
            return self._lose(block, str(exc))
        return True

    def _lose(self, block: Block, why: str) -> bool:
        """Note a block that could not be computed; whether others may be."""
        points = "1 point" if block.size == 1 else f"{block.size} points"
        self.summary.lost.append(f"a block of {block.label} ({points}): {why}")
        return len(self.summary.lost) < MOST_LOST

    def _distributed(self, todo: list[Task], shown: Progress) -> None:
        """Compute blocks on a cluster."""
        settings = self.settings
        patience = Patience(
            settings.patience, settings.kind != "local", shown.note, self._committed
        )
        with ExitStack() as cluster:
            client = _connected(cluster, settings, len(todo))
            cluster.enter_context(_ended_at_once(client))
            blocks = self._blocks(todo, shown)
            for block, failure in spread(client, blocks, self.care, patience):
                if failure is None:
                    shown.advance(block.size, block.seconds)
                    continue
                if isinstance(failure, Unwritable):
                    # Each of the others would end like this, too.
                    raise failure
                if not self._lose(block, _why(failure, client)) or client.status != "running":
                    return


def _connected(cluster: ExitStack, settings: ClusterSettings, blocks: int) -> Any:
    """A client, until the end of ``cluster``."""

    def begin() -> Any:
        # A local cluster that is half made cannot be closed; the others may wait for hours.
        with unbroken() if settings.kind == "local" else nullcontext():
            return cluster.enter_context(connect(settings, blocks))

    with suppress(RuntimeError, OSError):  # once more, if a worker has died as it started
        return begin()
    try:
        return begin()
    except (RuntimeError, OSError) as exc:
        text = " ".join(str(exc).split()) or type(exc).__name__
        raise Incomplete(f"the workers did not start: {text[:200]}{unguarded()}") from exc


@contextmanager
def _ended_at_once(client: Any) -> Iterator[None]:
    """Kill the processes of a local cluster if the body raises: a worker that hangs never closes.

    Nothing is lost by it but the blocks in flight.
    """
    try:
        yield
    except BaseException:
        # What connections report as they break is no news.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        for nanny in getattr(client.cluster, "workers", {}).values():
            with suppress(AttributeError, TypeError, OSError):  # not a nanny, or no process
                nanny.close_gracefully("the run ends")  # or it would start another worker
                os.kill(nanny.pid, signal.SIGKILL)
        raise


def _why(failure: Exception, client: Any) -> str:
    """Why a block has no result, in a few words."""
    kind = type(failure).__name__
    if kind in ("CancelledError", "CommClosedError", "FutureCancelledError"):
        return NO_SCHEDULER
    if kind == "KilledWorker":
        return f"its workers were killed again and again{_by_memory(client)}"
    text = " ".join(str(failure).split())
    return text if isinstance(failure, HdicaError) else f"{kind}: {text[:200]}"


def _by_memory(client: Any) -> str:
    """Whether workers were ended for their memory, as their nannies report to the scheduler."""
    with suppress(Exception):
        events = aside(client.get_events, "worker-restart-memory", seconds=LOOK)
        most = max(event["rss"] for _, event in events)
        return f", beyond their memory ({most / 2**20:.0f} MiB were in use)"
    return ""
