"""Verify the stores of a study: every file against its digest, every point against its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.sweep import published, store
from hdica.sweep.dense import runs
from hdica.sweep.manifest import file_digest, pending_in, read_manifest
from hdica.sweep.paths import DamageError, require_store, results_path, work_path
from hdica.sweep.plan import planned_study
from hdica.sweep.segment import Segment, segments_of
from hdica.sweep.status import working_status

WHOLE, INCOMPLETE, DAMAGED = 0, 1, 3


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong.

    Parameters
    ----------
    sentence
        What, in which file, and which points are concerned.
    path
        Segment or file.
    array
        Array of the segment, empty if its metadata is unreadable.
    block
        Block of that array; a chunk of the planner's arrays counts as its first block.
    """

    sentence: str
    path: Path
    array: str = ""
    block: int = -1


@dataclass(frozen=True)
class Verdict:
    """What :func:`verify` found.

    Parameters
    ----------
    damaged
        One sentence each: file and points.
    incomplete
        One sentence each: what is still missing.
    files
        How many published files were compared with their digest.
    points
        How many points the study has.
    """

    damaged: tuple[str, ...]
    incomplete: tuple[str, ...]
    files: int
    points: int

    @property
    def code(self) -> int:
        """0 whole, 1 incomplete, 3 damaged."""
        return DAMAGED if self.damaged else INCOMPLETE if self.incomplete else WHOLE

    @property
    def word(self) -> str:
        """``whole``, ``incomplete`` or ``damaged``."""
        return {WHOLE: "whole", INCOMPLETE: "incomplete", DAMAGED: "damaged"}[self.code]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "verdict": self.word,
            "damaged": list(self.damaged),
            "incomplete": list(self.incomplete),
            "files": self.files,
            "points": self.points,
        }


def _reads(working: store.Working, name: str, first: int, last: int) -> bool:
    try:
        working.read(name, slice(working.span(first).start, working.span(last).stop))
    except DamageError:
        return False
    return True


