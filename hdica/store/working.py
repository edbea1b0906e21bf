"""The working store: a folder of blocks for every segment of a study.

A segment is a method at one n. Its points lie in any number of blocks, in any order, and are looked
up by their keys. So a grid may grow and shrink, and any number of runs may commit blocks at the
same time, without a plan on the disk. A point that two blocks hold has the same numbers in both,
unless it failed in one of them: then the other counts.

Results of another study are not replaced by accident. A study goes on as long as its name and its
system stay and its old and its new points could be the same: grids move on, fixed parameters become
swept ones, methods and times change.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hdica.errors import HdicaError
from hdica.status import FAILED, LEFT_OUT, PENDING
from hdica.store.files import DamageError, read_regular, stamp
from hdica.store.paths import METADATA, REFINED, STUDY, results_path, work_path
from hdica.store.sealed import (
    NAME,
    Block,
    Document,
    SchemaError,
    keys_in,
    read_block,
    read_sealed,
    texts_in,
    unsealed,
    write_sealed,
)
from hdica.study.refine import coarse
from hdica.study.schema import canonical_json
from hdica.study.segment import Keys, Segment, find_rows, segments_of
from hdica.study.study import Study, study_from
from hdica.systems import space
from hdica.systems import system as registry
from hdica.systems.method import Method
from hdica.systems.values import shown

MAX_NAMED = 3  # points that a sentence names
_HEADS: dict[Path, dict[str, _Head]] = {}


class UnreadableStudy(HdicaError):
    """A whole record of a study that this installation cannot read: it may lack the system."""


class _Head(NamedTuple):
    """What a listing needs of a block."""

    stamp: tuple[int, ...] | None
    keys: Keys
    status: NDArray[np.uint8]
    cpu_seconds: NDArray[np.float64]
    processor: str


class Listing(NamedTuple):
    """Every point in the blocks of a segment, as they were when the folder was listed."""

    folder: Path
    files: tuple[str, ...]
    starts: NDArray[np.int64]  # number of the first point of each file, and of all points
    keys: Keys
    status: NDArray[np.uint8]
    cpu_seconds: NDArray[np.float64]
    processors: frozenset[str]  # kinds of processors that computed them


def _block(path: Path, names: Sequence[str]) -> Block:
    """Some arrays of a block; the sentence for a damaged one says which points it holds."""
    try:
        return read_block(path, names)
    except DamageError as exc:
        raise type(exc)(f"{exc} ({described(path)})") from exc


def list_blocks(folder: Path) -> Listing:
    """List the blocks of a segment, of which only those new since the last listing are opened.

    A damaged block is a ``DamageError``, a folder of an earlier version a ``SchemaError``.
    """
    before, heads = _HEADS.get(folder, {}), {}
    for name in sorted(_names(folder)):
        head, seen = before.get(name), stamp(folder / name)
        if head is None or head.stamp != seen:
            try:
                about, arrays = _block(folder / name, ("status", "cpu_seconds"))
            except FileNotFoundError:
                continue  # removed by hdica repair since the folder was read
            listed = keys_in(arrays), arrays["status"], arrays["cpu_seconds"]
            head = _Head(seen, *listed, str(about.get("processor", "")))
        heads[name] = head
    _HEADS[folder] = heads
    every = list(heads.values())
    return Listing(
        folder,
        tuple(heads),
        np.cumsum([0, *(head.keys.size for head in every)], dtype=np.int64),
        np.concatenate([np.zeros(0, "S32"), *(head.keys for head in every)]),
        np.concatenate([np.zeros(0, np.uint8), *(head.status for head in every)]),
        np.concatenate([np.zeros(0), *(head.cpu_seconds for head in every)]),
        frozenset(head.processor for head in every),
    )


def _names(folder: Path) -> list[str]:
    """Names of the blocks in a folder; none where there is no folder."""
    if folder.is_symlink():
        text = f"{folder} is a link, which is not followed (all points of {folder.name})"
        raise DamageError(text)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except NotADirectoryError as exc:
        raise DamageError(f"{folder} is no folder (all its points)") from exc
    if METADATA in names:
        raise SchemaError(
            f"{folder.parent} is of an earlier version of hdica (remove it, and the next run "
            "computes its points anew; what is published stays readable)"
        )
    return [name for name in names if NAME.fullmatch(name)]


@dataclass(frozen=True, eq=False)
class Placed:
    """A segment and which points of it are computed."""

    segment: Segment
    find_keys: Callable[[], Keys]
    listing: Listing

    @property
    def keys(self) -> Keys:
        """Key of every point, in order."""
        return self.find_keys()

    @property
    def path(self) -> Path:
        """Folder of the segment, which need not exist."""
        return self.listing.folder

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Number of every point in the listing, -1 for one that no block holds."""
        failed, absent = self.listing.status == FAILED, self.segment.left_out
        if not failed.size:
            return np.full(self.segment.size, -1)
        if failed.any():
            order = np.argsort(failed, kind="stable")
            rows = find_rows(self.listing.keys[order], self.keys)
            rows = np.where(rows < 0, -1, order[rows])
        else:
            rows = find_rows(self.listing.keys, self.keys)
        return rows if absent is None else np.where(absent, -1, rows)

    @cached_property
    def statuses(self) -> NDArray[np.uint8]:
        """Status of every point."""
        statuses, absent = self._each(self.listing.status, PENDING), self.segment.left_out
        return statuses if absent is None else np.where(absent, np.uint8(LEFT_OUT), statuses)

    @cached_property
    def cpu_seconds(self) -> NDArray[np.float64]:
        """Processor time of every point, NaN where it is pending."""
        return self._each(self.listing.cpu_seconds, np.nan)

    def _each(self, listed: NDArray[Any], fill: float) -> NDArray[Any]:
        return np.append(listed, listed.dtype.type(fill))[self.rows]  # the last one by -1

    def read(
        self, name: str, points: NDArray[np.int64], fill: float | str, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Values of an array at some points of the segment, ``fill`` where they are pending."""
        shape, starts, rows = self.segment.shape_of(name), self.listing.starts, self.rows[points]
        values = np.full((points.size, *shape), fill, dtype=dtype)
        files = np.searchsorted(starts, rows, side="right") - 1  # -1 where pending
        order = np.argsort(files, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(files[order])) + 1):
            if not places.size or (number := int(files[places[0]])) < 0:
                continue
            path = self.path / self.listing.files[number]
            try:
                part = _block(path, [name]).arrays.get(name)
            except FileNotFoundError as exc:
                raise DamageError(f"{path} is missing: it was removed meanwhile") from exc
            if part is None:
                continue
            if name == "reason":
                part = np.array(texts_in(part), object)
            if part.shape[1:] != shape:
                text = f"{self.path} has {name} of shape {part.shape[1:]} and not {shape}"
                raise DamageError(f"{text} (points of {self.segment.label})")
            values[places] = part[rows[places] - starts[number]]
        return values

    def again(self) -> Placed:
        """The same with the blocks that there are now."""
        return Placed(self.segment, self.find_keys, list_blocks(self.path))


@dataclass(frozen=True)
class Source:
    """The segments of one method, one an n, with points in the order of the dense arrays.

    They are numbered by cell, then n, then seed, the last fastest.
    """

    placed: tuple[Placed, ...]

    @property
    def segment(self) -> Segment:
        """The first segment; the others have another n."""
        return self.placed[0].segment

    @property
    def method(self) -> Method:
        """The method of the group."""
        return self.segment.method

    @property
    def point_dims(self) -> dict[str, int]:
        """Dimensions that number points, with their sizes."""
        segment = self.segment
        dims = {axis.dim: axis.size for axis in segment.cells.axes}
        if segment.n is not None:
            dims["n"] = len(self.placed)
        if segment.seeds:
            dims["seed"] = len(segment.seeds)
        return dims

    @cached_property
    def status(self) -> NDArray[np.uint8]:
        """Status of every point."""
        return self._interleave([each.statuses for each in self.placed])

    @cached_property
    def cpu_seconds(self) -> NDArray[np.float64]:
        """Processor time of every point, NaN where it is pending."""
        return self._interleave([each.cpu_seconds for each in self.placed])

    def _interleave(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        seeds = self.segment.per_cell
        return np.stack([part.reshape(-1, seeds) for part in parts], axis=1).reshape(-1)

    def again(self) -> Source:
        """The same with the blocks that there are now."""
        return Source(tuple(each.again() for each in self.placed))

    def at(
        self, name: str, points: NDArray[np.int64], fill: float | str, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Values of one array at some points, by their numbers; ``fill`` where pending."""
        seeds, count = self.segment.per_cell, len(self.placed)
        part, own = (points // seeds) % count, points // (seeds * count) * seeds + points % seeds
        values = np.full((points.size, *self.segment.shape_of(name)), fill, dtype=dtype)
        for index, placed in enumerate(self.placed):
            chosen = np.flatnonzero(part == index)
            values[chosen] = placed.read(name, own[chosen], fill, dtype)
        return values


def place(study: Study, out: str | Path) -> list[Placed]:
    """Look up every point of a study in the working store, without changing it."""
    work, chosen = work_path(out), None if study.refine is None else chosen_cells(study, out)
    placed = [
        Placed(segment, cache(segment.keys), list_blocks(work / segment.name))
        for segment in segments_of(study, None if chosen is None else ~chosen)
    ]
    for each in placed:
        if each.listing.keys.size:
            each.find_keys()  # now, and not while a lock is held
    return placed


def chosen_cells(study: Study, out: str | Path) -> NDArray[np.bool_]:
    """The cells that a refinement has chosen so far, shape (sizes of all axes)."""
    first, record = coarse(study), read_refined(out)
    if record is None or record[0] != study.full_hash() or 8 * record[1].size < first.size:
        return first
    return first | np.unpackbits(record[1], count=first.size).reshape(first.shape).astype(bool)


def read_refined(out: str | Path) -> tuple[str, NDArray[np.uint8], bool] | None:
    """The record of a refinement: of which study, its cells as bits, and whether it is finished.

    None if there is none; a damaged one is a ``DamageError``.
    """
    path = work_path(out) / REFINED
    if (record := read_sealed(path)) is None:
        return None
    cells = record.get("cells")
    if not isinstance(cells, str) or not re.fullmatch(r"([0-9a-f]{2})*", cells):
        raise DamageError(f"{path} is damaged, its cells are none")
    bits = np.frombuffer(bytes.fromhex(cells), dtype=np.uint8)
    return str(record.get("study")), bits, record.get("finished") is True


def record_chosen(
    study: Study, out: str | Path, chosen: NDArray[np.bool_], finished: bool = False
) -> None:
    """Record the cells that a refinement has chosen; the caller has the lock."""
    cells = np.packbits(chosen.reshape(-1)).tobytes().hex()
    content = {"study": study.full_hash(), "cells": cells, "finished": finished}
    write_sealed(work_path(out) / REFINED, content)


def unfinished(study: Study, out: str | Path) -> str:
    """That the refinement of a study goes on, empty if it has ended or there is none."""
    if study.refine is None or not work_path(out).is_dir():
        return ""
    record = read_refined(out)
    if record is not None and record[0] == study.full_hash() and record[2]:
        return ""
    return f"the refinement of {study.study} is not finished (hdica run goes on)"


def recorded_study(out: str | Path) -> Study | None:
    """The study that was run last with the working store, None if there is none.

    A damaged record is a ``DamageError``, a whole one that is no study of this installation an
    ``UnreadableStudy``.
    """
    path = work_path(out) / STUDY
    content = read_sealed(path)
    try:
        return None if content is None else study_from(content)
    except HdicaError as exc:
        raise UnreadableStudy(f"{path} is no study of this installation: {exc}") from exc


def described(path: Path) -> str:
    """Which points a block holds, for a sentence."""
    try:
        block = read_block(path, ("parameters", "cell", "seed"))
        contents = [json.loads(text) for text in texts_in(block.arrays["parameters"])]
        cells, seeds = block.arrays["cell"], block.arrays["seed"]
    except (HdicaError, OSError, ValueError, KeyError):
        return "its points cannot be read"
    size = {} if block.about.get("n") is None else {"n": block.about["n"]}
    named: list[str] = []
    for cell, seed in zip(cells[:MAX_NAMED].tolist(), seeds[:MAX_NAMED].tolist(), strict=True):
        fields = contents[cell] | size | ({} if seed < 0 else {"seed": seed})
        named.append(" ".join(f"{k}={v}" for k, v in fields.items()) or "default parameters")
    more = f"; and {len(cells) - MAX_NAMED} more" if len(cells) > MAX_NAMED else ""
    return f"{len(cells)} points: {'; '.join(named)}{more}"


SHOWN = 3  # differences that a sentence names, and values of a parameter


def refuse_another(study: Study, out: str | Path) -> None:
    """Refuse results that belong to another study than the one to be computed or published."""
    old, new, path = None, study.model_dump(mode="json"), results_path(out) / METADATA
    with suppress(DamageError, KeyError, TypeError, ValueError):  # what cannot be read stops nobody
        attributes = unsealed(read_regular(path) or b"", path)["attributes"]
        old = json.loads(attributes["study_yaml"])
    with suppress(DamageError):
        old = old if isinstance(old, dict) else read_sealed(work_path(out) / STUDY)
    if old is None or old == new:
        return
    if differ := [*_differences(old, new)][:SHOWN]:
        differences = "; ".join(differ)
        raise HdicaError(
            f"{results_path(out)} belongs to another study: {differences} (take another path, or "
            "--replace, in Python replace=True, puts the new study in its place)"
        )


def _differences(old: Document, new: Document) -> Iterator[str]:
    """What makes another study of one, a clause each."""
    for name in ("study", "system"):
        if old.get(name) != new[name]:
            yield f"{name} is {old.get(name)!r} there and {new[name]!r} here"
    if old.get("system") != new["system"]:
        return  # their parameters have nothing to do with each other
    try:
        (old_keys, before), (new_keys, now) = _space(old), _space(new)
    except (HdicaError, KeyError, TypeError, ValueError, AttributeError):
        return  # it is of an earlier version: its name and its system are compared
    for path in dict.fromkeys([*new_keys, *old_keys]):
        first, second = before.get(path, ()), now.get(path, ())
        if {*map(canonical_json, first)}.isdisjoint(map(canonical_json, second)):
            name = new_keys.get(path) or old_keys[path]
            yield f"{name} is {_shown(first)} there and {_shown(second)} here"


def _shown(values: tuple[object, ...]) -> str:
    """Some values, for a person."""
    texts = [shown(v) if isinstance(v, float) else str(v)[:40] for v in values[:SHOWN]]
    if len(values) > SHOWN:
        texts.append(f"... ({len(values)} values)")
    return ", ".join(texts) or "not set"


def _space(content: Document) -> tuple[dict[space.Path, str], dict[space.Path, tuple[object, ...]]]:
    """What a study calls the paths that it sets, and the values of every path of its systems."""
    system = registry.system_named(content["system"]).parameters
    sweep = space.space_of_study(system, content)
    keys: dict[space.Path, str] = {}
    values: dict[space.Path, tuple[object, ...]]
    values = {path: (value,) for path, value in _nodes((), sweep.at().model_dump(mode="json"))}
    for key, (path, value) in sweep.fixed.items():
        for leaf, at_leaf in _nodes(path, value):
            if not (isinstance(at_leaf, dict) and at_leaf):
                keys[leaf], values[leaf] = ".".join((key, *leaf[len(path) :])), (at_leaf,)
    for one in (part for axis in sweep.axes for part in axis.each):
        keys[one.path], values[one.path] = one.key, one.contents or one.values
    return keys, values


def _nodes(path: space.Path, value: object) -> Iterator[tuple[space.Path, object]]:
    """A value and everything in its mappings, each with its path."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nodes((*path, str(key)), inner)
