"""A study before anything runs: its points, seconds and bytes, and its blocks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.process.machine import pace, refuse_little
from hdica.process.progress import span
from hdica.status import FAILED, PENDING
from hdica.store.working import Placed, place
from hdica.study.segment import Segment, segments_of
from hdica.study.study import Study, point_count, saved_in
from hdica.systems.arguments import check_memory

LEAST_SECONDS, MOST_SECONDS = 0.2, 2.0
"""Work in a block: enough to hide a task and its file, little enough to lose to a kill."""
DRIVEN_SECONDS = 0.008  # work in a block for each worker: the driver needs 1.6 ms a block
BLOCKS_EACH, FEW_WORKERS = 4, 16
"""Blocks of a worker at least where the work allows it, and workers that are counted at least."""
MOST_BLOCKS, LONG_SECONDS = 2**16, 60.0  # of a segment; work in a block at most for that
MOST_POINTS = 4096
SHARING = 32  # least points of a block that share one draw of the noise, if there are as many cells
MOST_BYTES = 16 * 2**20  # results in a block, which is in memory as a whole
BEGIN, START, LOAD, EACH_POINT = 2.2, 2.0, 0.5, 2e-5
"""Seconds of a command before its first point and after its last, those until workers compute, to
load what a method computes with, and to plan, store and publish a point."""


def duration(seconds: float) -> str:
    """A time for a person: ``0.3 s``, ``12 min``, ``3.2 h``."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    return span(seconds) if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def megabytes(size: float) -> str:
    """A size for a person: ``0.4 MB``, ``3.1 GB``."""
    if size < 1e5:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