def _unreadable(working: store.Working, name: str, blocks: NDArray[np.int64]) -> list[int]:
    """Which of some blocks do not decode; long runs are read at once and looked into if need be."""
    found: list[int] = []
    for first, last in runs(blocks, max(1, store.SPAN // working.block_bytes(name))):
        if not _reads(working, name, first, last):
            found += [b for b in range(first, last + 1) if not _reads(working, name, b, b)]
    return found


def segment_damage(path: Path) -> Iterator[Damage]:
    """Everything wrong in one segment of a working store."""
    try:
        working = store.open_segment(path)
        for name in working.names:
            working.array(name)
    except DamageError as exc:
        yield Damage(str(exc), path)
        return
    for name in store.PLANNER_ARRAYS:
        yield from _planner_damage(working, name)
    everything = np.arange(working.blocks)
    bad = {*_unreadable(working, "status", everything)}
    for block in sorted(bad):
        yield _damage(working, "status", block, "is damaged")
    bad |= {*_unreadable(working, "key", everything)}
    claimed = _claimed(working, bad)
    for name in working.committed:
        there = np.array([working.chunk(name, int(b)).exists() for b in claimed], dtype=bool)
        for block in claimed[~there].tolist():
            yield _damage(working, name, block, "is missing though its status is done")
        for block in _unreadable(working, name, claimed[there]):
            yield _damage(working, name, block, "is damaged, its checksum is wrong")
    for block in _unreadable(working, "reason", claimed):
        yield _damage(working, "reason", block, "is damaged, its checksum is wrong")


def _planner_damage(working: store.Working, name: str) -> Iterator[Damage]:
    blocks = working.array(name).chunks[0] // working.block
    for first in range(0, working.blocks, blocks):
        last = min(first + blocks, working.blocks) - 1
        file = working.chunk(name, first // blocks)
        there = file.exists()
        if there and _reads(working, name, first, last):
            continue
        places = f"places {working.span(first).start} to {working.span(last).stop - 1}"
        sentence = f"{file} is {'damaged' if there else 'missing'} ({places})"
        yield Damage(sentence, working.path, name, first)


def _claimed(working: store.Working, but: set[int]) -> NDArray[np.int64]:
    """Blocks that hold points which are not pending, without the unreadable ones."""
    claims = [
        block
        for first, last in runs(np.array([b for b in range(working.blocks) if b not in but]), 256)
        for block in _claims(working, first, last)
    ]
    return np.array(claims, dtype=np.int64)


def _claims(working: store.Working, first: int, last: int) -> list[int]:
    span = slice(working.span(first).start, working.span(last).stop)
    used = working.read("key", span).any(axis=1) & (working.read("status", span) != store.PENDING)
    any_used = used.reshape(-1, working.block).any(axis=1)
    return [first + int(place) for place in np.flatnonzero(any_used)]


def _damage(working: store.Working, name: str, block: int, what: str) -> Damage:
    points = store.describe(working, block)
    return Damage(f"{working.chunk(name, block)} {what} ({points})", working.path, name, block)


def working_segments(out: str | Path) -> list[tuple[Segment, Path]]:
    """Segments of the study planned last that exist in its working store."""
    study = planned_study(out)
    if study is None:
        return []
    named = [(s, work_path(out) / s.name) for s in segments_of(study)]
    return [(segment, path) for segment, path in named if path.exists()]


def working_damage(out: str | Path) -> list[Damage]:
    """Everything wrong in the working store; empty if there is none."""
    return [d for _, path in working_segments(out) for d in segment_damage(path)]


def published_damage(out: str | Path, manifest: dict[str, Any]) -> list[Damage]:
    """Published files that are missing or differ from the manifest."""
    root = results_path(out)
    found = []
    for name, digest in manifest["files"].items():
        file = root / name
        if file.is_file() and file_digest(file) == digest:
            continue
        what = "damaged, its checksum is wrong" if file.is_file() else "missing"
        points = published.describe(root, name)
        found.append(Damage(f"{file} is {what}{f' ({points})' if points else ''}", file))
    return found


def _incomplete(out: str | Path, manifest: dict[str, Any] | None) -> Iterator[str]:
    root, study = results_path(out), planned_study(out)
    if manifest is None:
        there = "its manifest is missing" if root.is_dir() else "it is not there"
        yield f"{root} is not published yet: {there}"
        return
    if study is not None and manifest["full_hash"] != study.full_hash():
        yield f"{root} was published before the study or its code was changed"
    if pending_in(manifest):
        yield f"{pending_in(manifest)} points of {root} are pending"
    failed = sum(counts.get("failed", 0) for counts in manifest["counts"].values())
    if failed:
        yield f"{failed} points of {root} failed (hdica run STUDY --retry-failed tries again)"


def verify(path: str | Path) -> Verdict:
    """Compare every published file with its digest, and every point with its data.

    Parameters
    ----------
    path
        Path of the published store.

    Returns
    -------
    Verdict
        Whole, incomplete or damaged, with one sentence for each thing that is wrong.

    Raises
    ------
    HdicaError
        If there is neither a published nor a working store.
    """
    require_store(path)
    damaged: list[str] = []
    manifest: dict[str, Any] | None = None
    try:
        manifest = read_manifest(path)
        damaged += [d.sentence for d in working_damage(path)]
    except DamageError as exc:
        damaged.append(str(exc))
    if manifest is not None:
        damaged += [d.sentence for d in published_damage(path, manifest)]
    points, incomplete = 0, []
    if not damaged:
        working = working_status(path) if work_path(path).is_dir() else None
        if working is not None:
            points = working.total("points")
            if working.total("pending"):
                incomplete.append(f"{working.total('pending')} points are not computed yet")
        incomplete += list(_incomplete(path, manifest))
    if manifest is not None and not points:
        points = sum(sum(counts.values()) for counts in manifest["counts"].values())
    files = len(manifest["files"]) if manifest else 0
    return Verdict(tuple(damaged), tuple(incomplete), files, points)
