"""Plan a study: what there is to compute, what it costs, and the places it gets in the store."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from hdica.sweep import store
from hdica.sweep.keys import find_rows
from hdica.sweep.paths import read_json, results_path, work_path, write_text
from hdica.sweep.segment import Segment, segments_of
from hdica.sweep.study import Study, kept_in, study_from

LEAST_SECONDS, MOST_SECONDS = 0.2, 2.0
"""Work in a block: enough to hide a task and its chunks, little enough to lose to a kill."""
DRIVEN_SECONDS = 0.008
"""Work in a block for each worker, so that the driver of many, at 1.6 ms a block, is not busy."""
MOST_POINTS = 4096
SHARING = 32
"""Least points a block that share one draw of the noise, if there are as many cells."""
MOST_BYTES = 16 * 2**20
"""Results in a block: a worker holds a block in memory, and a reader at least one."""


@dataclass(frozen=True)
class SegmentPlan:
    """What one segment asks for.

    Parameters
    ----------
    method, n
        What computes it.
    points, pending
        All points, and those that are not computed yet.
    seconds_per_point
        From the method's cost model, on one core.
    bytes_per_point
        Results of one point, uncompressed.
    block
        Points a block.
    """

    method: str
    n: int | None
    points: int
    pending: int
    seconds_per_point: float
    bytes_per_point: int
    block: int

    @property
    def bytes(self) -> int:
        """Results of all points, uncompressed."""
        return self.points * self.bytes_per_point

    @property
    def seconds(self) -> float:
        """Cost of the pending points on one core."""
        return self.pending * self.seconds_per_point

    @property
    def blocks(self) -> int:
        """Blocks that the pending points need at least."""
        return -(-self.pending // self.block)


@dataclass(frozen=True)
class Plan:
    """What a study asks for, before anything runs.

    Parameters
    ----------
    study
        Name of the study.
    study_hash
        Digest of everything that determines its numbers.
    segments
        One entry a method and n.
    keeps
        Which methods keep what beyond the order parameters, in words.
    """

    study: str
    study_hash: str
    segments: tuple[SegmentPlan, ...]
    keeps: str = ""

    @property
    def points(self) -> int:
        """All points."""
        return sum(s.points for s in self.segments)

    @property
    def pending(self) -> int:
        """Points that are not computed yet."""
        return sum(s.pending for s in self.segments)

    @property
    def seconds(self) -> float:
        """Cost of the pending points on one core."""
        return sum(s.seconds for s in self.segments)

    @property
    def bytes(self) -> int:
        """Results of all points, uncompressed."""
        return sum(s.bytes for s in self.segments)

    @property
    def blocks(self) -> int:
        """Blocks that the pending points need at least."""
        return sum(s.blocks for s in self.segments)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        names = (
            "method", "n", "points", "pending", "seconds", "bytes", "bytes_per_point", "block",
            "blocks",
        )  # fmt: skip
        return {
            "study": self.study,
            "study_hash": self.study_hash,
            "keeps": self.keeps,
            **{name: getattr(self, name) for name in names if hasattr(self, name)},
            "segments": [{name: getattr(s, name) for name in names} for s in self.segments],
        }


@dataclass(frozen=True)
class Placed:
    """A segment and where its points lie in the working store.

    Parameters
    ----------
    segment
        The segment.
    path
        Its directory; it may not exist yet.
    rows
        Place of every point of the segment, -1 where it has none.
    """

    segment: Segment
    path: Path
    rows: NDArray[np.int64]

    def statuses(self) -> NDArray[np.uint8]:
        """Status of every point of the segment, in order."""
        found = np.zeros(self.rows.size, dtype=np.uint8)
        placed = self.rows >= 0
        if placed.any():
            found[placed] = store.open_segment(self.path).status()[self.rows[placed]]
        return found


def block_points(
    seconds_per_point: float, points: int, workers: int, bytes_per_point: int = 0
) -> int:
    """Points a block: 0.2 to 2 s of work, at least 4 blocks a worker where the work allows it.

    Large points make smaller blocks, down to one point; and so that each worker gets as many, a
    block may be up to half as large.

    Parameters
    ----------
    seconds_per_point
        Cost of a point on one core.
    points
        Points of the segment.
    workers
        Processes that will compute it.
    bytes_per_point
        Results of a point, uncompressed.
    """
    share = points * seconds_per_point / (4 * max(1, workers))
    target = min(max(MOST_SECONDS, workers * DRIVEN_SECONDS), max(LEAST_SECONDS, share))
    most = min(MOST_POINTS, MOST_BYTES // max(1, bytes_per_point))
    block = int(max(1, min(most, math.floor(target / seconds_per_point))))
    if points <= block:
        return block
    # As many blocks for each worker, so that none computes the last one alone.
    rounds = math.ceil(points / (workers * block))
    return max(math.ceil(block / 2), math.ceil(points / (workers * rounds)))


def _block(segment: Segment, workers: int) -> int:
    size = segment.bytes_per_point
    points = block_points(segment.seconds_per_point, segment.size, workers, size)
    if segment.method.noise == "own":
        return points
    # A draw serves the points of its block alone, however long they take.
    return max(points, min(segment.cells.size, SHARING, max(1, MOST_BYTES // size)))


def place(study: Study, out: str | Path) -> list[Placed]:
    """Find every point of a study in the working store, without changing it."""
    work = work_path(out)
    placed = []
    for segment in segments_of(study):
        path = work / segment.name
        if path.exists():
            rows = find_rows(store.open_segment(path).keys(), segment.keys())
        else:
            rows = np.full(segment.size, -1, dtype=np.int64)
        placed.append(Placed(segment, path, rows))
    return placed


def plan(study: Study, out: str | Path, workers: int = 1) -> Plan:
    """What a study asks for. Nothing is written.

    Parameters
    ----------
    study
        A validated study.
    out
        Path of the published store; what its working store already holds is not counted as
        pending.
    workers
        Processes that will compute it.
    """
    plans = []
    for placed in place(study, out):
        segment = placed.segment
        cost = segment.seconds_per_point
        if placed.path.exists():
            block = store.open_segment(placed.path).block
        else:
            block = _block(segment, workers)
        pending = int((placed.statuses() == store.PENDING).sum())
        size, name = segment.bytes_per_point, segment.method.name
        plans.append(SegmentPlan(name, segment.n, segment.size, pending, cost, size, block))
    return Plan(study.study, study.content_hash(), tuple(plans), kept_in(study))


@contextmanager
def locked(out: str | Path) -> Iterator[Path]:
    """Hold the working store's lock: one process plans, publishes or repairs at a time."""
    work = work_path(out)
    work.mkdir(parents=True, exist_ok=True)
    # The system drops the lock with the process that holds it, however it ends.
    with FileLock(work / ".lock"):
        yield work


