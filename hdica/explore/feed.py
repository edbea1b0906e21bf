"""Where the explorer's numbers come from: the published store, or what is committed so far."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.explore import committed
from hdica.status import STATUS_NAMES
from hdica.store.dense import Source
from hdica.store.manifest import count_in, read_manifest
from hdica.store.paths import METADATA, STUDY, manifest_path, work_path
from hdica.store.publish import is_current, sources
from hdica.store.results import existing, open_results
from hdica.store.working import recorded_study

if TYPE_CHECKING:
    import xarray as xr

    from hdica.study.study import Study

SHORTEST, SHARE = 2.0, 10.0
"""Seconds between two looks at the files, and how many times longer a pause is than a look."""
Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True)
class Snapshot:
    """Results as they were at one moment: a group a method, whose values are read when wanted.

    ``live`` results are what a run has committed so far, rather than a published store. ``counts``
    has the number of points by status, and ``number`` counts the snapshots of a feed, from 1.
    """

    tree: xr.DataTree
    live: bool
    counts: dict[str, int]
    number: int

    @property
    def points(self) -> int:
        """Number of points."""
        return sum(self.counts.values())


@dataclass
class Feed:
    """The newest snapshot of ``results/<study>.zarr``, published or not, renewed by :meth:`look`.

    Raises
    ------
    HdicaError
        If nothing is there, or what is there cannot be read.
    """

    path: Path
    now: Snapshot = field(init=False)
    trouble: str = field(init=False, default="")
    """What was wrong at the last look, empty if nothing was."""

    def __post_init__(self) -> None:
        self._stamp: Stamp = ()
        self._study: Study | None = None
        self._sources: tuple[Source, ...] = ()
        self._pause = SHORTEST
        self._renew(self._stamps())

    @property
    def pause(self) -> float:
        """Seconds until it is worth while to look again."""
        return self._pause

    def look(self) -> bool:
        """Look at the files again; whether there is a new snapshot.

        Where it cannot be read, the snapshot of before stays, and :attr:`trouble` says why.
        """
        began, before = time.monotonic(), self.now.number
        try:
            stamp = self._stamps()
            if stamp != self._stamp:
                self._renew(stamp)
            elif self.now.live:
                self._advance()
            self.trouble = ""
        except (HdicaError, OSError) as exc:
            self.trouble = str(exc)
        self._pause = max(SHORTEST, SHARE * (time.monotonic() - began))
        return self.now.number != before

    def _stamps(self) -> Stamp:
        """What is another one as soon as something was published or planned."""
        if self.path.suffix != ".zarr":
            return (_about(self.path / METADATA),)
        work = work_path(self.path)
        files = (manifest_path(self.path), self.path / METADATA, work / STUDY)
        return tuple(map(_about, files))

    def _renew(self, stamp: Stamp) -> None:
        """Decide what is shown, and open it."""
        study = self._unpublished()
        if study is not None:
            every = tuple(sources(study, self.path))
            if committed.computed(every) or not (self.path / METADATA).exists():
                self._study, self._sources = study, every
                self._show()
                self._stamp = stamp
                return
        tree = open_results(self.path)
        self._set(tree, False, _published_counts(self.path, tree))
        self._study, self._sources, self._stamp = None, (), stamp

    def _unpublished(self) -> Study | None:
        """The study that was planned last, unless all of it is published."""
        if self.path.suffix != ".zarr" or not work_path(self.path).is_dir():
            existing(self.path)
            return None
        study = recorded_study(self.path)
        if study is None or is_current(study, self.path):
            return None
        return study

    def _advance(self) -> None:
        """Look which points of the same study are committed by now."""
        fresh = tuple(source.again() for source in self._sources)
        pairs = zip(self._sources, fresh, strict=True)
        if any(not np.array_equal(old.status, new.status) for old, new in pairs):
            self._sources = fresh
            self._show()

    def _show(self) -> None:
        assert self._study is not None
        counts = _counted(source.status for source in self._sources)
        self._set(committed.tree(self._study, self._sources), True, counts)

    def _set(self, tree: xr.DataTree, live: bool, counts: dict[str, int]) -> None:
        number = self.now.number + 1 if hasattr(self, "now") else 1
        self.now = Snapshot(tree, live, counts, number)


def _about(path: Path) -> tuple[int, int, int] | None:
    try:
        file = os.lstat(path)
    except OSError:
        return None
    return file.st_ino, file.st_mtime_ns, file.st_size


def _counted(statuses: Iterable[NDArray[np.uint8]]) -> dict[str, int]:
    counts = sum(np.bincount(one.ravel(), minlength=len(STATUS_NAMES)) for one in statuses)
    return dict(zip(STATUS_NAMES, np.broadcast_to(counts, len(STATUS_NAMES)).tolist(), strict=True))


def _published_counts(path: Path, tree: xr.DataTree) -> dict[str, int]:
    """Points by status: as the manifest says, or counted where there is none."""
    if path.suffix == ".zarr" and (manifest := read_manifest(path)) is not None:
        return {name: count_in(manifest, name) for name in STATUS_NAMES}
    return _counted(node["status"].to_numpy() for node in tree.children.values())
