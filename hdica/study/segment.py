"""Segments, the points that one method computes at one n: grid cells times seeds, and their keys.

A key says what a point is, never where it stands.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import without_place
from hdica.ingredients.save import ALL, NOTHING, Save
from hdica.study.refine import coarse
from hdica.study.schema import StudySchema, canonical_json, json_digest, plain_save
from hdica.systems import system as registry
from hdica.systems.method import Method, Output, no_memory
from hdica.systems.parameters import Parameters
from hdica.systems.space import Axis, Path, Space, nested
from hdica.systems.values import canonical, shown

Keys = NDArray[np.bytes_]  # a digest a point, dtype S32; empty where a place is unused


def find_rows(stored: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Row of each wanted key among the stored ones, -1 where it is absent."""
    if stored.size == 0 or wanted.size == 0:
        return np.full(wanted.shape, -1, dtype=np.int64)
    if stored.size >= wanted.size and np.array_equal(stored[: wanted.size], wanted):
        return np.arange(wanted.size, dtype=np.int64)
    # By their first bytes, as numbers, keys are sorted and looked up seven times as fast.
    heads = _heads(stored)
    order = np.argsort(heads, kind="stable")
    heads, ordered = heads[order], stored[order]
    if ((heads[1:] == heads[:-1]) & (ordered[1:] != ordered[:-1])).any():
        order = np.argsort(stored, kind="stable")
        place = np.searchsorted(stored[order], wanted)
    else:
        place = np.searchsorted(heads, _heads(wanted))
    rows = order[place.clip(max=stored.size - 1)].astype(np.int64)
    rows[stored[rows] != wanted] = -1
    return rows


def _heads(keys: Keys) -> NDArray[np.uint64]:
    """First eight bytes of each key, as a number."""
    words = np.ascontiguousarray(keys).view(">u8").reshape(keys.size, -1)
    return words[:, 0].astype(np.uint64)


AT_ONCE = 2**14  # cells whose content is in memory at a time
TRIED = 64  # values of a field for which whole systems are built, where there are more of them

Texts = tuple[tuple[Axis, ...], tuple[str, ...]]
"""The axes that set a field, and its canonical JSON for every combination of their values."""


@dataclass(frozen=True)
class Cells:
    """Grid cells of one method: the product of the axes that its result depends on.

    They are numbered with the last axis fastest, and put together from fragments: nothing here
    grows with their number. ``fields`` has for each top-level field, in sorted order, the positions
    of the axes that set it, and its canonical JSON for every combination of their values (empty for
    a default). ``ignored`` is that of fields which the system needs and its result does not.
    """

    axes: tuple[Axis, ...]
    fields: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]
    ignored: tuple[str, ...] = ()
    left_out: NDArray[np.bool_] | None = field(default=None, compare=False)
    """Which cells the study leaves out; None if it leaves out none."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def _texts(self, cells: NDArray[np.int64], more: tuple[str, ...] = ()) -> list[str]:
        """JSON of some cells, put together field by field for all of them at once."""
        index = np.unravel_index(cells, self.shape) if self.axes else ()
        columns = [[text] * cells.size for text in more]
        for used, fragments in self.fields:
            code = np.zeros(cells.size, dtype=np.int64)
            for position in used:
                code = code * self.axes[position].size + index[position]
            columns.append([fragments[c] for c in code.tolist()])
        rows = zip(*columns, strict=True) if columns else [()] * cells.size
        return ["{" + ",".join(filter(None, row)) + "}" for row in rows]

    def systems(self, cells: NDArray[np.int64]) -> list[str]:
        """JSON from which the systems of some cells are built, ignored fields included."""
        return self._texts(cells, self.ignored)

    def contents(self) -> Iterator[str]:
        """Canonical JSON of what every cell's result depends on, in order."""
        for first in range(0, self.size, AT_ONCE):
            texts = self._texts(np.arange(first, min(first + AT_ONCE, self.size)))
            yield from map(without_place, texts)


