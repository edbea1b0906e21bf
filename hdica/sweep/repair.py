"""Repair: what is damaged becomes pending, so that the next run computes and publishes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from hdica.sweep import published, store
from hdica.sweep.integrity import Damage, published_damage, working_damage
from hdica.sweep.manifest import read_manifest, write_manifest
from hdica.sweep.paths import DamageError, manifest_path, require_store, results_path, shard_records
from hdica.sweep.plan import locked


def _clear_status(working: store.Working, block: int) -> None:
    store.write_array(working, "status", block, np.zeros(working.block, dtype=np.uint8))


def _forget_places(working: store.Working, damage: Damage) -> None:
    """Give up the places of one chunk of the planner's arrays; the next plan places them anew."""
    chunk = working.array("key").chunks[0]
    start = damage.block * working.block
    span = slice(start, min(start + chunk, working.size))
    for block in range(span.start // working.block, span.stop // working.block):
        _clear_status(working, block)
    for name in ("parameters", "seed", "key"):
        array = working.array(name)
        working.chunk(name, start // chunk).unlink(missing_ok=True)
        array[span] = array.fill_value


def _repair_working(damage: Damage) -> str:
    if not damage.array:
        shutil.rmtree(damage.path)
        return f"{damage.sentence}: all its points are pending"
    working = store.open_segment(damage.path)
    if damage.array in store.PLANNER_ARRAYS:
        _forget_places(working, damage)
        return f"{damage.sentence}: its points are pending"
    # Status first: from here on nothing is claimed of the chunk that goes.
    _clear_status(working, damage.block)
    if damage.array != "status":
        working.chunk(damage.array, damage.block).unlink(missing_ok=True)
    return f"{damage.sentence}: its points are pending"


def _repair_published(out: str | Path) -> list[str]:
    root, path = results_path(out), manifest_path(out)
    try:
        manifest = read_manifest(out)
    except DamageError as exc:
        path.unlink()
        return [f"{exc}: the next run publishes again"]
    if manifest is None:
        return []
    damages = published_damage(out, manifest)
    names = [damage.path.relative_to(root).as_posix() for damage in damages]
    if not names:
        return []
    if not all(published.can_forget(root, name) for name in names):
        path.unlink()
        return [f"{damage.sentence}: the next run publishes again" for damage in damages]
    path.unlink()
    published.forget(root, names)
    about = {key: value for key, value in manifest.items() if key != "files"}
    write_manifest(out, {**about, "counts": published.status_counts(root)})
    return [f"{damage.sentence}: its points are pending" for damage in damages]


def repair(path: str | Path) -> list[str]:
    """Make damaged points pending, in the working and in the published store.

    Parameters
    ----------
    path
        Path of the published store.

    Returns
    -------
    list of str
        What was done, one sentence each; empty if nothing was damaged.

    Raises
    ------
    HdicaError
        If there is neither a published nor a working store.
    """
    require_store(path)
    with locked(path) as work:
        done = _repair_study(work)
        done += [_repair_working(damage) for damage in working_damage(path)]
        done += _repair_published(path)
        if done:
            # A workflow that kept them would believe the pending points finished.
            for record in shard_records(path):
                record.unlink()
        return done


def _repair_study(work: Path) -> list[str]:
    """Drop a study record that cannot be read; the next run writes it again."""
    file = work / "study.json"
    try:
        if file.exists():
            json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        file.unlink()
        return [f"{file} is damaged: the next run writes it again"]
    return []
