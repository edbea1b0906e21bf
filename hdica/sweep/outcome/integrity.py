"""Verify the stores of a study: every file against its digest, every point against its data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.sweep.files import blocks, store
from hdica.sweep.files.guarded import METADATA, array_of
from hdica.sweep.files.manifest import bound_digests, count_in, read_manifest
from hdica.sweep.files.paths import (
    DamageError,
    TornError,
    require_store,
    results_path,
    shard_records,
    walk,
    work_path,
)
from hdica.sweep.files.places import WRONG, describe
from hdica.sweep.files.processors import is_noted, notes, several
from hdica.sweep.files.sealed import read_sealed
from hdica.sweep.outcome.damage import Damage, published_damage, versions_damage
from hdica.sweep.outcome.looks import settled
from hdica.sweep.outcome.published import status_counts
from hdica.sweep.outcome.status import working_status
from hdica.sweep.outcome.versions import strangers_in, versions_path
from hdica.sweep.run.plan import STUDY, planned_study
from hdica.sweep.study.segment import NAME

WHOLE, INCOMPLETE, DAMAGED = 0, 1, 3


@dataclass(frozen=True)
class Verdict:
    """What :func:`verify` found."""

    damaged: tuple[str, ...]  # one sentence each: file and points
    incomplete: tuple[str, ...]  # one sentence each: what is still missing
    files: int  # how many published files were compared with their digest
    points: int  # how many the study has
    notes: tuple[str, ...] = ()  # one sentence each: what to know of results that are not damaged

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
            "notes": list(self.notes),
        }


def segment_damage(path: Path) -> Iterator[Damage]:
    """Everything wrong in one segment of a working store."""
    try:
        working = store.open_segment(path)
    except DamageError as exc:
        yield Damage(str(exc), path, torn=isinstance(exc, TornError))
        return
    yield from _strays(working)
    if wrong := list(_metadata_damage(working)):
        yield from wrong
        return
    for name in store.PLANNER_ARRAYS:
        yield from _planner_damage(working, name)
    for block in range(working.blocks):
        yield from _block_damage(working, block)


def _metadata_damage(working: store.Working) -> Iterator[Damage]:
    """Metadata of arrays that are damaged, or of the segment, from which all arrays differ then."""
    path = working.path
    found: dict[str, Damage] = {}
    for name in working.names:
        try:
            working.array(name)
        except DamageError as exc:
            # The keys come first; where they cannot be read, no other array says anything else.
            one = Damage(str(exc), path, name, torn=isinstance(exc, TornError))
            found.setdefault(one.sentence, one)
    if len(found) < len(working.names):
        yield from found.values()
        return
    what = f"it is of another segment (all points of {path.name})"
    yield Damage(f"{path / METADATA} is damaged, {what}", path)


def _block_damage(working: store.Working, block: int) -> Iterator[Damage]:
    """Everything wrong in one block."""
    name = "status"
    try:
        found = blocks.committed(working, block)
        if found is None:
            return
        used = _used(working, block)
        if used is None or not (used & (found.status != store.PENDING)).any():
            return
        blocks.check_points(working, block, found.commit)
    except DamageError as exc:
        yield _damage(working, name, block, exc)
        return
    for name in (*working.committed, "reason"):
        try:
            blocks.chunk(working, name, block)
        except DamageError as exc:
            yield _damage(working, name, block, exc)


def _used(working: store.Working, block: int) -> NDArray[np.bool_] | None:
    """Which places of a block hold points; None where the keys cannot be read, which is told."""
    try:
        return np.asarray(working.read("key", working.span(block)).any(axis=1))
    except DamageError:
        return None


def _strays(working: store.Working) -> Iterator[Damage]:
    """What lies in a segment and is none of its files."""
    files, strange = walk(working.path)
    for name in strange:
        yield Damage(f"{working.path / name} is no regular file", working.path, stray=name)
    metadata = {METADATA, *(f"{name}/{METADATA}" for name in working.names)}
    for name in files:
        if name not in metadata and array_of(name) not in working.names:
            sentence = f"{working.path / name} does not belong to {working.path.name}"
            yield Damage(sentence, working.path, stray=name)


def _planner_damage(working: store.Working, name: str) -> Iterator[Damage]:
    each = working.array(name).chunks[0] // working.block
    for first in range(0, working.blocks, each):
        last = min(first + each, working.blocks) - 1
        try:
            working.read(name, slice(working.span(first).start, working.span(last).stop))
        except DamageError as exc:
            yield _damage(working, name, first, exc)


def _damage(working: store.Working, name: str, block: int, exc: DamageError) -> Damage:
    return Damage(str(exc), working.path, name, block, torn=isinstance(exc, TornError))


def segments_in(out: str | Path) -> list[Path]:
    """Every segment of a working store, also of studies that were planned earlier."""
    work = work_path(out)
    if not work.is_dir():
        return []
    named = (p for p in work.iterdir() if "-" in p.name and not p.name.startswith("."))
    # What stands in place of a segment's folder is one, too, but no file of somebody else.
    return sorted(p for p in named if p.is_dir() or p.is_symlink() or NAME.fullmatch(p.name))


def working_damage(out: str | Path) -> list[Damage]:
    """Everything wrong in the working store; empty if there is none."""
    work, found = work_path(out), study_damage(out)
    for file in notes(work):
        if not is_noted(file):
            found.append(Damage(f"{file} is damaged, {WRONG} (no point)", file))
    return found + [d for path in segments_in(out) for d in segment_damage(path)]


def study_damage(out: str | Path) -> list[Damage]:
    """What is wrong with the record of the study that a working store holds."""
    file = work_path(out) / STUDY
    try:
        known = planned_study(out) is not None or not segments_in(out)
    except DamageError as exc:
        return [Damage(f"{exc} (all points)", file)]
    lost = not known and results_path(out).is_dir()
    return [Damage(f"{file} is missing (all points)", file)] if lost else []


def record_damage(out: str | Path) -> list[Damage]:
    """Records of finished shards that were changed."""
    found = []
    for file in shard_records(out):
        try:
            shard = (read_sealed(file) or {}).get("shard")
            if not isinstance(shard, list) or file.stem != "-of-".join(map(str, shard)):
                raise DamageError(f"{file} is damaged, it is no record of this shard")
        except DamageError as exc:
            found.append(Damage(f"{exc} (the points of a shard)", file))
    return found


def _lost_commits(out: str | Path, manifest: dict[str, Any]) -> Iterator[Damage]:
    """Blocks that were done when the store was published, and whose status is missing now.

    A status that was never written says the same as one that was lost, so only what was known
    to be finished can be missed.
    """
    if count_in(manifest, "pending"):
        return
    for name, (identity, places) in manifest["segments"].items():
        try:
            working = store.open_segment(work_path(out) / name)
            if working.attrs["id"] != identity:
                continue  # made anew since then
            used = (working.keys()[:places] != b"").reshape(-1, working.block).any(axis=1)
            blocks = np.flatnonzero(used).tolist()
            lost = [block for block in blocks if not working.chunk("status", block).exists()]
        except DamageError:
            continue  # found already, or given up
        for block in lost:
            file, points = working.chunk("status", block), describe(working, block)
            text = f"{file} is missing though it was published ({points})"
            yield Damage(text, working.path, "status", block)


def _incomplete(out: str | Path, manifest: dict[str, Any] | None) -> Iterator[str]:
    root, work, study = results_path(out), work_path(out), planned_study(out)
    for path in strangers_in(out):
        yield f"{path} does not belong to {versions_path(out)} and is left alone (move it away)"
    if study is None and segments_in(out):
        yield f"{work / STUDY} is missing (hdica run STUDY writes it again)"
    if manifest is None:
        there = "its manifest is missing" if root.is_dir() else "it is not there"
        yield f"{root} is not published yet: {there}"
        return
    if study is not None and manifest["full_hash"] != study.full_hash():
        yield f"{root} was published before the study or its code was changed"
    if pending := count_in(manifest, "pending"):
        yield f"{pending} points of {root} are pending"
    if failed := count_in(manifest, "failed"):
        yield f"{failed} points of {root} failed (hdica run STUDY --retry-failed tries again)"


def all_damage(out: str | Path, manifest: dict[str, Any] | None) -> list[Damage]:
    """Everything wrong in both stores and in the records beside them."""
    found = working_damage(out) + record_damage(out)
    found += published_damage(out, manifest) + versions_damage(out)
    return found if manifest is None else [*found, *_lost_commits(out, manifest)]


def _alone(path: str | Path) -> dict[str, Any] | None:
    """What a manifest says, of a store that is not damaged and has none nor a working store.

    So is a version, and what was copied without what lies beside it.
    """
    root = results_path(path)
    if work_path(path).is_dir() or not root.is_dir():
        return None
    return {"files": bound_digests(root), "counts": status_counts(root)}


def verify(path: str | Path) -> Verdict:
    """Compare every published file with its digest, and every point with its data.

    What is found while the study is being published is looked at again.
    """
    return settled(path, lambda: _verdict(path), lambda verdict: verdict.code == WHOLE)


def _verdict(path: str | Path) -> Verdict:
    require_store(path)
    damaged: list[str] = []
    manifest: dict[str, Any] | None = None
    try:
        manifest = read_manifest(path)
    except DamageError as exc:
        damaged.append(str(exc))
    damaged += [d.sentence for d in all_damage(path, manifest)]
    points, incomplete = 0, []
    if not damaged:
        manifest = manifest or _alone(path)
        working = working_status(path) if work_path(path).is_dir() else None
        if working is not None:
            points = working.total("points")
            if working.total("pending"):
                incomplete.append(f"{working.total('pending')} points are not computed yet")
        incomplete += list(_incomplete(path, manifest))
    if manifest is not None and not points:
        points = sum(sum(counts.values()) for counts in manifest["counts"].values())
    files = len(manifest["files"]) if manifest else 0
    note = "" if damaged or manifest is None else several(_processors(Path(path)))
    return Verdict(tuple(damaged), tuple(incomplete), files, points, (note,) if note else ())


def _processors(path: Path) -> str:
    """What published results say of the processors that computed them."""
    try:
        return str(json.loads((path / "zarr.json").read_bytes())["attributes"]["processors"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
