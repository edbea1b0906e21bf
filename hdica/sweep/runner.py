"""Run a study: compute what is pending, block by block, wherever Dask runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.sweep import store
from hdica.sweep.block import BlockSummary, compute_block
from hdica.sweep.cluster import ClusterSettings, cluster_settings, connect
from hdica.sweep.plan import Placed, locked, prepare
from hdica.sweep.progress import Progress, report
from hdica.sweep.study import Study

WINDOW = 4
"""Blocks in flight a worker."""
WORTH_A_CLUSTER = 5.0
"""Seconds of work below which a local cluster would cost more than it gains."""
MOST_LOST = 8
"""Blocks that may be lost before a run gives up: then it is no accident of single blocks."""


@dataclass(frozen=True)
class Task:
    """One block to compute.

    Parameters
    ----------
    path
        Segment.
    block
        Index of the block in it.
    points
        Pending points.
    seconds
        What the cost model says of them.
    """

    path: Path
    block: int
    points: int
    seconds: float


@dataclass
class RunSummary:
    """What a run did.

    Parameters
    ----------
    computed
        Points computed now.
    counts
        How many of them ended with each status.
    cpu_seconds
        What they cost.
    pending
        Points of this shard that are still pending.
    lost
        One sentence a block that could not be computed.
    """

    computed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0
    pending: int = 0
    lost: list[str] = field(default_factory=list)

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


def tasks(placed: list[Placed], shard: tuple[int, int] = (0, 1)) -> list[Task]:
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
        for block, size in zip(blocks.tolist(), points.tolist(), strict=True):
            if (number + block) % count == index:
                found.append(Task(one.path, block, size, size * cost))
        number += working.blocks
    return sorted(found, key=lambda task: -task.seconds)


def reset_failed(placed: list[Placed]) -> int:
    """Make failed points pending again; returns how many."""
    count = 0
    for one in placed:
        working = store.open_segment(one.path)
        failed = one.rows[one.statuses() == store.FAILED]
        for block in np.unique(failed // working.block).tolist():
            status = working.read("status", working.span(block)).copy()
            status[status == store.FAILED] = store.PENDING
            store.write_array(working, "status", block, status)
        count += failed.size
    return count


def run(
    study: Study,
    out: str | Path,
    workers: int = 1,
    shard: tuple[int, int] = (0, 1),
    cluster: ClusterSettings | dict[str, Any] | None = None,
    progress: bool | None = None,
    retry_failed: bool = False,
    block: int | None = None,
) -> RunSummary:
    """Compute the pending points of a study, or of one shard of it. Nothing is published.

    Killed at any moment it loses at most the blocks in flight; the next call goes on.

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
        Where Dask runs: settings or a mapping ``{mode, workers, address}``.
    progress
        False for silence; otherwise a bar on a terminal and sparse lines elsewhere.
    retry_failed
        Compute failed points again.
    block
        Points a block of a new segment; chosen from the cost model if None.

    Returns
    -------
    RunSummary
        What was computed, and what is still pending because it could not be.

    Raises
    ------
    HdicaError
        If the cluster cannot be reached or a setting is wrong.
    DamageError
        If the working store is damaged.
    """
    _check_shard(shard)
    settings = cluster_settings(cluster, workers)
    placed = prepare(study, out, settings.workers, block)
    if retry_failed:
        with locked(out):
            reset_failed(placed)
    todo = tasks(placed, shard)
    points, seconds = sum(t.points for t in todo), sum(t.seconds for t in todo)
    compute = _serial if _in_process(settings, seconds) else _distributed
    summary = RunSummary()
    with report(study.study, points, seconds, progress) as shown:
        compute(todo, settings, summary, shown)
    summary.pending = sum(t.points for t in tasks(placed, shard)) if summary.lost else 0
    return summary


def _in_process(settings: ClusterSettings, seconds: float) -> bool:
    """Whether to compute here: asked for, nothing to do, or not worth a local cluster."""
    small = settings.mode == "auto" and not settings.external and seconds < WORTH_A_CLUSTER
    return settings.kind == "serial" or not seconds or small


def _serial(
    todo: list[Task], settings: ClusterSettings, summary: RunSummary, shown: Progress
) -> None:
    for task in todo:
        summary.add(compute_block(task.path, task.block))
        shown.advance(task.points, task.seconds)


def _distributed(
    todo: list[Task], settings: ClusterSettings, summary: RunSummary, shown: Progress
) -> None:
    with connect(settings) as client:
        width = WINDOW * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        for task, future in _window(client, todo, width):
            try:
                summary.add(future.result())
                shown.advance(task.points, task.seconds)
            except Exception as exc:
                summary.lost.append(_lost(task, exc))
                if len(summary.lost) >= MOST_LOST or client.status != "running":
                    return


def _window(client: Any, todo: list[Task], width: int) -> Iterator[tuple[Task, Any]]:
    """Submit blocks through a sliding window and yield them as they end."""
    from distributed import as_completed

    waiting = iter(todo)
    running: dict[Any, Task] = {}

    def submit(task: Task) -> Any:
        future = client.submit(compute_block, task.path, task.block, pure=False)
        running[future] = task
        return future

    ended = as_completed([submit(task) for task in islice(waiting, width)])
    for future in ended:
        yield running.pop(future), future
        following = next(waiting, None)
        if following is not None:
            ended.add(submit(following))


def _lost(task: Task, exc: Exception) -> str:
    name = type(exc).__name__
    reason = {
        "KilledWorker": "its workers were killed again and again",
        "CancelledError": "the Dask scheduler was lost",
        "FutureCancelledError": "the Dask scheduler was lost",
    }.get(name)
    if reason is None:
        text = " ".join(str(exc).split())
        reason = text if isinstance(exc, HdicaError) else f"{name}: {text[:200]}"
    return f"block {task.block} of {task.path.name} ({task.points} points): {reason}"