def prepare(
    study: Study, out: str | Path, workers: int = 1, block: int | None = None
) -> list[Placed]:
    """Give every point of a study a place in the working store.

    Points that have one keep it; new points start in a fresh block. Calling it again changes
    nothing, so shards of one study may all call it.

    Parameters
    ----------
    study
        A validated study.
    out
        Path of the published store.
    workers
        Processes that will compute it, for the size of a new segment's blocks.
    block
        Points a block of a new segment; chosen from the cost model if None.
    """
    results_path(out)
    with locked(out) as work:
        for partial in work.glob(".*.partial"):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
        text = study.model_dump_json()
        if not _same_text(work / "study.json", text):
            write_text(work / "study.json", text)
        return [_place_all(placed, workers, block) for placed in place(study, out)]


def _same_text(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _in_order(placed: Placed) -> NDArray[np.int64]:
    """Points without a place, in the order of their places.

    Points that share noise lie side by side, all cells of one seed, so that a block draws it once.
    """
    missing = np.flatnonzero(placed.rows < 0)
    if placed.segment.method.noise == "own":
        return missing
    return missing[np.argsort(missing % placed.segment.per_cell, kind="stable")]


def _place_all(placed: Placed, workers: int, block: int | None) -> Placed:
    segment, missing = placed.segment, _in_order(placed)
    if not missing.size:
        return placed
    if not placed.path.exists():
        store.create(placed.path, segment, block or _block(segment, workers))
    start = store.open_segment(placed.path).size

    def systems(first: int, last: int) -> list[str]:
        cells, code = np.unique(missing[first:last] // segment.per_cell, return_inverse=True)
        texts = segment.cells.systems(cells)
        return [texts[c] for c in code.tolist()]

    seeds = np.full(missing.size, -1, dtype=np.int64)
    if segment.seeds:
        seeds = np.asarray(segment.seeds, dtype=np.int64)[missing % segment.per_cell]
    store.append(placed.path, segment.keys()[missing], systems, seeds)
    rows = placed.rows.copy()
    rows[missing] = start + np.arange(missing.size)
    return Placed(segment, placed.path, rows)


def planned_study(out: str | Path) -> Study | None:
    """The study that was planned last in the working store, None if there is none."""
    path = work_path(out) / "study.json"
    return study_from(read_json(path)) if path.exists() else None
