"""Grid cells of a method, the canonical JSON of the systems in them, and the keys of their points.

A key says what a point is, never where it stands.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.plain import without_place
from hdica.systems import space as gr
from hdica.systems.method import Method
from hdica.systems.space import Space

Keys = NDArray[np.bytes_]
"""One 32-byte digest a point, dtype ``S32``; an unused place of a store is empty."""


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and without spaces: one text for one content."""
    return _ENCODER.encode(value)


def times_digest(times: Sequence[float]) -> str:
    """Digest of the output times, so that a key need not hash all of them."""
    return hashlib.sha256(canonical_json([float(t) for t in times]).encode()).hexdigest()


def segment_keys(
    contents: Iterable[str],
    seeds: Sequence[int | None],
    *,
    system: str,
    method: str,
    kernel: str,
    times: Sequence[float],
    n: int | None,
    save: str = "",
) -> Keys:
    """Key of every (content, seed), seed fastest: sha256 of canonical JSON of all it depends on.

    ``contents`` is the canonical JSON of each cell's content. The digest of what the seeds of a
    cell (``[None]`` for none) share is computed once and copied.
    """
    kept = f',"save":{canonical_json(save)}' if save else ""
    middle = (
        f',"kernel":{canonical_json(kernel)},"method":{canonical_json(method)}'
        f',"n":{canonical_json(n)}{kept},"seed":'
    ).encode()
    end = f',"system":{canonical_json(system)},"times":"{times_digest(times)}"}}'
    tails = [(canonical_json(seed) + end).encode() for seed in seeds]
    digests = bytearray()
    for content in contents:
        shared = hashlib.sha256(b'{"content":' + content.encode() + middle)
        for tail in tails:
            one = shared.copy()
            one.update(tail)
            digests += one.digest()
    return np.frombuffer(digests, dtype="S32")


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


AT_ONCE = 2**14
"""Cells whose content is in memory at a time."""
TRIED = 64
"""Values of a field for which whole systems are built, where there are more of them."""

Texts = tuple[tuple[gr.Axis, ...], tuple[str, ...]]
"""The axes that set a field, and its canonical JSON for every combination of their values."""


@dataclass(frozen=True)
class Cells:
    """Grid cells of one method: the product of the axes that its result depends on.

    Cells are numbered with the last axis fastest, and their content is put together from
    fragments when asked for: nothing here grows with the number of cells.

    ``fields`` has the top-level fields in sorted order: the axes (by position) that set the field,
    and its canonical JSON for every combination of their values (empty for a default). ``ignored``
    is that of fields on which the result does not depend: a system may need them.
    """

    axes: tuple[gr.Axis, ...]
    fields: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]
    ignored: tuple[str, ...] = ()

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


def cells_of(method: Method, swept: tuple[gr.Axis, ...], texts: dict[str, Texts]) -> Cells:
    """Cells of one method, from what :func:`field_texts` found for all swept parameters."""
    axes = tuple(axis for axis in swept if axis.path[0] not in method.scope.ignores)
    fields = tuple(
        (tuple(axes.index(axis) for axis in used), fragments)
        for name, (used, fragments) in texts.items()
        if name not in method.scope.ignores
    )
    ignored = (texts[name][1][0] for name in sorted(method.scope.ignores & texts.keys()))
    return Cells(axes, fields, tuple(text for text in ignored if text))


def field_texts(space: Space) -> dict[str, Texts]:
    """Canonical JSON of every field of a study's systems, by name in sorted order.

    Each field is varied alone, on top of the first values of the axes of the others.
    """
    base = space.at()
    names = {*_dumped(base), *(axis.path[0] for axis in space.axes)}
    found: dict[str, Texts] = {}
    for name in sorted(names):
        used = tuple(axis for axis in space.axes if axis.path[0] == name)
        found[name] = used, _fragments(name, used, space)
    return found


def _dumped(system: Any) -> dict[str, Any]:
    content: dict[str, Any] = system.model_dump(mode="json", exclude_defaults=True)
    return content


def _fragment(content: dict[str, Any], name: str) -> str:
    """One field of a system as a part of its canonical JSON, empty for a default."""
    return f"{canonical_json(name)}:{canonical_json(content[name])}" if name in content else ""


def _fragments(name: str, used: tuple[gr.Axis, ...], space: Space) -> tuple[str, ...]:
    """One field for every combination of the values of its axes.

    To build a system takes long, a formula in it milliseconds. Where there are many, numbers are
    put into the text of the field, and systems spread evenly over them say whether that is right.
    """
    shape = tuple(axis.size for axis in used)

    def whole(place: int) -> str:
        index = np.unravel_index(place, shape) if used else ()
        chosen = {a.path: a.values[int(i)] for a, i in zip(used, index, strict=True)}
        return _fragment(_dumped(space.at(chosen)), name)

    size = math.prod(shape)
    if size > TRIED and all(isinstance(axis.values[0], float) for axis in used):
        quick = _numbers_put_in(name, used, space.at())
        tried = np.linspace(0, size - 1, TRIED).astype(int).tolist()
        if all(whole(place) == quick[place] for place in tried):
            return quick
    return tuple(whole(place) for place in range(size))


def _numbers_put_in(name: str, used: tuple[gr.Axis, ...], base: Any) -> tuple[str, ...]:
    """The field's text in ``base``, with the numbers of some axes put into it."""
    given = base.model_dump(mode="json")[name]
    paths = [axis.path for axis in used]

    def with_leaves(leaves: Iterable[Any]) -> Any:
        return gr.nested([((name,), given), *zip(paths, leaves, strict=True)])[name]

    marked = _fragment({name: with_leaves(f"<{place}>" for place in range(len(used)))}, name)
    pieces = re.split(r'"<(\d+)>"', marked)
    text = "%s".join(piece.replace("%", "%%") for piece in pieces[::2])
    order = [int(place) for place in pieces[1::2]]
    in_text = itemgetter(*order) if len(order) > 1 else tuple
    numbers = itertools.product(*(map(repr, axis.values) for axis in used))
    found = [text % in_text(some) for some in numbers]
    default = type(base).model_fields[name].get_default(call_default_factory=True)
    leaves = [_leaf(default, path[1:]) for path in paths]
    met = [leaf in axis.values for axis, leaf in zip(used, leaves, strict=True)]
    if all(met) and with_leaves(leaves) == default:
        index = [axis.values.index(leaf) for axis, leaf in zip(used, leaves, strict=True)]
        found[int(np.ravel_multi_index(index, [axis.size for axis in used]))] = ""
    return tuple(found)


def _leaf(content: Any, path: gr.Path) -> Any:
    """What lies at a path of nested mappings, None if nothing does."""
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content
