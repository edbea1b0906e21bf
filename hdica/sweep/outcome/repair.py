"""Repair: metadata are written anew; other damage becomes pending, and the next run computes it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.sweep.files import blocks, planned, store
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.manifest import bind, bound_digests, read_manifest
from hdica.sweep.files.paths import (
    DamageError,
    discard,
    discard_inside,
    manifest_path,
    no_link,
    require_store,
    results_path,
    shard_records,
)
from hdica.sweep.files.sealed import parsed, write_sealed
from hdica.sweep.outcome import published
from hdica.sweep.outcome.commit import beside, commit, finish, withdraw
from hdica.sweep.outcome.damage import Damage, of_version, version_damage
from hdica.sweep.outcome.integrity import all_damage, segments_in
from hdica.sweep.outcome.published import PublishedStore
from hdica.sweep.outcome.versions import checked_path, cloned, remove, versions_in
from hdica.sweep.run.plan import STUDY, planned_study
from hdica.sweep.run.working_lock import locked
from hdica.sweep.study.segment import segments_of
from hdica.sweep.study.study import study_from


def _clear_status(working: store.Working, block: int) -> None:
    # The old file first, in case a link stands there: nothing is written through it.
    _discard_chunk(working, "status", block)
    blocks.make_pending(working, block)


def _discard_chunk(working: store.Working, name: str, number: int) -> None:
    chunk = working.chunk(name, number).relative_to(working.path)
    discard_inside(working.path, chunk.as_posix())


def _forget_places(working: store.Working, damage: Damage) -> None:
    """Give up the places of one chunk of the planner's arrays; the next plan places them anew."""
    number = damage.block * working.block // working.array("key").chunks[0]
    given_up = planned.blocks_of(working, number)
    # Statuses first: from here on nothing is claimed of the places that go.
    for block in given_up:
        _discard_chunk(working, "status", block)
    for name in store.PLANNER_ARRAYS:
        _discard_chunk(working, name, number)
    planned.forget(working, number)
    working = store.open_segment(working.path)
    for block in given_up:
        _clear_status(working, block)


def _restored(out: str | Path, damage: Damage) -> bool:
    """Whether metadata of a segment could be written anew, as the study that was planned has them.

    Not those of the keys, which alone say what was planned, nor any of a study that was planned
    before.
    """
    with suppress(HdicaError, KeyError, ValueError, TypeError, AttributeError):
        whole = damage.path.is_dir() and not damage.path.is_symlink()
        study = planned_study(out) if whole else None
        known = {} if study is None else {one.name: one for one in segments_of(study)}
        planned.restore(damage.path, known[damage.path.name], damage.array)
        return True
    return False


def repair_working(out: str | Path, damage: Damage) -> str:
    """Mend something in a working store, or make its points pending; what was done, in words."""
    if damage.block < 0:
        if damage.path not in segments_in(out):
            discard(damage.path)
            return "it is removed"
        if _restored(out, damage):
            return "it is written anew"
        discard(damage.path)
        return "its points are pending"
    working = store.open_segment(damage.path)
    if damage.array in store.PLANNER_ARRAYS:
        _forget_places(working, damage)
    else:
        # Status first: from here on nothing is claimed of the chunk that goes.
        _clear_status(working, damage.block)
        if damage.array != "status":
            _discard_chunk(working, damage.array, damage.block)
    return "its points are pending"


def _put_aside(out: str | Path, damage: Damage) -> str:
    """Take away what does not belong to a store: a link goes, a file is kept beside the store."""
    file = damage.path / damage.stray
    if file.is_symlink() or not file.is_file():
        discard_inside(damage.path, damage.stray)
        return f"{damage.sentence}: it is removed"
    folder = no_link(results_path(out).with_suffix(".strays"))
    folder.mkdir(exist_ok=True)
    aside = folder / re.sub(r"[^\w.-]+", "_", f"{damage.path.name}/{damage.stray}")[-200:]
    while aside.exists():
        aside = aside.with_name(f"{aside.name}_")
    file.replace(aside)
    return f"{damage.sentence}: it is now {aside}"


def _repair_published(
    out: str | Path, damages: list[Damage], manifest: dict[str, Any] | None
) -> str:
    """Take back published points, or the whole publication where that is not possible.

    What somebody reads is never written: a copy by links takes the place of the store.
    """
    root = results_path(out)
    names = [damage.path.relative_to(root).as_posix() for damage in damages]
    for name in names:
        if (root / name).is_symlink():
            discard_inside(root, name)
    if manifest is None or not all(published.can_forget(root, name) for name in names):
        withdraw(out, aside=bool(segments_in(out)))
        return "the next run publishes again"
    with beside(root) as partial:
        cloned(root, partial)
        published.forget(partial, names)
        about = {key: value for key, value in manifest.items() if key != "files"}
        about["counts"] = published.status_counts(partial)
        commit(partial, out, about, bind(partial))
    return "its points are pending"


def _repair_versions(out: str | Path) -> list[str]:
    """Remove versions that are damaged; the newest is made again from the store, which is whole."""
    done = []
    for folder in versions_in(out):
        found = version_damage(folder)
        if not found:
            continue
        # Who reads it is refused from here on: whatever was read of it is to be read again.
        what = "it is removed" if remove(folder, although_read=True) else "it is left alone"
        done.append(f"{found[0].sentence}: {what}")
    if done:
        finish(out)
    return done


def _repair_study(out: str | Path, damage: Damage, manifest: dict[str, Any] | None) -> str:
    """Write the record of the study anew, from the published store if that has it."""
    try:
        root = results_path(out)
        files = manifest["files"] if manifest else bound_digests(root)
        raw = PublishedStore(root, files).load(METADATA)
        attrs = parsed(raw or b"", root / METADATA).get("attributes") or {}
        study = study_from(json.loads(attrs["study_yaml"]))
        discard(damage.path)
        write_sealed(damage.path, study.model_dump(mode="json"))
        return f"{damage.sentence}: it is written again from {root}"
    except (HdicaError, KeyError, ValueError):
        discard(damage.path)
        return f"{damage.sentence}: hdica run STUDY writes it again"


def repair(path: str | Path) -> list[str]:
    """Write damaged metadata anew and make damaged points pending, in both stores; what was done.

    Nothing else is changed, nothing outside the stores is touched, and a file that is none of
    theirs is put aside. There is one sentence for each thing that was damaged.
    """
    require_store(path)
    checked_path(path)
    done: list[str] = []
    with locked(path) as work:
        # Again, since damaged metadata hide what is wrong with the data.
        while new := [sentence for sentence in _repaired(path, work) if sentence not in done]:
            done += new
    return done


def _repaired(path: str | Path, work: Path) -> list[str]:
    """Repair what can be seen to be damaged; what was done."""
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
    root = results_path(path)
    public = [damage for damage in rest if damage.path.is_relative_to(root)]
    for damage in rest:
        if damage.path == work / STUDY:
            done.append(_repair_study(path, damage, manifest))
        elif damage.path.is_relative_to(work):
            done.append(f"{damage.sentence}: {repair_working(path, damage)}")
        elif damage not in public and of_version(damage) is None:
            done.append(f"{damage.sentence}: it is withdrawn")
    if public:
        what = _repair_published(path, public, manifest)
        done += [f"{damage.sentence}: {what}" for damage in public]
    if public or any(map(of_version, rest)):
        done += _repair_versions(path)
    if done:
        # A workflow that kept them would believe the pending points finished.
        for record in shard_records(path):
            discard(record)
    return done
