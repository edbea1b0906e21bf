"""Repair: damaged blocks and published points become pending, and the next run computes them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import cast

from hdica.errors import HdicaError
from hdica.store import files, paths, published
from hdica.store.publish import exchange, new_store, withdraw
from hdica.store.results import stable
from hdica.store.sealed import Document, parsed, write_sealed
from hdica.store.verify import Damage, counts_in, look, segments_in, working_damage
from hdica.study.study import study_from


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
        if damage.path == paths.manifest_path(path):
            # It was changed: the next run publishes again.
            files.discard(damage.path)
            done.append(damage.sentence)
        elif damage.path == work / paths.STUDY:
            done.append(_repair_study(path, damage))
        elif damage.path.is_relative_to(work):
            files.discard(damage.path)
            done.append(f"{damage.sentence}: its points are pending")
        elif damage not in public:
            files.discard(damage.path)
            done.append(f"{damage.sentence}: it is withdrawn")
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
    file = damage.path
    if file.is_symlink() or not (file.is_file() or file.is_dir()):
        files.discard(file)
        return f"{damage.sentence}: it is removed"
    folder = files.no_link(paths.results_path(out).with_suffix(".strays"))
    folder.mkdir(exist_ok=True)
    name = "/".join(file.parts[len(paths.results_path(out).parent.parts) :])
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
        attrs = parsed(raw or b"", root / paths.METADATA).get("attributes") or {}
        study = study_from(json.loads(attrs["study_yaml"]))
        write_sealed(damage.path, study.model_dump(mode="json"))
        return f"{damage.sentence}: it is written again from {root}"
    except (HdicaError, KeyError, ValueError):
        return f"{damage.sentence}: hdica run STUDY writes it again"


def _repair_published(out: str | Path, damages: list[Damage], manifest: Document | None) -> str:
    """Take back published points in a copy of the store, or else the whole publication."""
    root = paths.results_path(out)
    names = [damage.path.relative_to(root).as_posix() for damage in damages]
    for name in names:
        if (root / name).is_symlink():
            files.discard_inside(root, name)
    # Group, array, chunks and index of every file with values of points.
    places: list[tuple[str, str, published.Chunks, tuple[int, ...]]] = []
    for name in names:
        if (place := published.chunk_index(name)) is not None:
            group, array, index = place
            chunks = published.chunks_in(root, f"{group}/{array}")
            of_points = array in published.point_arrays(root, group)
            if chunks is not None and len(chunks.shape) == len(index) and of_points:
                places.append((group, array, chunks, index))
    if manifest is None or len(places) < len(names) or files.walk(root)[1]:
        withdraw(out, aside=bool(segments_in(out)))
        return "the next run publishes again"
    with new_store(out) as partial:
        shutil.copytree(root, partial)
        for group, array, chunks, index in places:
            _make_pending(partial, group, array, chunks, index)
        about = {**manifest, "counts": counts_in(partial)}
        exchange(partial, out, about, published.bind(partial))
    return "its points are pending"


def _make_pending(
    root: Path, group: str, array: str, chunks: published.Chunks, index: tuple[int, ...]
) -> None:
    """Make every point of a damaged chunk pending: status 0, all its values NaN."""
    import zarr

    opened = zarr.open_group(root, mode="r+", zarr_format=3, use_consolidated=False)

    def blank(name: str, place: tuple[slice, ...]) -> None:
        target = cast("zarr.Array", opened[f"{group}/{name}"])
        target.with_config({"write_empty_chunks": True})[place or ...] = target.fill_value

    # The damaged chunk first, and whole: writing a part of it would have to read it.
    files.discard_inside(root, "/".join([group, array, "c", *map(str, index)]))
    place = chunks.slices(index)
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