def check_where(where: str, swept: tuple[Axis, ...]) -> NDArray[np.bool_] | None:
    """Which combinations of all values a condition leaves out, shape (axes' sizes); None for none.

    HdicaError if it is no condition on numbers that are swept, or leaves out all.
    """
    if not where:
        return None
    numbers = {
        one.dim: (place, one.values)
        for place, axis in enumerate(swept)
        for one in (*axis.parts, axis)
        if isinstance(one.values[0], float)
    }
    # Loads SymPy, which most studies do without here.
    from hdica.ingredients.grammar import constants_used, read_expression
    from hdica.ingredients.switches import vectorised

    for name in sorted(constants_used(where, "")):
        if name not in numbers:
            near = suggestion(name, [*numbers])
            raise HdicaError(f"where: {name} is no number that is swept ({near})")
    names = tuple(sorted(constants_used(where, "")))
    try:
        expression, symbols = read_expression(where, names, {})
    except HdicaError as exc:
        raise HdicaError(f"where: {exc}") from None
    columns = []
    for name in names:
        place, values = numbers[name]
        shape = [1] * len(swept)
        shape[place] = len(values)
        columns.append(np.array(values).reshape(shape))
    kept = vectorised(expression, *symbols)(*columns) if columns else np.array(0.0)
    whole = np.broadcast_to(kept, [axis.size for axis in swept])
    if not np.isin(whole, (0, 1)).all():
        raise HdicaError(f"where = {where!r} is no condition (a comparison, as tau*Q0 < 0.03)")
    if not np.any(whole > 0):
        raise HdicaError(f"where = {where!r} leaves out every point")
    return ~(whole > 0)


def cells_of(
    method: Method,
    swept: tuple[Axis, ...],
    texts: dict[str, Texts],
    left_out: NDArray[np.bool_] | None = None,
) -> Cells:
    """Cells of one method, from what :func:`field_texts` found for all swept parameters.

    A cell of one that does not depend on some axes is left out if it is at all their values.
    """
    axes = tuple(axis for axis in swept if not axis.fields <= method.scope.ignores)
    fields = tuple(
        (tuple(axes.index(axis) for axis in used), fragments)
        for name, (used, fragments) in texts.items()
        if name not in method.scope.ignores
    )
    ignored = (texts[name][1][0] for name in sorted(method.scope.ignores & texts.keys()))
    if left_out is not None:
        others = tuple(place for place, axis in enumerate(swept) if axis not in axes)
        left_out = np.all(left_out, axis=others).reshape(-1)
    return Cells(axes, fields, tuple(text for text in ignored if text), left_out)


def field_texts(space: Space) -> dict[str, Texts]:
    """Canonical JSON of every field of a study's systems, by name in sorted order.

    Each field varies alone, on top of the first values of the axes of the others.
    """
    written = space.at().model_dump(mode="json", exclude_defaults=True)
    names = {*written, *(name for axis in space.axes for name in axis.fields)}
    texts: dict[str, Texts] = {}
    for name in sorted(names):
        used = tuple(axis for axis in space.axes if name in axis.fields)
        texts[name] = used, _fragments(name, used, space)
    return texts


def _fragment(content: Mapping[str, object], name: str) -> str:
    """One field of a system as a part of its canonical JSON, empty for a default."""
    return f"{canonical_json(name)}:{canonical_json(content[name])}" if name in content else ""


def _fragments(name: str, used: tuple[Axis, ...], space: Space) -> tuple[str, ...]:
    """One field for every combination of the values of its axes."""
    shape = tuple(axis.size for axis in used)

    def whole(place: int) -> str:
        index = np.unravel_index(place, shape) if used else ()
        chosen = {a.path: a.values[int(i)] for a, i in zip(used, index, strict=True)}
        written = space.at(chosen).model_dump(mode="json", exclude_defaults=True)
        return _fragment(written, name)

    # A system with a formula takes milliseconds to build. Where there are many, numbers are put
    # into the text of the field, and systems spread evenly over them say whether that is right.
    size = math.prod(shape)
    own = [[one for one in axis.each if one.path[0] == name] for axis in used]
    firsts = (one.values[0] for axis in own for one in axis)
    if size > TRIED and all(isinstance(value, float) for value in firsts):
        quick = _numbers_put_in(name, own, space.at())
        tried = np.linspace(0, size - 1, TRIED).astype(int).tolist()
        if all(whole(place) == quick[place] for place in tried):
            return quick
    return tuple(whole(place) for place in range(size))


