"""Verify the stores of a study, every file and every point, and repair what is damaged."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from hdica.errors import HdicaError
from hdica.status import DONE
from hdica.store import files, paths, published, sealed
from hdica.store.files import PARTIAL, DamageError, TornError
from hdica.store.provenance import several
from hdica.store.publish import exchange, grouped, new_store
from hdica.store.results import counted, open_results, stable
from hdica.store.sealed import NAME, read_block
from hdica.store.working import (
    Placed,
    UnreadableStudy,
    described,
    place,
    read_refined,
    recorded_study,
    unfinished,
)
from hdica.study.segment import NAME as SEGMENT
from hdica.study.study import Study, study_from


class Damage(NamedTuple):
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
    def word(self) -> str:
        """``whole``, ``incomplete`` or ``damaged``."""
        return "damaged" if self.damaged else "incomplete" if self.incomplete else "whole"

    @property
    def code(self) -> int:
        """Exit status: 0 whole, 1 incomplete, 3 damaged."""
        return {"whole": 0, "incomplete": 1, "damaged": 3}[self.word]

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
    damage += refined_damage(out)
    records = (paths.LOCK, paths.RUNNING, paths.STUDY, paths.REFINED)
    for path in sorted(work.iterdir()) if work.is_dir() else ():
        # Not by an earlier listing: a run that begins makes folders meanwhile.
        segment = SEGMENT.fullmatch(path.name) and path.is_dir()
        ours = segment or path.name in records or PARTIAL.fullmatch(path.name)
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


def refined_damage(out: str | Path) -> Iterator[Damage]:
    """What is wrong with the record of the cells that a refinement has chosen."""
    file = paths.work_path(out) / paths.REFINED
    try:
        read_refined(out)
    except DamageError as exc:
        text = f"{exc} (which points a refinement has added)"
        yield Damage(text, file, torn=isinstance(exc, TornError))


def record_damage(out: str | Path) -> Iterator[Damage]:
    """Records of finished shards that were changed."""
    for file in paths.shard_records(out):
        try:
            shard = (sealed.read_sealed(file) or {}).get("shard")
            if not isinstance(shard, list) or file.stem != "-of-".join(map(str, shard)):
                raise DamageError(f"{file} is damaged, it is no record of this shard")
        except DamageError as exc:
            yield Damage(f"{exc} (the points of a shard)", file)


def published_damage(out: str | Path, manifest: sealed.Document | None) -> list[Damage]:
    """Published files that are missing, do not belong there or differ from their digests."""
    root = paths.results_path(out)
    if not root.is_dir():
        missing = f"{root} is missing though it was published (all points)"
        return [Damage(missing, root / paths.METADATA)] if manifest else []
    try:
        digests = published.checked(root, manifest).digests
    except DamageError as exc:
        damage, file = [Damage(str(exc), root / paths.METADATA)], root / published.DIGESTS
        try:
            published.named_digests(root)  # by themselves, where the root does not name them
        except DamageError as own:
            damage += [Damage(str(own), file)] if str(file) not in str(exc) else []
        return damage
    return [*_by_digests(root, digests)]


def _by_digests(root: Path, digests: dict[str, str]) -> Iterator[Damage]:
    """Files of a store that differ from their digests."""
    for name, expected in digests.items():
        try:
            right = published.file_digest(files.inside(root, name)) == expected
            what = "" if right else f"{root / name} is damaged, {published.WRONG}"
        except FileNotFoundError:
            what = f"{root / name} is missing"
        except (DamageError, OSError) as exc:
            what = str(exc)
        if what:
            yield Damage(f"{what} ({published.describe(root, name)})", root / name)
    there, strange = files.walk(root)
    for name in (*strange, *there):
        if name not in digests:
            yield Damage(f"{root / name} does not belong to {root}", root / name, stray=True)


def _lost(study: Study, placed: list[Placed], out: str | Path) -> Iterator[str]:
    """Points that are published as done and that the working store lacks."""
    tree = open_results(out)
    if tree.attrs.get("study_hash") != study.content_hash():
        return
    if note := unfinished(study, out):
        yield note
        return
    for source in grouped(placed):
        there = tree[source.method.name]["status"].to_numpy().reshape(-1)
        if lost := int(((there == DONE) & (source.status != DONE)).sum()):
            yield (
                f"{lost} points of {source.method.name} are published and no longer in "
                f"{paths.work_path(out)} (hdica run --retry-failed computes them again)"
            )


def _incomplete(
    out: str | Path, manifest: sealed.Document | None, study: Study | None, placed: list[Placed]
) -> Iterator[str]:
    root, work = paths.results_path(out), paths.work_path(out)
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
    if study is not None:
        yield from _lost(study, placed, out)


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

    groups = sorted(path for path in root.iterdir() if path.is_dir())
    statuses = {path.name: zarr.open_array(path / "status", mode="r")[...] for path in groups}
    return {name: sealed.status_counts(np.asarray(status)) for name, status in statuses.items()}


def verify(path: str | Path) -> Verdict:
    """Compare every published file with its digest, and every point with its data."""
    return stable(path, lambda: _verdict(path))


def _verdict(path: str | Path) -> Verdict:
    paths.require_store(path)
    root, work = paths.results_path(path), paths.work_path(path)
    manifest, damage = look(path)
    damaged = tuple(each.sentence for each in damage)
    points, compared, incomplete, notes = 0, 0, list[str](), list[str]()
    if not damaged:
        if manifest is None and not work.is_dir() and root.is_dir():
            manifest = {"counts": counts_in(root)}  # of a copy without its manifest
        try:
            placed: list[Placed] = []
            if (study := recorded_study(path)) is not None:
                placed = place(study, path)
                working = counted(study, placed, path)
                points = working.total("points")
                if pending := working.total("pending"):
                    incomplete.append(f"{pending} points are not computed yet")
            incomplete += list(_incomplete(path, manifest, study, placed))
        except UnreadableStudy as exc:
            incomplete.append(str(exc))
        if manifest is not None:
            with suppress(OSError, ValueError, KeyError, TypeError):
                attributes = json.loads((root / paths.METADATA).read_bytes())["attributes"]
                notes.append(several(str(attributes["processors"])))
    if manifest is not None:
        with suppress(DamageError):  # then nothing could be compared
            compared = len(published.bound_digests(root))
    if manifest is not None and not points:
        points = sum(sum(counts.values()) for counts in manifest["counts"].values())
    if (old := root.with_suffix(".versions")).is_dir():
        notes.append(f"{old} was written by an earlier hdica, and nothing reads it (remove it)")
    return Verdict(damaged, tuple(incomplete), compared, points, tuple(filter(None, notes)))


def repair(path: str | Path) -> list[str]:
    """Make damaged points pending in both stores, and write records anew; a sentence for each.

    Nothing else is changed, nothing outside the stores is touched, and a file that is none of
    theirs is put aside.

    Raises
    ------
    HdicaError
        If the store is a copy without its manifest and its working store: nothing could restore it.
    """
    paths.require_store(path)
    # Without a lock, which would make a working store beside a copy.
    if not (damage := stable(path, lambda: look(path)[1])):
        return []
    if not paths.manifest_path(path).exists() and not paths.work_path(path).is_dir():
        raise HdicaError(
            f"{damage[0].sentence}; {paths.results_path(path)} is a copy without its manifest and "
            "its working store, and nothing here can restore it (copy it again)"
        )
    done: list[str] = []
    with files.written(paths.results_path(path)), paths.locked(path) as work:
        # Again, since damaged metadata hide what is wrong with the data.
        while new := [sentence for sentence in _repaired(path, work) if sentence not in done]:
            done += new
    return done


def _repaired(path: str | Path, work: Path) -> list[str]:
    """Repair everything that is seen to be damaged; what was done."""
    manifest, every = look(path)
    # What does not belong there first: a link could stand where a chunk goes.
    done = [_put_aside(path, damage) for damage in every if damage.stray]
    rest = [damage for damage in every if not damage.stray]
    public = [damage for damage in rest if damage.path.is_relative_to(paths.results_path(path))]
    for damage in rest:
        if damage.path == work / paths.STUDY:
            done.append(_repair_study(path, damage))
        elif damage not in public:
            files.discard(damage.path)
            what = ": its points are pending" if damage.path.is_relative_to(work) else ""
            if not what and damage.path != paths.manifest_path(path):
                what = ": it is withdrawn"  # a record of a shard
            done.append(f"{damage.sentence}{what}")
    if public:
        what = _repair_published(path, public, manifest)
        done += [f"{damage.sentence}: {what}" for damage in public]
    if done:
        # A workflow that kept them would believe the pending points finished.
        for record in paths.shard_records(path):
            files.discard(record)
    return done


def _put_aside(out: str | Path, damage: Damage) -> str:
    """Take away what does not belong to a store: a link goes, a file is kept beside the store."""
    file, root = damage.path, paths.results_path(out)
    if file.is_symlink() or not (file.is_file() or file.is_dir()):
        files.discard(file)
        return f"{damage.sentence}: it is removed"
    folder = files.no_link(root.with_suffix(".strays"))
    folder.mkdir(exist_ok=True)
    name = "/".join(file.parts[len(root.parent.parts) :])
    aside = folder / re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[-200:]
    while aside.exists():
        aside = aside.with_name(f"{aside.name}_")
    file.replace(aside)
    return f"{damage.sentence}: it is now {aside}"


def _repair_study(out: str | Path, damage: Damage) -> str:
    """Write the record of the study anew, from the published store if that has it."""
    files.discard(damage.path)
    try:
        root = paths.results_path(out)
        raw = published.PublishedStore(root, published.bound_digests(root)).load(paths.METADATA)
        attrs = sealed.parsed(raw or b"", root / paths.METADATA).get("attributes") or {}
        study = study_from(json.loads(attrs["study_yaml"]))
        sealed.write_sealed(damage.path, study.model_dump(mode="json"))
        return f"{damage.sentence}: it is written again from {root}"
    except (HdicaError, KeyError, ValueError):
        return f"{damage.sentence}: hdica run STUDY writes it again"


def _repair_published(
    out: str | Path, damages: list[Damage], manifest: sealed.Document | None
) -> str:
    """Take back published points in a copy of the store, or else the whole publication."""
    root = paths.results_path(out)
    names = [damage.path.relative_to(root).as_posix() for damage in damages]
    for name in names:
        if (root / name).is_symlink():
            files.discard_inside(root, name)
    # Files with values of points, and where these lie in their arrays.
    places: dict[str, tuple[slice, ...]] = {}
    for name in names:
        if (place := published.chunk_index(name)) is not None:
            group, array, index = place
            chunks = published.chunks_in(root, f"{group}/{array}")
            of_points = array in published.point_arrays(root, group)
            if chunks is not None and len(chunks.shape) == len(index) and of_points:
                places[name] = chunks.slices(index)
    if manifest is None or len(places) < len(names) or files.walk(root)[1]:
        files.discard(paths.manifest_path(out))
        if segments_in(out) and root.is_dir():
            # Nobody reads what is damaged in it where the one before the current one lies.
            files.discard(paths.previous_path(out))
            root.replace(paths.previous_path(out))
        return "the next run publishes again"
    with new_store(out) as partial:
        shutil.copytree(root, partial)
        for name, slices in places.items():
            _make_pending(partial, name, slices)
        about = {**manifest, "counts": counts_in(partial)}
        exchange(partial, out, about, published.bind(partial))
    return "its points are pending"


def _make_pending(root: Path, chunk: str, place: tuple[slice, ...]) -> None:
    """Make every point of a damaged chunk pending: status 0, all its values NaN."""
    import zarr

    group, array, *_ = chunk.split("/")
    opened = zarr.open_group(root / group, mode="r+", zarr_format=3, use_consolidated=False)

    def blank(name: str, place: tuple[slice, ...]) -> None:
        target = cast("zarr.Array", opened[name])
        target.with_config({"write_empty_chunks": True})[place or ...] = target.fill_value

    # The damaged chunk first, and whole: writing a part of it would have to read it.
    files.discard_inside(root, chunk)
    blank(array, place)
    status = published.chunks_in(root, f"{group}/status")
    depth = 0 if status is None else len(status.dims)
    for name in published.point_arrays(root, group):
        blank(name, place[:depth])


def mend(out: str | Path) -> list[str]:
    """Remove blocks of a working store that are cut short; a sentence for each of them."""
    if not paths.work_path(out).is_dir():
        return []
    with paths.locked(out):
        torn = [damage for damage in working_damage(out) if damage.torn]
        for damage in torn:
            files.discard(damage.path)
    return [f"{damage.sentence}: its points are pending" for damage in torn]
