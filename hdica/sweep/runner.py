"""Run a study: compute what is pending, block by block, wherever Dask runs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.sweep import store
from hdica.sweep.block import BlockSummary, compute_block
from hdica.sweep.cluster import (
    WARM_START,
    ClusterSettings,
    cluster_settings,
    connect,
    start_loading,
    start_seconds,
)
from hdica.sweep.plan import Placed, locked, prepare
from hdica.sweep.progress import Progress, report
from hdica.sweep.spread import NO_SCHEDULER, Task, spread
from hdica.sweep.study import Study

MOST_LOST = 8
"""Blocks that may be lost before a run gives up: then it is no accident of single blocks."""


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
    summary = RunSummary()
    with report(study.study, points, seconds, progress) as shown:
        begun = _here(todo, settings, summary, shown)
        if begun < len(todo):
            _distributed(todo[begun:], settings, summary, shown)
    summary.pending = sum(t.points for t in tasks(placed, shard)) if summary.lost else 0
    return summary


def _here(todo: list[Task], settings: ClusterSettings, summary: RunSummary, shown: Progress) -> int:
    """Compute blocks in this process as long as no cluster is worth it; returns how many.

    What is left is judged by the cost model, corrected by what the blocks so far have taken.
    Where a cluster would pay if its workers' libraries were loaded, they are, meanwhile.
    """
    if settings.kind == "scheduler" or settings.mode == "local":
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
        summary.add(compute_block(task.path, task.block))
        shown.advance(task.points, task.seconds)
        left -= task.seconds
        # The first block may have had to load or even to compile code.
        if number:
            modelled, taken = modelled + task.seconds, taken + time.perf_counter() - started
    return len(todo)


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
    with connect(settings) as client:
        for task, failure in spread(client, todo):
            if failure is None:
                shown.advance(task.points, task.seconds)
                continue
            summary.lost.append(_lost(task, failure))
            if len(summary.lost) >= MOST_LOST or client.status != "running":
                return


def _lost(task: Task, exc: Exception) -> str:
    name = type(exc).__name__
    reason = {
        "KilledWorker": "its workers were killed again and again",
        "CancelledError": NO_SCHEDULER,
        "CommClosedError": NO_SCHEDULER,
        "FutureCancelledError": NO_SCHEDULER,
    }.get(name)
    if reason is None:
        text = " ".join(str(exc).split())
        reason = text if isinstance(exc, HdicaError) else f"{name}: {text[:200]}"
    return f"block {task.block} of {task.path.name} ({task.points} points): {reason}"