def _numbers_put_in(name: str, used: Sequence[Sequence[Axis]], base: Parameters) -> tuple[str, ...]:
    """The field's text in ``base``, with the numbers of some axes, each in parts, put into it."""
    content = base.model_dump(mode="json")[name]
    paths = [one.path for axis in used for one in axis]

    def with_leaves(leaves: Iterable[object]) -> object:
        return nested([((name,), content), *zip(paths, leaves, strict=True)])[name]

    marked = _fragment({name: with_leaves(f"<{place}>" for place in range(len(paths)))}, name)
    text = re.sub(r'"<(\d+)>"', r"{\1}", marked.replace("{", "{{").replace("}", "}}"))
    rows = [list(zip(*(one.values for one in axis), strict=True)) for axis in used]
    if len(rows) == 1:
        texts = [text.format(*map(repr, row)) for row in rows[0]]
    else:
        written = [[tuple(map(repr, row)) for row in own] for own in rows]
        texts = [text.format(*itertools.chain(*some)) for some in itertools.product(*written)]
    default = type(base).model_fields[name].get_default(call_default_factory=True)
    leaves = [tuple(_leaf(default, one.path[1:]) for one in axis) for axis in used]
    if with_leaves(itertools.chain(*leaves)) == default:
        places = [
            [place for place, row in enumerate(own) if row == wanted]
            for own, wanted in zip(rows, leaves, strict=True)
        ]
        for some in itertools.product(*places):
            texts[int(np.ravel_multi_index(some, [len(own) for own in rows]))] = ""
    return tuple(texts)


def _leaf(content: object, path: Path) -> object:
    """What lies at a path of nested mappings, None if nothing does."""
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content


PARTS = {
    "x": "densities",
    "thresholds": "support recovery",
    "estimate": "estimates",
    "functionals": "functionals",
    "extra": "",
    "bands": "bands",
    "bias": "biases",
}
"""What each key of ``save`` brings; ``extra`` brings the variables that it names."""
AT_SNAPSHOTS = ("x", "thresholds", "estimate")  # kept at the snapshots


def parts(save: Save) -> Iterator[tuple[str, str, Save]]:
    """The parts of what is kept: the key of ``save``, what it brings, and that part alone."""
    for key, what in PARTS.items():
        value = getattr(save, key)
        if key == "extra":
            yield from ((key, name, Save(extra=(name,))) for name in value)
        elif value:
            times = save.snapshots if key in AT_SNAPSHOTS else ()
            yield key, what, Save(**{"snapshots": times, key: value})


def can_keep(method: Method, part: Save) -> bool:
    """Whether a method keeps anything of a part."""
    return len(method.outputs_of(part)) > len(method.outputs.always)


def saved_by(method: Method, save: Save) -> Save:
    """What a method can keep of what a study asks for: nothing else is in its keys."""
    content: dict[str, Any] = {}
    for key, name, part in parts(save):
        if can_keep(method, part):
            value = (*content.get(key, ()), name) if key == "extra" else getattr(part, key)
            content |= {key: value} | ({"snapshots": part.snapshots} if part.snapshots else {})
    return Save(**content)


def sized(save: Save, sizes: Iterable[int | None]) -> Save:
    """The same where as many entries of the estimate are kept as the largest n has.

    Points of all n keep as many, because they stand in one array: NaN where there are no more.
    """
    most = max((n for n in sizes if n is not None), default=0)
    if save.estimate > most:
        raise HdicaError(
            f"save.estimate = {save.estimate} is not allowed (at most n = {most} entries)"
        )
    return replace(save, estimate=most) if save.estimate == ALL else save


NAME = re.compile(r".+-[0-9a-f]{8}")  # what the name of a segment's directory looks like
MOST_WORDS = 100  # words of an axis that are tried for the largest point
Own = tuple[tuple[str, tuple[float, ...]], ...]  # dimensions of a system, with coordinates


