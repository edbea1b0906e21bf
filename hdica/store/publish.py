"""Publish a study: labelled dense arrays, one group a method, swapped in whole.

A publication is a new folder, written whole with the digest of every file in it, which takes the
place of the store by one exchange of names where the system can. The store before the current one
stays beside it, hidden, until the next publication: who opened it reads on. The manifest goes
before the exchange and comes last. Each step is on the disk before the next, so that a kill or a
power loss at any moment leaves the old store or the new one.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from hdica.errors import HdicaError
from hdica.status import DIVERGED, DONE, FAILED, LEFT_OUT, PENDING, STATUS_NAMES
from hdica.store import files, paths, provenance, sealed
from hdica.store.published import DIGESTS, bind, bound_digests, codec, version_of
from hdica.store.working import Placed, Source, place, refuse_another
from hdica.study.study import Study
from hdica.systems import system as registry
from hdica.systems.labelled import portable_attrs
from hdica.systems.method import KERNEL_VERSION
from hdica.systems.system import Clock
from hdica.systems.values import CASE
from hdica.version import __version__

OURS = re.compile(rf"{re.escape(DIGESTS)}|(\w+/){{0,2}}zarr\.json|\w+/\w+/c(/\d+)*")
"""Names of the files that a published store has."""
CHUNK_ELEMENTS = 2**18  # numbers a published chunk: 2 MB, read in milliseconds
SPAN = 32 * 2**20  # bytes of one array that are gathered at a time
BAND = 64 * 2**20  # bytes of neighbouring points that are put into chunks at a time
TIME_UNITS = "samples per dimension (k/n)"

DIMS = {
    "time": {"long_name": "time", "units": TIME_UNITS},
    "snapshot": {"long_name": "time of a snapshot", "units": TIME_UNITS},
    "x": {"long_name": "entry x of the estimate", "units": "1"},
    "edge": {"long_name": "edge between the bins around x", "units": "1"},
    "threshold": {"long_name": "threshold on abs(x)", "units": "1"},
    "entry": {"long_name": "number of the entry", "units": "1"},
    "feature": {"long_name": "xi, mean over a group of the feature's entries", "units": "1"},
}
"""CF attributes of the dimensions that need more than their name."""


def about_dim(system: str, dim: str, values: NDArray[Any]) -> dict[str, str]:
    """CF attributes of one of a method's own dimensions."""
    if dim == "feature" and values.dtype.kind == "i":
        text = "group of the feature's entries, by increasing xi (its values are in xi)"
        return {"long_name": text, "units": "1"}
    record = registry.system_named(system)
    own = {one.name: one.about for one in record.dimensions}
    about = DIMS.get(dim, {"long_name": own.get(dim, dim.replace("_", " ")), "units": "1"})
    clock = record.clock
    if about["units"] != TIME_UNITS or clock == Clock():
        return about
    named = {"long_name": clock.long_name} if dim == "time" else {}
    return about | named | {"units": clock.units}


def grouped(placed: list[Placed]) -> list[Source]:
    """Where every group of a study comes from: the segments of each method as one source."""
    by_method = groupby(placed, key=lambda each: each.segment.method.name)
    return [Source(tuple(group)) for _, group in by_method]


def chunk_shape(swept: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of a published array, from the sizes that are ``swept`` and those that are ``whole``.

    Seeds and an output's own dimensions are whole in a chunk if they fit. The swept parameters and
    n share the room that is left evenly, so that a slice along any reads little more than itself.
    """
    size = math.prod(whole)
    if size > CHUNK_ELEMENTS:
        # Whole trailing dimensions, one that is split, and 1 before it.
        rooms = (CHUNK_ELEMENTS // math.prod(whole[k + 1 :]) for k in range(len(whole)))
        own = (min(n, max(1, room)) for n, room in zip(whole, rooms, strict=True))
        return (*(1 for _ in swept), *own)
    shape = list(swept)
    for axis in range(len(swept)):
        step = 8 * size * math.prod(swept[axis + 1 :])
        shape[axis] = min(swept[axis], max(1, BAND // step))
        if shape[axis] > 1:
            break
    while math.prod(shape) * size > CHUNK_ELEMENTS:
        longest = shape.index(max(shape))
        shape[longest] = -(-shape[longest] // 2)
    return (*shape, *whole)


class Band(NamedTuple):
    """Neighbouring points, ``start`` to ``stop``, that are whole chunks."""

    start: int
    stop: int
    place: tuple[slice, ...]  # in the array; dimensions that follow are whole


def bands(points: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Band]:
    """Every chunk of some points, in bands that follow each other; ``chunks`` is a chunk's size."""
    split = next((axis for axis, chunk in enumerate(chunks) if chunk > 1), len(points) - 1)
    later = math.prod(points[split + 1 :])
    begins = [range(0, n, c) for n, c in zip(points[: split + 1], chunks, strict=False)]
    end = 0
    for corner in product(*begins):
        sides = zip(corner, points, chunks, strict=False)
        place = tuple(slice(low, min(low + chunk, size)) for low, size, chunk in sides)
        start, end = end, end + later * math.prod(each.stop - each.start for each in place)
        yield Band(start, end, place)


def create(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dims: tuple[str, ...],
    dtype: DTypeLike,
    fill: float | str | None,
    about: sealed.Document,
) -> zarr.Array:
    """Create an array of a published group, none of whose chunks is left out."""
    return group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=fill,
        compressors=codec(),
        dimension_names=dims,
        config={"write_empty_chunks": True},
        attributes=about,
    )