@dataclass(frozen=True)
class SegmentPlan:
    """Points, cost and size of one segment."""

    method: str
    n: int | None
    points: int
    pending: int  # points that are not computed yet
    seconds_per_point: float  # from the method's cost model, on one core
    bytes_per_point: int  # results of one point, uncompressed
    block: int  # points a block
    pace: float = 1.0  # how many times longer a point takes on this processor
    memory: float = 0.0  # bytes that the largest point needs at least while it is computed
    prepares: Mapping[Hashable, float] = field(default_factory=dict)  # seconds, once a process

    def __str__(self) -> str:
        """One line for a person."""
        name = self.method if self.n is None else f"{self.method} n={self.n}"
        cost = f"{duration(self.seconds)}, {megabytes(self.bytes)}"
        return f"{name}: {self.points} points, {self.pending} pending, {cost}"

    @property
    def bytes(self) -> int:
        """Results of all points, uncompressed."""
        return self.points * self.bytes_per_point

    @property
    def seconds(self) -> float:
        """Cost of the pending points on one core."""
        return self.pending * self.seconds_per_point * self.pace

    @property
    def blocks(self) -> int:
        """Blocks that the pending points need."""
        return -(-self.pending // self.block)

    @property
    def files(self) -> int:
        """Files of the working store at the end, at least."""
        return -(-self.points // self.block)


@dataclass(frozen=True, repr=False)
class Plan:
    """Points, cost and size of a study, before anything runs; it prints as a table."""

    study: str
    study_hash: str  # digest of everything that determines its numbers
    segments: tuple[SegmentPlan, ...]  # one entry a method and n
    keeps: str = ""  # which methods keep what beyond the order parameters, in words
    pace: float = 1.0  # how many times longer all else takes on this processor
    notes: tuple[str, ...] = ()  # which assumptions of the rule the data do not meet

    @property
    def points(self) -> int:
        """All points."""
        return sum(s.points for s in self.segments)

    @property
    def pending(self) -> int:
        """Points that are not computed yet."""
        return sum(s.pending for s in self.segments)

    @property
    def preparing(self) -> float:
        """Seconds in which a process prepares what points share, such as averages over a source."""
        pending = [s.prepares for s in self.segments if s.pending]
        return self.pace * sum({k: v for one in pending for k, v in one.items()}.values())

    @property
    def seconds(self) -> float:
        """Cost of the pending points on one core, with what they share."""
        return sum(s.seconds for s in self.segments) + self.preparing

    def wait(self, workers: int = 1) -> float:
        """Seconds that a run takes about, from its start to what is published, once compiled."""
        if not self.pending:
            return BEGIN * self.pace
        points = self.seconds - self.preparing
        shared = START * self.pace + self.preparing + points / max(1, min(workers, self.blocks))
        storing = self.points * EACH_POINT
        loading = LOAD * len({s.method for s in self.segments if s.pending})
        once = (BEGIN + storing + loading) * self.pace
        return once + (self.seconds if workers == 1 else min(self.seconds, shared))

    @property
    def bytes(self) -> int:
        """Results of all points, uncompressed."""
        return sum(s.bytes for s in self.segments)

    @property
    def memory(self) -> float:
        """Bytes that the largest of the pending points needs at least while it is computed."""
        return max((s.memory for s in self.segments if s.pending), default=0.0)

    @property
    def blocks(self) -> int:
        """Blocks that the pending points need."""
        return sum(s.blocks for s in self.segments)

    @property
    def files(self) -> int:
        """Files of the working store at the end, at least."""
        return sum(s.files for s in self.segments)

    def __repr__(self) -> str:
        """A line for the whole study, and one for each method and n."""
        total = f"{self.study}: {self.points} points, {self.pending} pending"
        lines = [f"{total}, {duration(self.seconds)} on one core, {megabytes(self.bytes)}"]
        lines += [f"  {segment}" for segment in self.segments]
        lines += [f"  keeps {self.keeps}"] if self.keeps else []
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def as_dict(self, workers: int = 1) -> dict[str, Any]:
        """Plain data for JSON; ``wait`` is that of a run with so many workers."""
        names = (
            "method", "n", "points", "pending", "seconds", "bytes", "bytes_per_point", "memory",
            "block", "blocks", "files",
        )  # fmt: skip
        return {
            "study": self.study,
            "study_hash": self.study_hash,
            "keeps": self.keeps,
            "notes": list(self.notes),
            "wait": self.wait(workers),
            **{name: getattr(self, name) for name in names if hasattr(self, name)},
            "segments": [{name: getattr(s, name) for name in names} for s in self.segments],
        }


def block_points(
    seconds_per_point: float, points: int, bytes_per_point: int = 0, workers: int = 1
) -> int:
    """Points a block: 0.2 to 2 s of work, and four blocks a worker where the work allows it.

    Blocks are longer for hundreds of workers or where there would be very many, and smaller for
    large points.
    """
    work = points * seconds_per_point
    longest = max(MOST_SECONDS, workers * DRIVEN_SECONDS, min(LONG_SECONDS, work / MOST_BLOCKS))
    share = work / (BLOCKS_EACH * max(FEW_WORKERS, workers))
    target = min(longest, max(LEAST_SECONDS, share))
    most = min(MOST_POINTS, MOST_BYTES // max(1, bytes_per_point))
    return int(max(1, min(most, points, math.floor(target / seconds_per_point))))


def block_size(segment: Segment, workers: int = 1) -> int:
    """Points a block of a segment."""
    size, many = segment.bytes_per_point, max(1, segment.points)
    points = block_points(segment.seconds_per_point, many, size, workers)
    # One alone would take the time of all that a kernel computes side by side.
    points = max(points, min(many, segment.method.lanes, max(1, MOST_BYTES // size)))
    if segment.method.about.noise == "own":
        return points
    # A draw serves the points of its block alone, however long they take.
    return max(points, min(segment.cells.size, SHARING, max(1, MOST_BYTES // size)))


def plan(study: Study, out: str | Path | None = None) -> Plan:
    """Plan a study, of which the working store of ``out``, if there is one, has some points."""
    if out is None:
        pending = [(segment, segment.points) for segment in segments_of(study)]
    else:
        pending = [(p.segment, int((p.statuses == PENDING).sum())) for p in place(study, out)]
    segments = tuple(
        SegmentPlan(
            segment.method.name,
            segment.n,
            segment.points,
            points,
            segment.seconds_per_point,
            segment.bytes_per_point,
            block_size(segment),
            1.0 if segment.method.cost.fused else pace(),
            segment.memory,
            segment.prepares,
        )
        for segment, points in pending
    )
    keeps, notes = saved_in(study), tuple(study.notes())
    if study.refine is not None:
        most = f"at most {point_count(study)} points in all"
        notes = (*notes, f"more are added where {study.refine.analysis} changes, {most}")
    return Plan(study.study, study.content_hash(), segments, keeps, pace(), notes)


def check_room(study: Study, placed: list[Placed]) -> None:
    """Refuse pending points that need more memory than there is, before anything is written."""
    refuse_little(f"a run of {study.study}")
    for each in placed:
        segment = each.segment
        try:
            check_memory(segment.memory, f"a point of {segment.label}", "smaller points")
        except HdicaError:
            if (each.statuses == PENDING).any():
                raise


class Task(NamedTuple):
    """Pending points of a segment that make a block."""

    placed: Placed
    points: NDArray[np.int64]  # numbers in the segment, in the order in which they are computed

    @property
    def seconds(self) -> float:
        """What the cost model says of them, on one core."""
        return self.points.size * self.placed.segment.seconds_per_point

    def unchanged(self, statuses: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Those of its points to which statuses of the segment give what they had when planned."""
        return self.points[statuses[self.points] == self.placed.statuses[self.points]]


def tasks(
    placed: list[Placed],
    shard: tuple[int, int] = (0, 1),
    retry_failed: bool = False,
    block: int | None = None,
    workers: int = 1,
) -> list[Task]:
    """Blocks of the pending points of a shard, most expensive first; ``block`` is their points.

    Segments are cut into stripes, which are numbered over all segments; a shard has every stripe
    whose number fits. So shards of one study are the same in every process, whatever is computed
    already, and however many workers there are.
    """
    index, count = shard
    blocks: list[Task] = []
    number = 0
    for each in placed:
        size = block or block_size(each.segment)
        order = np.arange(each.segment.size, dtype=np.int64)
        if each.segment.method.about.noise != "own":  # points that share it are side by side
            order = np.argsort(order % each.segment.per_cell, kind="stable")
        open_ = np.isin(each.statuses, (PENDING, FAILED) if retry_failed else (PENDING,))
        stripes = (np.arange(order.size) // size + number) % count
        chosen = order[(stripes == index) & open_[order]]
        most = block or block_size(each.segment, workers)
        blocks += [Task(each, chosen[k : k + most]) for k in range(0, chosen.size, most)]
        number += -(-order.size // size)
    return sorted(blocks, key=lambda task: -task.seconds)