@dataclass(frozen=True)
class Segment:
    """Points of one method at one n: cells times seeds, seed fastest."""

    system: str
    method: Method
    n: int | None  # None for a method without
    seeds: tuple[int, ...]  # empty for a method without
    times: tuple[float, ...]
    cells: Cells  # shared by the segments of a method
    save: Save = NOTHING  # what the method keeps beyond its outputs
    own: Own = ()  # dimensions of the system's own that outputs have

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Every variable of a point."""
        return self.method.outputs_of(self.save)

    @property
    def per_cell(self) -> int:
        """Points a cell: the number of seeds, or 1."""
        return max(1, len(self.seeds))

    @property
    def size(self) -> int:
        """Number of points, with those that are left out."""
        return self.cells.size * self.per_cell

    @cached_property
    def left_out(self) -> NDArray[np.bool_] | None:
        """Which points are left out; None if none is."""
        cells = self.cells.left_out
        return None if cells is None else np.repeat(cells, self.per_cell)

    @property
    def points(self) -> int:
        """Number of points that are not left out."""
        return self.size - (0 if self.left_out is None else int(self.left_out.sum()))

    @cached_property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Coordinates of the method's own dimensions."""
        times = np.asarray(self.times, dtype=float)
        coords = self.method.coords_of(times, self.save, dict(self.own))
        return {dim: np.asarray(values) for dim, values in coords.items()}

    def shape(self, dims: tuple[str, ...]) -> tuple[int, ...]:
        """Sizes of some of the method's own dimensions."""
        return tuple(len(self.coords[dim]) for dim in dims)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of one variable of a point; () of its status, times and reason."""
        return next((self.shape(o.dims) for o in self.outputs if o.name == name), ())

    @property
    def label(self) -> str:
        """Its method and its n, for a person."""
        return self.method.name if self.n is None else f"{self.method.name} with n = {self.n}"

    @cached_property
    def name(self) -> str:
        """Directory of the segment: method, n, and a digest of times, outputs, kernel and save."""
        outputs = {o.name: [list(o.dims), list(self.shape(o.dims))] for o in self.outputs}
        identity = [self.system, list(self.times), outputs, self.method.about.kernel]
        if self.save.anything:
            identity.append(plain_save(self.save))
        middle = "" if self.n is None else f"-n{self.n}"
        return f"{self.method.name}{middle}-{json_digest(identity)[:8]}"

    def keys(self) -> Keys:
        """Key of every point, in order: sha256 of the canonical JSON of all that it depends on.

        The digest of what the seeds of a cell share is computed once and copied. Times and ``save``
        enter by digests of their own.
        """
        save, times = plain_save(self.save), json_digest([float(t) for t in self.times])
        digest = f',"save":"{json_digest(save)}"' if save else ""
        middle = (
            f',"kernel":{canonical_json(self.method.about.kernel)}'
            f',"method":{canonical_json(self.method.name)}'
            f',"n":{canonical_json(self.n)}{digest},"seed":'
        ).encode()
        end = f',"system":{canonical_json(self.system)},"times":"{times}"}}'
        tails = [(canonical_json(seed) + end).encode() for seed in self.seeds or (None,)]
        digests = bytearray()
        for content in self.cells.contents():
            shared = hashlib.sha256(b'{"content":' + content.encode() + middle)
            for tail in tails:
                point = shared.copy()
                point.update(tail)
                digests += point.digest()
        return np.frombuffer(digests, dtype="S32")

    def sample_systems(self) -> list[Parameters]:
        """Nine systems of cells spread evenly over the grid, for the cost model."""
        chosen = np.unique(np.linspace(0, self.cells.size - 1, 9).round().astype(int))
        return [registry.built(self.system, text) for text in self.cells.systems(chosen)]

    @cached_property
    def seconds_per_point(self) -> float:
        """Mean cost of a point on one core, from the method's cost model."""
        costs = [self.method.cost.seconds(s, self.n, self.times[-1]) for s in self.sample_systems()]
        return max(1e-7, float(np.mean(costs)))

    @cached_property
    def prepares(self) -> dict[Hashable, float]:
        """Seconds that a process needs once for its points, by what it prepares."""
        parts = [self.method.cost.prepares(system) for system in self.sample_systems()]
        return {key: seconds for part in parts for key, seconds in part.items()}

    @cached_property
    def memory(self) -> float:
        """Bytes that its largest point needs at least while it is computed, with its results."""
        memory, axes, chosen = self.method.cost.memory, self.cells.axes, [0] * len(self.cells.axes)
        if memory is no_memory or not self.size:
            return float(self.bytes_per_point)

        def needed(index: list[int]) -> float:
            place = np.ravel_multi_index(index, self.cells.shape) if axes else 0
            with suppress(HdicaError):  # not every cell need be allowed
                (text,) = self.cells.systems(np.array([place]))
                return 8.0 * memory(registry.built(self.system, text), self.n, self.times[-1])
            return 0.0

        for position, axis in enumerate(axes):
            # What is needed grows or falls with a number; words have no order.
            ends = {0, axis.size - 1}
            some = range(min(axis.size, MOST_WORDS)) if isinstance(axis.values[0], str) else ends
            tried = [[*chosen[:position], one, *chosen[position + 1 :]] for one in some]
            chosen = max(tried, key=needed)
        return needed(chosen) + self.bytes_per_point

    @property
    def bytes_per_point(self) -> int:
        """Size of a point's results, uncompressed, with status, time, key and seed."""
        values = sum(int(np.prod(self.shape(o.dims))) for o in self.outputs)
        return 8 * values + 1 + 8 + 32 + 8


