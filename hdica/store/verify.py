"""Verify the stores of a study: every file against its digest, every point against its data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hdica.status import DONE
from hdica.store import paths, published, sealed
from hdica.store.blocks import NAME, read_block
from hdica.store.files import PARTIAL, DamageError, TornError, inside, walk
from hdica.store.provenance import several
from hdica.store.results import open_results, stable
from hdica.store.standing import working_status
from hdica.store.working import UnreadableStudy, described, recorded_study
from hdica.study.segment import NAME as SEGMENT

WHOLE, INCOMPLETE, DAMAGED = 0, 1, 3


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong."""

    sentence: str  # what is wrong, in which file, and with which points
    path: Path  # the file, or the folder of a segment
    stray: bool = False  # whether it does not belong there
    torn: bool = False  # whether it is cut short and nothing else: the next run mends it unasked


@dataclass(frozen=True)
class Verdict:
    """What :func:`verify` has seen."""

    damaged: tuple[str, ...]  # one sentence each: file and points
    incomplete: tuple[str, ...]  # one sentence each: what is still missing
    files: int  # how many published files were compared with their digest
    points: int  # how many the study has
    notes: tuple[str, ...] = ()  # one sentence each, about results that are not damaged

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
        return {"verdict": self.word, **asdict(self)}


def segments_in(out: str | Path) -> list[Path]:
    """Every segment of a working store, also of studies that were run before."""
    work = paths.work_path(out)
    if not work.is_dir():
        return []
    folders = (path for path in work.iterdir() if path.is_dir() and not path.is_symlink())
    return sorted(path for path in folders if SEGMENT.fullmatch(path.name))


def working_damage(out: str | Path) -> list[Damage]:
    """Everything wrong in the working store; empty if there is none."""
    work = paths.work_path(out)
    damage = study_damage(out)
    files = (paths.LOCK, paths.RUNNING, paths.STUDY)
    for path in sorted(work.iterdir()) if work.is_dir() else ():
        # Not by an earlier listing: a run that begins makes folders meanwhile.
        segment = SEGMENT.fullmatch(path.name) and path.is_dir()
        ours = segment or path.name in files or PARTIAL.fullmatch(path.name)
        if path.is_symlink() or not ours:
            damage.append(Damage(f"{path} does not belong to {work}", path, stray=True))
        elif segment:
            damage += _segment_damage(path)
    return damage


def _segment_damage(folder: Path) -> Iterator[Damage]:
    if (folder / paths.METADATA).is_file():
        raise sealed.SchemaError(f"{folder.parent} is of an earlier version of hdica (remove it)")
    for path in sorted(folder.iterdir()):
        if PARTIAL.fullmatch(path.name):
            continue
        if not NAME.fullmatch(path.name) or (path.is_dir() and not path.is_symlink()):
            yield Damage(f"{path} does not belong to {folder.name}", path, stray=True)
            continue
        try:
            if read_block(path).about.get("segment") != folder.name:
                text = f"{path} is damaged, it is of another segment ({described(path)})"
                yield Damage(text, path)
        except (DamageError, OSError) as exc:
            text = f"{exc} ({described(path)})"
            yield Damage(text, path, torn=isinstance(exc, TornError))


def study_damage(out: str | Path) -> list[Damage]:
    """What is wrong with the record of the study that a working store holds."""
    file = paths.work_path(out) / paths.STUDY
    try:
        there = recorded_study(out) is not None or not segments_in(out)
    except DamageError as exc:
        return [Damage(f"{exc} (all points)", file)]
    except UnreadableStudy:
        return []
    lost = not there and paths.results_path(out).is_dir()
    return [Damage(f"{file} is missing (all points)", file)] if lost else []


def record_damage(out: str | Path) -> list[Damage]:
    """Records of finished shards that were changed."""
    damage = []
    for file in paths.shard_records(out):
        try:
            shard = (sealed.read_sealed(file) or {}).get("shard")
            if not isinstance(shard, list) or file.stem != "-of-".join(map(str, shard)):
                raise DamageError(f"{file} is damaged, it is no record of this shard")
        except DamageError as exc:
            damage.append(Damage(f"{exc} (the points of a shard)", file))
    return damage


def published_damage(out: str | Path, manifest: sealed.Document | None) -> list[Damage]:
    """Published files that are missing, do not belong there or differ from their digests."""
    root = paths.results_path(out)
    if not root.is_dir():
        missing = f"{root} is missing though it was published (all points)"
        return [Damage(missing, root / paths.METADATA)] if manifest else []
    try:
        files = published.bound_digests(root)
        if manifest is not None and manifest["version"] != published.version_of(files):
            raise DamageError(f"{root / paths.METADATA} is not what its manifest says (all points)")
        published.learned(published.PublishedStore(root, files))
    except DamageError as exc:
        damage, file = [Damage(str(exc), root / paths.METADATA)], root / published.DIGESTS
        try:
            published.named_digests(root)  # by themselves, where the root does not name them
        except DamageError as own:
            damage += [Damage(str(own), file)] if str(file) not in str(exc) else []
        return damage
    return [*_by_digests(root, files)]


