"""Run a study: compute what is pending, block by block, wherever Dask runs."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, Incomplete, Removed, Stopped, Unwritable
from hdica.process.compiled import refuse_interpreter
from hdica.process.private import remove_ended_scratch
from hdica.status import BEFORE
from hdica.sweep.files import blocks, store
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.paths import work_path
from hdica.sweep.files.writing import removed, written
from hdica.sweep.run.another import refuse_another
from hdica.sweep.run.block import Again, BlockSummary
from hdica.sweep.run.company import taking_part
from hdica.sweep.run.hand import Compute, in_place
from hdica.sweep.run.plan import Placed, check_room, prepare
from hdica.sweep.run.progress import Progress, Wanted, report
from hdica.sweep.run.signals import aside, heeding, unbroken
from hdica.sweep.run.spread import LOOK, NO_SCHEDULER, Patience, Task, spread
from hdica.sweep.run.working_lock import locked
from hdica.sweep.study.checks import methods_of
from hdica.sweep.study.study import Study
from hdica.sweep.workers.care import USUAL, Care
from hdica.sweep.workers.cluster import cluster_settings, connect, ready
from hdica.sweep.workers.local import WARM_START, start_loading, start_seconds, unguarded
from hdica.sweep.workers.settings import ClusterSettings
from hdica.systems.compiling import compile_seconds
from hdica.systems.registry import check_installed, system_named

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

    def add(self, summary: BlockSummary) -> None:
        """Count one finished block."""
        self.computed += summary.points
        self.counts.update(summary.counts)
        self.cpu_seconds += summary.cpu_seconds

    @property
    def complete(self) -> bool:
        """Whether nothing of this shard is pending."""
        return not self.pending


def _check_shard(shard: tuple[int, int]) -> None:
    index, count = shard
    if count < 1 or not 0 <= index < count:
        raise HdicaError(f"shard = {index}/{count} is not allowed (i/m with 0 <= i < m)")


def tasks(placed: list[Placed], shard: tuple[int, int] = (0, 1), care: Care = USUAL) -> list[Task]:
    """Blocks of a shard that hold pending points of the study, most expensive first.

    Blocks are numbered over all segments, so that a shard means the same blocks in every
    process that planned the same study.
    """
    index, count = shard
    found, number = [], 0
    for one in placed:
        working = store.open_segment(one.path)
        pending = one.rows[one.statuses() == store.PENDING]
        blocks, points = np.unique(pending // working.block, return_counts=True)
        cost = one.segment.seconds_per_point
        # Workers elsewhere may have been started in another folder.
        path = one.path.absolute()
        for block, size in zip(blocks.tolist(), points.tolist(), strict=True):
            if (number + block) % count == index:
                found.append(Task(path, block, size, size * cost, care))
        number += working.blocks
    return sorted(found, key=lambda task: -task.seconds)


def _reset_failed(placed: list[Placed], out: str | Path, every: bool) -> None:
    """Make failed points pending again: every one, or those that only their machine failed."""
    for one in placed:
        failed = one.rows[one.statuses() == store.FAILED]
        if not failed.size:
            continue
        working = store.open_segment(one.path)
        with locked(out):
            for block in np.unique(failed // working.block).tolist():
                _reset(working, block, failed, every)


def _reset(working: store.Working, block: int, failed: NDArray[np.int64], every: bool) -> None:
    span = working.span(block)
    places = np.isin(np.arange(span.start, span.stop), failed)
    if not every:
        reasons = working.read("reason", span)
        places &= [BEFORE.match(str(reason)) is not None for reason in reasons]
    if places.any():
        blocks.make_pending(working, block, places)


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
    own: bool = False,
) -> RunSummary:
    """Compute the pending points of a study, or of one shard of it. Nothing is published.

    Killed at any moment it loses at most the blocks in flight; the next call goes on. Two calls at
    once compute the same bits: each leaves out what the other has finished.

    Parameters
    ----------
    study
        A validated study.
    out
        Path of the published store; the working store lies beside it.
    workers
        Processes, where ``cluster`` does not say it.
    shard
        ``(i, m)``: blocks whose number is i modulo m.
    cluster
        Where Dask runs: settings, a mapping ``{mode, workers, address, ...}`` or one word such as
        ``"slurm"`` or ``"tls://host:8786"``.
    progress
        False for silence; otherwise a bar on a terminal and sparse lines elsewhere. A stream gets
        lines with bars beside them.
    retry_failed
        Compute failed points again.
    block
        Points a block of a new segment; chosen from the cost model if None.
    replace
        Whether the results of another study may be there: what is published is replaced then.
    own
        Whether this process has nothing else to do, as that of ``hdica run``. Then blocks that
        are computed here are computed in a fork of it, which may be killed whatever they do;
        otherwise in a thread, so that what is compiled for one run is there for the next.

    Returns
    -------
    RunSummary
        What was computed, and what is still pending because it could not be.
    """
    _check_shard(shard)
    if not replace:
        refuse_another(study, out)
    methods = methods_of(study)
    if any(e.startswith("hdica.finite") for name in study.methods for e in methods[name].engines):
        refuse_interpreter()
    settings = ready(cluster_settings(cluster, workers))
    _check_known(study.system, settings)
    if settings.kind not in ("scheduler", "slurm"):
        check_room(study, out)
    remove_ended_scratch()
    with heeding(), ExitStack() as part:
        with written(work_path(out)):
            alone = part.enter_context(taking_part(out))
            placed = prepare(study, out, settings.workers, block, replace)
            _reset_failed(placed, out, retry_failed)
        todo = tasks(placed, shard, Care(settings.budget))
        if not alone and shard == (0, 1):
            # The other run begins at the other end: what it finishes is not computed here.
            todo.reverse()
        return _run(study, todo, settings, progress, placed, shard, own)


def _check_known(system: str, settings: ClusterSettings) -> None:
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


def _run(
    study: Study,
    todo: list[Task],
    settings: ClusterSettings,
    progress: Wanted,
    placed: list[Placed],
    shard: tuple[int, int],
    own: bool,
) -> RunSummary:
    points, seconds = sum(t.points for t in todo), sum(t.seconds for t in todo)
    name, first, summary = study.study, _first(placed, study.system), RunSummary()
    try:
        with report(name, points, seconds, progress, settings.workers, first) as shown:
            with in_place(own) as compute:
                begun = _here(todo, settings, summary, shown, compute)
            if begun < len(todo):
                _distributed(todo[begun:], settings, summary, shown)
        summary.pending = sum(t.points for t in tasks(placed, shard)) if summary.lost else 0
    except (Incomplete, Stopped, store.DamageError) as exc:
        if isinstance(exc, Removed):
            raise
        if gone := next((one.path for one in placed if not (one.path / METADATA).is_file()), None):
            raise removed(gone) from exc
        if not isinstance(exc, store.DamageError):
            exc.args = (f"{exc}; {_left(name, placed, shard)}",)
        raise
    return summary


def _first(placed: list[Placed], system: str) -> str:
    """What comes before the first point, in words; empty if everything is compiled."""
    methods = {one.segment.method.name: one.segment.method for one in placed}
    waits = compile_seconds(system_named(system), methods.values())
    return "compiling, once" if waits else ""


def _left(name: str, placed: list[Placed], shard: tuple[int, int]) -> str:
    """What a run that ends early leaves to the next one."""
    with suppress(HdicaError, OSError):
        count = sum(task.points for task in tasks(placed, shard))
        if not count:
            return f"all points of {name} are computed, and a rerun publishes them"
        return f"{count} points of {name} are pending, and a rerun computes them"
    return "what was committed is kept"


def _here(
    todo: list[Task],
    settings: ClusterSettings,
    summary: RunSummary,
    shown: Progress,
    compute: Compute,
) -> int:
    """Compute blocks in this process as long as no cluster is worth it; returns how many.

    What is left is judged by the cost model, corrected by what the blocks so far have taken.
    Where a cluster would pay if its workers' libraries were loaded, they are, meanwhile.
    """
    if settings.kind in ("scheduler", "slurm") or settings.mode == "local":
        return 0
    gained = 0.0 if settings.kind == "serial" else 1 - 1 / settings.workers
    left, modelled, taken = sum(task.seconds for task in todo), 0.0, 0.0
    for number, task in enumerate(todo):
        gain = gained * left * (taken / modelled if modelled else 1.0)
        if gain > start_seconds():
            return number
        if gain > WARM_START:
            start_loading()
        started = time.perf_counter()
        try:
            _one_here(task, compute, summary, shown)
            shown.advance(task.points, task.seconds)
        except Unwritable:
            raise
        except Incomplete as exc:
            summary.lost.append(_lost(task, str(exc)))
            if len(summary.lost) >= MOST_LOST:
                return len(todo)
        left -= task.seconds
        # The first block may have had to load or even to compile code.
        if number:
            modelled, taken = modelled + task.seconds, taken + time.perf_counter() - started
    return len(todo)


def _one_here(task: Task, compute: Compute, summary: RunSummary, shown: Progress) -> None:
    """Compute one block, again for every point that stands in the way of the others."""
    while True:
        try:
            summary.add(compute(task.path, task.block, task.care))
            return
        except Again as why:
            shown.note(str(why))
            summary.add(why.summary)
            task = task.again(why)


def _distributed(
    todo: list[Task], settings: ClusterSettings, summary: RunSummary, shown: Progress
) -> None:
    before = {path: store.open_segment(path).status() for path in {task.path for task in todo}}
    _on_cluster(todo, settings, summary, shown)
    for path, status in before.items():
        summary.add(_account(path, [task.block for task in todo if task.path == path], status))


def _account(path: Path, blocks: list[int], before: NDArray[np.uint8]) -> BlockSummary:
    """What has become of the points of some blocks that were pending before: the store knows."""
    working = store.open_segment(path)
    span = slice(0, before.size)
    asked = np.zeros(before.size // working.block, dtype=bool)
    asked[blocks] = True
    after = working.read("status", span)
    ended = asked.repeat(working.block) & (before == store.PENDING) & (after != store.PENDING)
    cpu = working.read("cpu_seconds", span)[ended] if ended.any() else np.zeros(0)
    counts = {store.STATUS_NAMES[s]: int((after[ended] == s).sum()) for s in range(1, 4)}
    return BlockSummary(int(ended.sum()), counts, float(cpu.sum()))


def _on_cluster(
    todo: list[Task], settings: ClusterSettings, summary: RunSummary, shown: Progress
) -> None:
    patience = Patience(settings.patience, settings.kind != "local", shown.note)
    with ExitStack() as cluster:
        client = _connected(cluster, settings, len(todo))
        cluster.enter_context(_ended_at_once(client))
        killed = _spread(client, todo, patience, summary, shown)
        if killed and client.status == "running":
            shown.note(f"{len(killed)} blocks have ended their workers, and are computed apart")
            _spread(client, killed, patience, summary, shown)


def _spread(
    client: Any, todo: list[Task], patience: Patience, summary: RunSummary, shown: Progress
) -> list[Task]:
    """Compute blocks on a cluster; returns those that are to be tried apart from its workers.

    These have ended worker after worker: one of their points has, or they waited beside it.
    """
    killed: list[Task] = []
    for task, failure in spread(client, todo, patience=patience):
        if failure is None:
            shown.advance(task.points, task.seconds)
            continue
        if isinstance(failure, Unwritable):
            # Each of the others would end like this too.
            raise failure
        if _is_killed(failure) and not task.care.apart and not _by_memory(client):
            killed.append(replace(task, care=replace(task.care, apart=True)))
            continue
        summary.lost.append(_lost(task, _why(failure, client)))
        if len(summary.lost) >= MOST_LOST or client.status != "running":
            return []
    return killed


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
        # What connections have to say as they break is no news.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        for nanny in getattr(client.cluster, "workers", {}).values():
            with suppress(AttributeError, TypeError, OSError):  # not a nanny, or no process
                nanny.close_gracefully("the run ends")  # or it would start another worker
                os.kill(nanny.pid, signal.SIGKILL)
        raise


def _is_killed(failure: Exception) -> bool:
    return type(failure).__name__ == "KilledWorker"


def _why(failure: Exception, client: Any) -> str:
    """Why a block has no result, in a few words."""
    kind = type(failure).__name__
    if kind in ("CancelledError", "CommClosedError", "FutureCancelledError"):
        return NO_SCHEDULER
    if _is_killed(failure):
        return f"its workers were killed again and again{_by_memory(client)}"
    text = " ".join(str(failure).split())
    return text if isinstance(failure, HdicaError) else f"{kind}: {text[:200]}"


def _by_memory(client: Any) -> str:
    """Whether workers were ended for their memory, as their nannies tell the scheduler."""
    with suppress(Exception):
        told = aside(client.get_events, "worker-restart-memory", seconds=LOOK)
        most = max(event["rss"] for _, event in told)
        return f", beyond their memory ({most / 2**20:.0f} MiB were in use)"
    return ""


def _lost(task: Task, why: str) -> str:
    return f"block {task.block} of {task.path.name} ({task.points} points): {why}"
