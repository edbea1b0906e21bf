"""What is wrong in a published store and in its versions: each file against its digest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.manifest import bound_digests, file_digest, version_of
from hdica.sweep.files.paths import DamageError, inside, results_path, walk
from hdica.sweep.files.places import WRONG
from hdica.sweep.outcome import published
from hdica.sweep.outcome.published import PublishedStore
from hdica.sweep.outcome.results import learned
from hdica.sweep.outcome.versions import hold, is_version, versions_in


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong."""

    sentence: str  # what, in which file, and which points are concerned
    path: Path  # segment or file
    array: str = ""  # of the segment, empty if its metadata is unreadable
    block: int = -1  # a chunk of the planner's arrays counts as its first one
    stray: str = ""  # name, below ``path``, of what does not belong there
    torn: bool = False  # cut short and nothing else, so that the next run mends it unasked


def published_damage(out: str | Path, manifest: dict[str, Any] | None) -> list[Damage]:
    """Published files that are missing, do not belong there or differ from their digests.

    Those are the manifest's or, without one, those in the store itself.
    """
    root = results_path(out)
    if not root.is_dir():
        missing = f"{root} is missing though it was published (all points)"
        return [Damage(missing, root / METADATA)] if manifest else []
    if manifest is not None:
        return [*_by_digests(root, manifest["files"])]
    try:
        files = bound_digests(root)
        learned(PublishedStore(root, files))
    except DamageError as exc:
        return [Damage(str(exc), root / METADATA)]
    return [*_by_digests(root, files)]


def _by_digests(root: Path, files: dict[str, str], like: Path | None = None) -> Iterator[Damage]:
    """Files of a store that differ from their digests.

    What is a link to the file of a store that is compared anyway is left to that.
    """
    for name, expected in files.items():
        if like is not None and _is_same(root / name, like / name):
            continue
        try:
            right = file_digest(inside(root, name)) == expected
            what = "" if right else f"{root / name} is damaged, {WRONG}"
        except FileNotFoundError:
            what = f"{root / name} is missing"
        except (DamageError, OSError) as exc:
            what = str(exc)
        if what:
            yield Damage(f"{what} ({published.describe(root, name)})", root / name)
    found, strange = walk(root)
    for name in (*strange, *found):
        if name not in files:
            yield Damage(f"{root / name} does not belong to {root}", root, stray=name)


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.lstat(one), os.lstat(other))
    return False


def versions_damage(out: str | Path) -> list[Damage]:
    """What is wrong in the versions of a published store, beside what is wrong in that itself.

    Each is compared with the digests that it holds, by which it has its name.
    """
    root, found = results_path(out), []
    for folder in versions_in(out):
        held = hold(folder)
        if held is None and not folder.is_dir():
            continue  # an old one, removed meanwhile
        found += version_damage(folder, root)
    return found


def version_damage(folder: Path, like: Path | None = None) -> list[Damage]:
    """What is wrong in one version, as :func:`versions_damage` says."""
    path = folder / METADATA
    try:
        files = bound_digests(folder)
    except DamageError as exc:
        return [Damage(str(exc), path)]
    if version_of(files) != folder.stem:
        return [Damage(f"{path} is not of the version {folder.stem} (all points)", path)]
    return [*_by_digests(folder, files, like)]


def of_version(damage: Damage) -> Path | None:
    """The version that a damage is in, None if it is in none."""
    return next((p for p in (damage.path, *damage.path.parents) if is_version(p)), None)
