"""Repair: damaged blocks and published points become pending, and the next run computes them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from hdica.errors import HdicaError
from hdica.store.files import (
    DamageError,
    TornError,
    discard,
    discard_inside,
    no_link,
    walk,
    written,
)
from hdica.store.lock import locked
from hdica.store.manifest import read_manifest
from hdica.store.paths import (
    METADATA,
    STUDY,
    manifest_path,
    require_store,
    results_path,
    shard_records,
    work_path,
)
from hdica.store.publish import exchange, new_store, withdraw
from hdica.store.published import (
    Chunks,
    PublishedStore,
    bind,
    bound_digests,
    chunk_index,
    chunks_in,
    point_arrays,
)
from hdica.store.results import stable
from hdica.store.sealed import parsed, write_sealed
from hdica.store.verify import Damage, all_damage, counts_in, look, segments_in, working_damage
from hdica.study.study import study_from

Result = TypeVar("Result")
ATTEMPTS = 3
"""How often work is begun anew after files that were cut short are removed."""


def repair(path: str | Path) -> list[str]:
    """Make damaged points pending in both stores, and write records anew; what was done.

    Nothing else is changed, nothing outside the stores is touched, and a file that is none of
    theirs is put aside. There is one sentence for each thing that was damaged.

    Raises
    ------
    HdicaError
        If the store is a copy without its manifest and its working store: nothing could restore it.
    """
    require_store(path)
    # Without a lock, which would make a working store beside a copy.
    if not (damage := stable(path, lambda: look(path)[1])):
        return []
    if not manifest_path(path).exists() and not work_path(path).is_dir():
        raise HdicaError(
            f"{damage[0]}; {results_path(path)} is a copy without its manifest and its working "
            "store, and nothing here can restore it (copy it again)"
        )
    done: list[str] = []
    with written(results_path(path)), locked(path) as work:
        # Again, since damaged metadata hide what is wrong with the data.
        while new := [sentence for sentence in _repaired(path, work) if sentence not in done]:
            done += new
    return done


def _repaired(path: str | Path, work: Path) -> list[str]:
    """Repair everything that is seen to be damaged; what was done."""
    manifest, done = None, []
    try:
        manifest = read_manifest(path)
    except DamageError as exc:
        done.append(str(exc))
    found = all_damage(path, manifest)
    if done:
        # It was changed: the next run publishes again.
        discard(manifest_path(path))
    # What does not belong there first: a link could stand where a chunk goes.
    done += [_put_aside(path, damage) for damage in found if damage.stray]
    rest = [damage for damage in found if not damage.stray]
    public = [damage for damage in rest if damage.path.is_relative_to(results_path(path))]
    for damage in rest:
        if damage.path == work / STUDY:
            done.append(_repair_study(path, damage))
        elif damage.path.is_relative_to(work):
            discard(damage.path)
            done.append(f"{damage.sentence}: its points are pending")
        elif damage not in public:
            discard(damage.path)
            done.append(f"{damage.sentence}: it is withdrawn")
    if public:
        what = _repair_published(path, public, manifest)
        done += [f"{damage.sentence}: {what}" for damage in public]
    if done:
        # A workflow that kept them would believe the pending points finished.
        for record in shard_records(path):
            discard(record)
    return done


def _put_aside(out: str | Path, damage: Damage) -> str:
    """Take away what does not belong to a store: a link goes, a file is kept beside the store."""
    file = damage.path
    if file.is_symlink() or not (file.is_file() or file.is_dir()):
        discard(file)
        return f"{damage.sentence}: it is removed"
    folder = no_link(results_path(out).with_suffix(".strays"))
    folder.mkdir(exist_ok=True)
    name = "/".join(file.parts[len(results_path(out).parent.parts) :])
    aside = folder / re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[-200:]
    while aside.exists():
        aside = aside.with_name(f"{aside.name}_")
    file.replace(aside)
    return f"{damage.sentence}: it is now {aside}"


def _repair_study(out: str | Path, damage: Damage) -> str:
    """Write the record of the study anew, from the published store if that has it."""
    discard(damage.path)
    try:
        root = results_path(out)
        raw = PublishedStore(root, bound_digests(root)).load(METADATA)
        attrs = parsed(raw or b"", root / METADATA).get("attributes") or {}
        study = study_from(json.loads(attrs["study_yaml"]))
        write_sealed(damage.path, study.model_dump(mode="json"))
        return f"{damage.sentence}: it is written again from {root}"
    except (HdicaError, KeyError, ValueError):
        return f"{damage.sentence}: hdica run STUDY writes it again"


def _repair_published(
    out: str | Path, damages: list[Damage], manifest: dict[str, Any] | None
) -> str:
    """Take back published points, or the whole publication where that is not possible.

    The store that somebody reads is never changed: a copy takes its place.
    """
    root = results_path(out)
    names = [damage.path.relative_to(root).as_posix() for damage in damages]
    for name in names:
        if (root / name).is_symlink():
            discard_inside(root, name)
    places = [_chunk_of_points(root, name) for name in names]
    if manifest is None or not all(places) or walk(root)[1]:
        withdraw(out, aside=bool(segments_in(out)))
        return "the next run publishes again"
    with new_store(out) as partial:
        shutil.copytree(root, partial)
        for place in places:
            if place is not None:
                _make_pending(partial, *place)
        about = {**manifest, "counts": counts_in(partial)}
        exchange(partial, out, about, bind(partial))
    return "its points are pending"


def _chunk_of_points(root: Path, name: str) -> tuple[str, str, Chunks, tuple[int, ...]] | None:
    """The group, array and chunk of a file with values of points, None for another file."""
    place = chunk_index(name)
    chunks = None if place is None else chunks_in(root, f"{place[0]}/{place[1]}")
    if place is None or chunks is None or len(chunks.shape) != len(place[2]):
        return None
    group, array, index = place
    return (group, array, chunks, index) if array in point_arrays(root, group) else None


def _make_pending(
    root: Path, group: str, array: str, chunks: Chunks, index: tuple[int, ...]
) -> None:
    """Make every point of a damaged chunk pending: status 0, all its values NaN."""
    import zarr

    opened = zarr.open_group(root, mode="r+", zarr_format=3, use_consolidated=False)

    def blank(name: str, place: tuple[slice, ...]) -> None:
        target: Any = opened[f"{group}/{name}"]
        target.with_config({"write_empty_chunks": True})[place or ...] = target.fill_value

    # The damaged chunk first, and whole: writing a part of it would have to read it.
    discard_inside(root, "/".join([group, array, "c", *map(str, index)]))
    place = chunks.slices(index)
    blank(array, place)
    status = chunks_in(root, f"{group}/status")
    depth = 0 if status is None else len(status.dims)
    for name in point_arrays(root, group):
        blank(name, place[:depth])


def mend(out: str | Path) -> list[str]:
    """Remove blocks of a working store that are cut short; a sentence for each of them."""
    if not work_path(out).is_dir():
        return []
    with locked(out):
        torn = [damage for damage in working_damage(out) if damage.torn]
        for damage in torn:
            discard(damage.path)
    return [f"{damage.sentence}: its points are pending" for damage in torn]


def mending(
    out: str | Path,
    attempt: Callable[[], Result],
    tell: Callable[[str], None],
    again: Callable[[], object] = lambda: None,
) -> Result:
    """Result of some work on a store, which is begun anew after torn files are removed.

    Nobody has changed what is empty or without its end, and its points can be computed again.
    Anything else that is wrong is left to ``hdica repair``, which somebody has to ask for.
    ``tell`` gets a sentence for each file that was removed; ``again`` is what has to be done before
    the work is begun anew.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except TornError:
            done = mend(out)
            if not done:
                raise
            for sentence in done:
                tell(sentence)
            again()
    return attempt()
