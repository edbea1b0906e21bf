"""Verify the stores of a study: every file against its digest, every point against its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.sweep import published, store
from hdica.sweep.dense import read_block
from hdica.sweep.manifest import file_digest, pending_in, read_manifest
from hdica.sweep.paths import DamageError, results_path, work_path
from hdica.sweep.plan import planned_study
from hdica.sweep.segment import Segment, segments_of
from hdica.sweep.status import working_status

WHOLE, INCOMPLETE, DAMAGED = 0, 1, 3
PLANNER_ARRAYS = ("key", "parameters", "seed")


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


def _read(working: store.Working, name: str, span: slice) -> str:
    try:
        working.read(name, span)
    except DamageError as exc:
        return str(exc)
    return ""


def segment_damage(path: Path) -> Iterator[Damage]:
    """Everything wrong in one segment of a working store."""
    try:
        working = store.open_segment(path)
    except DamageError as exc:
        yield Damage(str(exc), path)
        return
    for name in PLANNER_ARRAYS:
        yield from _planner_damage(working, name)
    keys = np.zeros(working.size, dtype=bool)
    for block in range(working.blocks):
        span = working.span(block)
        wrong = _read(working, "status", span)
        if wrong:
            points = store.describe(working, block)
            file = working.chunk("status", block)
            yield Damage(f"{file} is damaged ({points})", path, "status", block)
            continue
        if _read(working, "key", span):
            continue
        keys[span] = working.read("key", span).any(axis=1)
        if (working.read("status", span)[keys[span]] != store.PENDING).any():
            yield from _block_damage(working, block)


def _planner_damage(working: store.Working, name: str) -> Iterator[Damage]:
    chunk = working.arrays[name].chunks[0]
    for start in range(0, working.size, chunk):
        span = slice(start, min(start + chunk, working.size))
        file = working.chunk(name, start // chunk)
        wrong = _read(working, name, span)
        if wrong or not file.exists():
            what = "damaged" if wrong else "missing"
            sentence = f"{file} is {what} (places {span.start} to {span.stop - 1})"
            yield Damage(sentence, working.path, name, start // working.block)


def _block_damage(working: store.Working, block: int) -> Iterator[Damage]:
    for name in working.committed:
        try:
            read_block(working, name, block)
        except DamageError as exc:
            yield Damage(str(exc), working.path, name, block)
    if _read(working, "reason", working.span(block)):
        file, points = working.chunk("reason", block), store.describe(working, block)
        yield Damage(f"{file} is damaged ({points})", working.path, "reason", block)


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
    root = results_path(path)
    if not root.is_dir() and not work_path(path).is_dir():
        raise HdicaError(f"{root} does not exist (hdica run writes it)")
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