def _by_digests(root: Path, files: dict[str, str]) -> Iterator[Damage]:
    """Files of a store that differ from their digests."""
    for name, expected in files.items():
        try:
            right = published.file_digest(inside(root, name)) == expected
            what = "" if right else f"{root / name} is damaged, {published.WRONG}"
        except FileNotFoundError:
            what = f"{root / name} is missing"
        except (DamageError, OSError) as exc:
            what = str(exc)
        if what:
            yield Damage(f"{what} ({published.describe(root, name)})", root / name)
    there, strange = walk(root)
    for name in (*strange, *there):
        if name not in files:
            yield Damage(f"{root / name} does not belong to {root}", root / name, stray=True)


def _lost(out: str | Path) -> Iterator[str]:
    """Points that are published as done and that the working store lacks."""
    from hdica.store.publish import sources

    study = recorded_study(out) if paths.work_path(out).is_dir() else None
    if study is None:
        return
    tree = open_results(out)
    if tree.attrs.get("study_hash") != study.content_hash():
        return
    for source in sources(study, out):
        there = tree[source.method.name]["status"].to_numpy().reshape(-1)
        if lost := int(((there == DONE) & (source.status != DONE)).sum()):
            yield (
                f"{lost} points of {source.method.name} are published and no longer in "
                f"{paths.work_path(out)} (hdica run --retry-failed computes them again)"
            )


def _incomplete(out: str | Path, manifest: sealed.Document | None) -> Iterator[str]:
    root, work, study = paths.results_path(out), paths.work_path(out), recorded_study(out)
    if study is None and segments_in(out):
        yield f"{work / paths.STUDY} is missing (hdica run STUDY writes it again)"
    if manifest is None:
        there = "its manifest is missing" if root.is_dir() else "it is not there"
        yield f"{root} is not published yet: {there}"
        return
    if study is not None and manifest["full_hash"] != study.full_hash():
        yield f"{root} was published before the study or its code was changed"
    if pending := sealed.count_in(manifest, "pending"):
        yield f"{pending} points of {root} are pending"
    if failed := sealed.count_in(manifest, "failed"):
        yield f"{failed} points of {root} failed (hdica run STUDY --retry-failed tries again)"
    yield from _lost(out)


def look(out: str | Path) -> tuple[sealed.Document | None, list[Damage]]:
    """The manifest, if it is there and whole, and everything wrong in both stores and beside."""
    manifest, damage = None, []
    try:
        manifest = sealed.read_manifest(out)
    except DamageError as exc:
        damage.append(Damage(str(exc), paths.manifest_path(out)))
    damage += [*working_damage(out), *record_damage(out), *published_damage(out, manifest)]
    return manifest, damage


def counts_in(root: Path) -> dict[str, dict[str, int]]:
    """How many points of each group of a published store have each status."""
    import zarr

    counts = {}
    for name in sorted(path.name for path in root.iterdir() if path.is_dir()):
        status = zarr.open_array(root / name / "status", mode="r")[...]
        counts[name] = sealed.status_counts(np.asarray(status))
    return counts


def verify(path: str | Path) -> Verdict:
    """Compare every published file with its digest, and every point with its data."""
    return stable(path, lambda: _verdict(path))


def _verdict(path: str | Path) -> Verdict:
    paths.require_store(path)
    root, work = paths.results_path(path), paths.work_path(path)
    manifest, damage = look(path)
    damaged = [each.sentence for each in damage]
    points, incomplete = 0, []
    if not damaged:
        if manifest is None and not work.is_dir() and root.is_dir():
            manifest = {"counts": counts_in(root)}  # of a copy without its manifest
        try:
            working = working_status(path) if work.is_dir() else None
            if working is not None:
                points = working.total("points")
                if working.total("pending"):
                    incomplete.append(f"{working.total('pending')} points are not computed yet")
            incomplete += list(_incomplete(path, manifest))
        except UnreadableStudy as exc:
            incomplete.append(str(exc))
    if manifest is not None and not points:
        points = sum(sum(counts.values()) for counts in manifest["counts"].values())
    files = len(published.bound_digests(root)) if manifest and not damaged else 0
    notes: list[str] = []
    if not damaged and manifest is not None:
        with suppress(OSError, ValueError, KeyError, TypeError):
            attributes = json.loads((root / paths.METADATA).read_bytes())["attributes"]
            notes.append(several(str(attributes["processors"])))
    if (old := root.with_suffix(".versions")).is_dir():
        notes.append(f"{old} was written by an earlier hdica, and nothing reads it (remove it)")
    return Verdict(tuple(damaged), tuple(incomplete), files, points, tuple(filter(None, notes)))
