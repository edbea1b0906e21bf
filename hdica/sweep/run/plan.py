"""Plan a study: what there is to compute, what it costs, and the places it gets in the store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.process.memory import refuse_little
from hdica.process.speed import pace
from hdica.sweep.files import store
from hdica.sweep.files.blocks import every_place
from hdica.sweep.files.paths import (
    DamageError,
    discard,
    manifest_path,
    no_link,
    read_regular,
    results_path,
    work_path,
    write_text,
)
from hdica.sweep.files.planned import append, check_whole, create
from hdica.sweep.files.sealed import read_sealed, sealed_text
from hdica.sweep.run.another import STUDY, refuse_another
from hdica.sweep.run.asked import Plan, SegmentPlan
from hdica.sweep.run.working_lock import locked
from hdica.sweep.study.keys import Keys, find_rows
from hdica.sweep.study.segment import Segment, segments_of
from hdica.sweep.study.study import Study, kept_in, study_from
from hdica.systems import registry
from hdica.systems.compiling import compile_seconds
from hdica.systems.points import check_memory

LEAST_SECONDS, MOST_SECONDS = 0.2, 2.0
"""Work in a block: enough to hide a task and its chunks, little enough to lose to a kill."""
DRIVEN_SECONDS = 0.008
"""Work in a block for each worker, so that the driver of many, at 1.6 ms a block, is not busy."""
MOST_BLOCKS, LONG_SECONDS = 2**16, 60.0
"""Blocks of a segment, and work in a block at most for that: each is files in every array."""
MOST_POINTS = 4096
SHARING = 32
"""Least points a block that share one draw of the noise, if there are as many cells."""
MOST_BYTES = 16 * 2**20
"""Results in a block: a worker holds a block in memory, and a reader at least one."""


@dataclass(frozen=True)
class Placed:
    """A segment and where its points lie in the working store."""

    segment: Segment
    path: Path  # its directory; it may not exist yet
    rows: NDArray[np.int64]  # place of every point of the segment, -1 where it has none

    def statuses(self) -> NDArray[np.uint8]:
        """Status of every point of the segment, in order."""
        found = np.zeros(self.rows.size, dtype=np.uint8)
        placed = self.rows >= 0
        if placed.any():
            found[placed] = every_place(store.open_segment(self.path), "status")[self.rows[placed]]
        return found


def block_points(
    seconds_per_point: float, points: int, workers: int, bytes_per_point: int = 0
) -> int:
    """Points a block: 0.2 to 2 s of work, at least 4 blocks a worker where the work allows it.

    Blocks are longer for many workers, and up to a minute where there would be very many of them.
    Large points make smaller blocks, down to one point; and so that each worker gets as many, a
    block may be up to half as large. Costs are those on one core, results are uncompressed.
    """
    work = points * seconds_per_point
    longest = max(MOST_SECONDS, workers * DRIVEN_SECONDS, min(LONG_SECONDS, work / MOST_BLOCKS))
    target = min(longest, max(LEAST_SECONDS, work / (4 * max(1, workers))))
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
    # One alone would take the time of all that a kernel computes side by side.
    points = max(points, min(segment.size, segment.method.lanes, max(1, MOST_BYTES // size)))
    if segment.method.noise == "own":
        return points
    # A draw serves the points of its block alone, however long they take.
    return max(points, min(segment.cells.size, SHARING, max(1, MOST_BYTES // size)))


def place(study: Study, out: str | Path) -> list[Placed]:
    """Find every point of a study in the working store, without changing it."""
    work = work_path(out)
    return [_placed(segment, work / segment.name) for segment in segments_of(study)]


def _placed(segment: Segment, path: Path, keys: Keys | None = None) -> Placed:
    """Where the points of a segment lie; their keys are computed if they are needed."""
    if path.exists():
        wanted = segment.keys() if keys is None else keys
        return Placed(segment, path, find_rows(store.open_segment(path).keys(), wanted))
    return Placed(segment, path, np.full(segment.size, -1, dtype=np.int64))


def plan(study: Study, out: str | Path | None = None, workers: int = 1) -> Plan:
    """What a study asks for, of workers that will compute it. Nothing is written.

    What the working store beside ``out`` already holds is not counted as pending; None stands for a
    study of which nothing is computed.
    """
    if out is None:
        asked = [_asked(segment, None, workers) for segment in segments_of(study)]
    else:
        asked = [_asked(placed.segment, placed, workers) for placed in place(study, out)]
    used = registry.methods_of(study.system, study.noise)
    methods = [used[name] for name in dict.fromkeys(one.method for one in asked if one.pending)]
    compiling = pace() * compile_seconds(registry.system_named(study.system), methods)
    kept, digest = kept_in(study), study.content_hash()
    notes = tuple(study.notes())
    return Plan(study.study, digest, tuple(asked), kept, compiling, pace(), notes)


def _asked(segment: Segment, placed: Placed | None, workers: int) -> SegmentPlan:
    """What one segment asks for, of which some points may have a place."""
    begun = placed is not None and placed.path.exists()
    block, pending = _block(segment, workers), segment.size
    if placed is not None and begun:
        block = store.open_segment(placed.path).block
        pending = int((placed.statuses() == store.PENDING).sum())
    return SegmentPlan(
        segment.method.name,
        segment.n,
        segment.size,
        pending,
        segment.seconds_per_point,
        segment.bytes_per_point,
        block,
        len(segment.outputs) + 2,
        1.0 if segment.method.fused else pace(),
        segment.memory,
        segment.prepares,
    )


def check_room(study: Study, out: str | Path) -> None:
    """Refuse pending points that this machine cannot hold, before anything is written."""
    refuse_little(f"a run of {study.study}")
    for segment in segments_of(study):
        try:
            check_memory(segment.memory, f"a point of {segment.label}", "smaller points")
        except HdicaError:
            if (_placed(segment, work_path(out) / segment.name).statuses() == store.PENDING).any():
                raise


def prepare(
    study: Study,
    out: str | Path,
    workers: int = 1,
    block: int | None = None,
    replace: bool = False,
) -> list[Placed]:
    """Give every point of a study a place in the working store.

    Points that have one keep it; new points start in a fresh block. Calling it again changes
    nothing, so shards of one study may all call it. The number of workers, or ``block`` if it is
    given, says how many points a new segment's blocks have. With ``replace`` the results of another
    study may be there; they are refused otherwise.
    """
    results_path(out)
    # Before the lock, because it takes long: shards that start together then wait for little.
    segments = [(segment, segment.keys()) for segment in segments_of(study)]
    with locked(out) as work:
        if not replace:
            # Again: two studies may have begun at once, and the first that comes here has the path.
            refuse_another(study, out)
        unfinished = f".{manifest_path(out).name}.*.partial"
        for partial in (*work.glob(".*.partial"), *work.parent.glob(unfinished)):
            discard(partial)
        text = sealed_text(study.model_dump(mode="json"))
        if read_regular(no_link(work / STUDY)) != text.encode():
            write_text(work / STUDY, text)
        return [
            _place_all(_placed(segment, work / segment.name, keys), keys, workers, block)
            for segment, keys in segments
        ]


def _in_order(placed: Placed) -> NDArray[np.int64]:
    """Points without a place, in the order of their places.

    Points that share noise lie side by side, all cells of one seed, so that a block draws it once.
    """
    missing = np.flatnonzero(placed.rows < 0)
    if placed.segment.method.noise == "own":
        return missing
    return missing[np.argsort(missing % placed.segment.per_cell, kind="stable")]


def _place_all(placed: Placed, keys: Keys, workers: int, block: int | None) -> Placed:
    segment, missing = placed.segment, _in_order(placed)
    if placed.path.exists():
        check_whole(store.open_segment(placed.path))
    if not missing.size:
        return placed
    if not placed.path.exists():
        create(placed.path, segment, block or _block(segment, workers))
    working = store.open_segment(placed.path)
    start = working.size

    def systems(first: int, last: int) -> list[str]:
        cells, code = np.unique(missing[first:last] // segment.per_cell, return_inverse=True)
        texts = segment.cells.systems(cells)
        return [texts[c] for c in code.tolist()]

    seeds = np.full(missing.size, -1, dtype=np.int64)
    if segment.seeds:
        seeds = np.asarray(segment.seeds, dtype=np.int64)[missing % segment.per_cell]
    append(working, keys[missing], systems, seeds)
    rows = placed.rows.copy()
    rows[missing] = start + np.arange(missing.size)
    return Placed(segment, placed.path, rows)


def planned_study(out: str | Path) -> Study | None:
    """The study that was planned last in the working store, None if there is none."""
    path = work_path(out) / STUDY
    content = read_sealed(path)
    try:
        return None if content is None else study_from(content)
    except HdicaError as exc:
        raise DamageError(f"{path} is no study that this version knows: {exc}") from exc