def write_variable(
    group: zarr.Group,
    source: Source,
    name: str,
    dtype: DTypeLike,
    fill: float | str,
    about: sealed.Document,
    own_dims: tuple[str, ...] = (),
) -> None:
    """Write one variable of a published group, ``fill`` where a point is pending."""
    own = source.segment.shape(own_dims)
    dims = source.point_dims
    points = tuple(dims.values())
    swept = len(points) - ("seed" in dims)
    chunks = chunk_shape(points[:swept], (*points[swept:], *own))
    shape = (*points, *own)
    array = create(group, name, shape, chunks, (*dims, *own_dims), dtype, fill, about)
    listed: dict[str, NDArray[Any]] = {"status": source.status, "cpu_seconds": source.cpu_seconds}
    # A block may span several bands: they are gathered together, so that it is read once.
    most, kind = SPAN // (8 * max(1, math.prod(own))), object if dtype is str else dtype
    every = list(bands(points, chunks[: len(points)]))
    stops = [band.stop for band in every]
    first = last = 0
    for number, (start, stop, where) in enumerate(every):
        if stop > last:
            first, last = start, stops[max(number, bisect_right(stops, start + most) - 1)]
            among = np.arange(first, last)
            values = listed[name][among] if name in listed else source.at(name, among, fill, kind)
        extent = (side.stop - side.start for side in where)
        part = values[start - first : stop - first]
        array[where or ...] = part.reshape((*extent, *array.shape[len(where) :]))


def _coordinate(
    group: zarr.Group,
    name: str,
    array: NDArray[Any],
    about: sealed.Document,
    dims: tuple[str, ...] = (),
) -> None:
    text, shape = array.dtype.kind in "UO", array.shape
    kind: DTypeLike = str if text else array.dtype
    fill = "" if text else None
    made = create(group, name, shape, shape, dims or (name,), kind, fill, about)
    made[:] = array.astype(object) if text else array


def coordinates(source: Source) -> dict[str, tuple[str, NDArray[Any], dict[str, str]]]:
    """The dimension along which each coordinate of a group lies, its values and CF attributes."""
    segment, coords = source.segment, {}
    for axis in segment.cells.axes:
        text = "case" if axis.key == CASE else f"parameter {'.'.join(axis.path)}"
        coords[axis.dim] = np.asarray(axis.values), {"long_name": text, "units": "1"}
    if segment.n is not None:
        about = {"long_name": "dimension of the data", "units": "1"}
        coords["n"] = np.array([p.segment.n for p in source.placed], dtype=np.int64), about
    if segment.seeds:
        about = {"long_name": "seed of the random stream", "units": "1"}
        coords["seed"] = np.array(segment.seeds, dtype=np.int64), about
    for dim, values in sorted(segment.coords.items()):
        coords[dim] = values, about_dim(segment.system, dim, values)
    own = {dim: (dim, *each) for dim, each in coords.items()}
    for axis in segment.cells.axes:
        for part in axis.parts:
            about = {"long_name": f"parameter {'.'.join(part.path)}", "units": "1"}
            own.setdefault(part.dim, (axis.dim, np.asarray(part.values), about))
    return own


def _steps(group: zarr.Group, source: Source) -> None:
    """The exact index of the step behind each time, as the simulations count it."""
    # Loads SymPy, which a command that refuses a store does without.
    from hdica.finite.record import steps_of

    times = source.segment.coords["time"].astype(np.float64)
    sizes = [p.segment.n for p in source.placed]
    steps = np.stack([steps_of(times, n or 1) for n in sizes]).astype(np.int64)
    has_n = sizes != [None]
    text = f"number of samples seen, floor({'t n' if has_n else 't'})"
    dims = ("n", "time") if has_n else ("time",)
    about = {"long_name": text, "units": "1"}
    _coordinate(group, "step", steps.reshape(steps.shape[-len(dims) :]), about, dims)