def own_dimension(study: StudySchema, dim: str) -> tuple[float, ...]:
    """Coordinate of a dimension of the system's own: its values where all cells have the same.

    Else its entries are numbered; those of ``feature`` by increasing xi, and the variable ``xi``
    has the values.
    """
    space = study.space
    used = [axis for axis in space.axes if space.system.sized_by[dim] in axis.fields]
    places: dict[tuple[float, ...], str] = {}
    for values in itertools.product(*(axis.values for axis in used)):
        entries = space.at({a.path: v for a, v in zip(used, values, strict=True)}).dims()[dim]
        coordinate = tuple(v if isinstance(v, int) else canonical(v) for v in entries)
        places.setdefault(coordinate, ", ".join(map(shown, values)))
    first, *others = places
    for other in others:
        if len(other) != len(first):
            names = " and ".join(axis.where for axis in used)
            raise HdicaError(
                f"{names}: dimension {dim!r} has {len(first)} entries at {places[first]} and "
                f"{len(other)} at {places[other]} (what is kept needs as many in every cell)"
            )
    return tuple(range(len(first))) if others else first


def segments_of(study: StudySchema, left_out: NDArray[np.bool_] | None = None) -> list[Segment]:
    """All segments of a study, by method in the study's order, then by n.

    ``left_out`` says which combinations of all values are, shape (axes' sizes), where results
    decide that; else the study does.
    """
    methods = registry.methods_of(study.system, study.noise)
    asked, space = study.save_spec(), study.space
    texts, sizes = field_texts(space), space.system.sized_by
    left_out = _left_out(study) if left_out is None else left_out
    coords: dict[str, tuple[float, ...]] = {}
    segments = []
    for name, settings in study.methods.items():
        save, seeds = saved_by(methods[name], asked), settings.seed_values()
        save = sized(save, settings.n_values)
        used = [d for d in sizes if any(d in o.dims for o in methods[name].outputs_of(save))]
        coords |= {dim: own_dimension(study, dim) for dim in used if dim not in coords}
        cells = cells_of(methods[name], space.axes, texts, left_out)
        what = (study.times, cells, save, tuple((dim, coords[dim]) for dim in used))
        segments += [
            Segment(study.system, methods[name], n, seeds, *what) for n in settings.n_values
        ]
    return segments


def _left_out(study: StudySchema) -> NDArray[np.bool_] | None:
    """What a study leaves out before anything of it is computed."""
    if study.refine is None:
        return check_where(study.where, study.space.axes)
    return ~coarse(study)