def _write_group(root: zarr.Group, source: Source, study: Study) -> dict[str, int]:
    segment, method, outputs = source.segment, source.method, source.segment.outputs
    group = root.create_group(method.name)
    every = coordinates(source)
    for name, (dim, values, attrs) in every.items():
        _coordinate(group, name, values, attrs, (dim,))
    beside = [name for name, (dim, *_) in every.items() if name != dim]
    counts = registry.system_named(segment.system).clock.counts and not method.scope.beyond
    if counts and (segment.n is not None or segment.seeds) and "time" in segment.coords:
        _steps(group, source)
        beside.append("step")
    for output in outputs:
        about: sealed.Document = {"long_name": output.long_name, "units": output.units}
        write_variable(group, source, output.name, "f8", np.nan, about, output.dims)
    about = {"long_name": "status of the point", "units": "1"}
    # Stores of studies that leave nothing out are what they were.
    flags = [*STATUS_NAMES, *(["left_out"] if study.where or study.refine else [])]
    about |= {"flag_values": [*range(len(flags))], "flag_meanings": " ".join(flags)}
    write_variable(group, source, "status", "u1", PENDING, about)
    about = {"long_name": "processor time of the point", "units": "s"}
    write_variable(group, source, "cpu_seconds", "f8", np.nan, about)
    if np.isin(source.status, (DIVERGED, FAILED)).any():
        about = {"long_name": "why the point diverged or failed"}
        write_variable(group, source, "reason", str, "", about)
    about = {
        "method": method.name,
        "accuracy": method.about.accuracy,
        "stochastic": method.stochastic,
        "equations": method.about.equations,
        "kernel": method.about.kernel,
        **({"noise": method.about.noise} if method.stochastic else {}),
        "outputs": [output.name for output in outputs],
        "study_hash": study.content_hash(),
        **({"coordinates": " ".join(beside)} if beside else {}),
    }
    group.update_attributes(portable_attrs(about))
    return sealed.status_counts(source.status)


def about_study(study: Study) -> dict[str, str]:
    """Attributes of results that the study alone says."""
    return {
        "title": study.title,
        "description": study.description,
        "question": "" if study.question is None else study.question.text,
        "study": study.study,
        "study_yaml": json.dumps(study.model_dump(mode="json"), separators=(",", ":")),
        "study_hash": study.content_hash(),
        "full_hash": study.full_hash(),
    }


def _consolidate(path: Path) -> dict[str, str]:
    """Write consolidated metadata of a finished store, and digests of all its files into it."""
    with warnings.catch_warnings():
        # zarr says so at each call; readers that do not know it read the groups one by one.
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        zarr.consolidate_metadata(path, zarr_format=3)
    return bind(path)


def is_current(study: Study, out: str | Path) -> bool:
    """Whether the published store is whole and is this very study's: nothing to publish."""
    root = paths.results_path(out)
    try:
        manifest = sealed.read_manifest(out)
        if not manifest or manifest["full_hash"] != study.full_hash():
            return False
        digests = bound_digests(root)
        whole = files.walk(root)[0] == sorted(digests)
        # A power loss may have left files empty.
        whole = whole and all((root / name).stat().st_size for name in digests)
    except (files.DamageError, OSError):
        return False
    if not whole or version_of(digests) != manifest["version"]:
        return False
    if sealed.count_in(manifest, "pending"):
        return False
    failed = sealed.count_in(manifest, "failed")
    if not (failed or study.refine) or not paths.work_path(out).is_dir():
        return True
    # Points that were published as failed may have another result by now, and others be added.
    now = np.concatenate([each.statuses for each in place(study, out)])
    there = sum(sum(counts.values()) for counts in manifest["counts"].values())
    if int((now < LEFT_OUT).sum()) != there:
        return False
    return bool((now == PENDING).any()) or int((now == FAILED).sum()) == failed


def publish_new(
    study: Study, out: str | Path, replace: bool = False
) -> tuple[sealed.Document, bool]:
    """Publish a study if there is anything new; its manifest, and whether there was."""
    manifest = sealed.read_manifest(out) if is_current(study, out) else None
    if manifest is None:
        return publish(study, out, replace), True
    if paths.partial_path(out).exists():
        # Of a publication that was killed. Where nothing can be written, it is in nobody's way.
        with suppress(OSError), paths.locked(out):
            files.discard(paths.partial_path(out))
    return manifest, False


def publish(study: Study, out: str | Path, replace: bool = False) -> sealed.Document:
    """Write the published store from the working store, and the manifest last, which is returned.

    Points that are pending stay NaN with status 0. With ``replace`` the results of another study
    may be there; they are removed.
    """
    target = paths.results_path(out)
    paths.refuse_own(target.parent)  # before a lock is made beside it
    if not replace:
        refuse_another(study, out)
    then = "; what was computed is kept, and a rerun publishes it"
    with files.written(target, then), paths.locked(out), new_store(out) as partial:
        check_target(target)
        if not replace:
            # Again: another study may have been published while this one waited.
            refuse_another(study, out)
        counts = lay_out(partial, study, out)
        if not replace:
            refuse_loss(study, out, counts)
        about = {
            "study": study.study,
            "study_hash": study.content_hash(),
            "full_hash": study.full_hash(),
            "kernel_version": KERNEL_VERSION,
            "counts": counts,
        }
        return exchange(partial, out, about, _consolidate(partial))


def refuse_loss(study: Study, out: str | Path, counts: dict[str, dict[str, int]]) -> None:
    """Refuse to replace results by a store of pending points alone, or of fewer of this study."""
    from hdica.store.results import opened, readable, statuses

    try:
        tree = opened(readable(out))  # nobody else publishes as long as this process has the lock
    except (HdicaError, OSError):  # nothing that anybody could read
        return
    done = sum(each["done"] + each["diverged"] for each in counts.values())
    failed = sum(each["failed"] for each in counts.values())
    before = sum(int(np.isin(one, (DONE, DIVERGED)).sum()) for one in statuses(tree))
    same = tree.attrs.get("study_hash") == study.content_hash()
    if before and (not (done + failed) or (same and done < before)):
        there = f"{before} points and {paths.work_path(out)} has {done} of them"
        raise HdicaError(
            f"{paths.results_path(out)} has {there}: nothing was published (hdica run computes the "
            "others, and publishes all)"
        )


@contextmanager
def new_store(out: str | Path) -> Iterator[Path]:
    """Where a store is written before it takes its place; what is not finished is removed."""
    partial = paths.partial_path(out)
    files.discard(partial)
    try:
        yield partial
    finally:
        files.discard(partial)


def exchange(
    partial: Path, out: str | Path, about: sealed.Document, digests: dict[str, str]
) -> sealed.Document:
    """Make a finished store the published one; its manifest, ``about`` with the version.

    The caller has the lock.
    """
    target, previous = paths.results_path(out), paths.previous_path(out)
    files.sync_tree(partial)
    files.discard(paths.manifest_path(out))
    files.discard(previous)
    # Without this a power loss may keep the manifest of the store whose place is taken.
    files.sync_folder(target.parent)
    if target.exists() and _exchanged(partial, target):
        partial.replace(previous)
    else:
        if target.exists():
            target.replace(previous)
        partial.replace(target)
    files.sync_folder(target.parent)
    manifest = {**about, "version": version_of(digests), "hdica_version": __version__}
    sealed.write_sealed(paths.manifest_path(out), manifest)
    return manifest


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders take each other's name at once; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = -100  # relative to the working directory, as in <fcntl.h>
    return not rename(here, os.fsencode(one), here, os.fsencode(other), 2)


def lay_out(folder: Path, study: Study, out: str | Path) -> dict[str, dict[str, int]]:
    """Write what is computed of a study to a folder, as one store; every method's points by status.

    Points that are not computed stay NaN with status 0.
    """
    root = zarr.open_group(folder, mode="w", zarr_format=3)
    groups = grouped(place(study, out))
    kinds = {k for group in groups for each in group.placed for k in each.listing.processors}
    used = dict.fromkeys(method.about.equations for method in study.methods_used().values())
    about: sealed.Document = {
        "Conventions": "CF-1.11",
        **about_study(study),
        "schema_version": sealed.SCHEMA_VERSION,
        "kernel_version": KERNEL_VERSION,
        "hdica_version": __version__,
        "git_commit": provenance.git_commit(),
        "package_versions": provenance.package_versions(),
        "created": provenance.now(),
        "system": study.system,
        "references": "; ".join(filter(None, used)),
        provenance.KEPT: provenance.of_study(study),
        "license": "BSD-3-Clause",
        "processors": "; ".join(sorted(kinds - {""})),
    }
    root.update_attributes(about)
    return {group.method.name: _write_group(root, group, study) for group in groups}


def check_target(target: Path) -> None:
    """Refuse to replace what is no published store, or has files of somebody else in it."""
    paths.refuse_own(target.parent)
    if not target.exists():
        return
    if not target.is_dir():
        raise HdicaError(f"{target} is no folder (move it away, or take another name)")
    names, strange = files.walk(target)
    others = [name for name in names if not OURS.fullmatch(name)] + strange
    if others:
        stray = target / others[0]
        raise HdicaError(
            f"{stray} is no file of a published store and would be lost (move it away)"
        )
    raw = files.read_regular(target / paths.METADATA)
    # Metadata that are not whole may be ours with a flaw.
    with suppress(files.DamageError):
        if raw and b"study_hash" not in raw and sealed.parsed(raw, target / paths.METADATA):
            text = "was not written by hdica (move it away, or take another name)"
            raise HdicaError(f"{target} {text}")
