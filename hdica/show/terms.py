"""What the known systems call things: dimensions of matrices, order parameters, starts, symbols."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from hdica.systems.space import Axis, space_of_study
from hdica.systems.system import OrderParameter, Symbol, System, lookup, systems
from hdica.systems.values import Value, shown

STATES = frozenset({"fixed_point", "transition", "branch_point"})
"""Dimensions along which steady states and transitions are numbered."""
_SPOKEN_OF: ContextVar[str] = ContextVar("system", default="")
_STUDY: ContextVar[str] = ContextVar("study", default="")


@contextmanager
def speaking_of(system: str, study: str = "") -> Iterator[None]:
    """Names as one system writes them, where it says how: several may share a name.

    Cases of a ``study``, the JSON of one, are named by the parameters that go together in them.
    """
    tokens = _SPOKEN_OF.set(system), _STUDY.set(study)
    try:
        yield
    finally:
        _SPOKEN_OF.reset(tokens[0])
        _STUDY.reset(tokens[1])


def speaking_of_results(attrs: Mapping[Hashable, Any]) -> AbstractContextManager[None]:
    """Names as the system of some results, or an aggregate of them, writes them."""
    return speaking_of(str(attrs.get("system", "")), str(attrs.get("study_yaml") or ""))


@lru_cache(maxsize=8)
def _cases(system: str, study: str) -> dict[str, tuple[Axis, dict[Value, int]]]:
    """Axes along which parameters go together, and the place of each value."""
    record, content = lookup(system), json.loads(study or "{}")
    if record is None or not (content.get("cases") or content.get("sample")):
        return {}
    axes = space_of_study(record.parameters, content).axes
    places = ((axis, {value: k for k, value in enumerate(axis.values)}) for axis in axes)
    return {axis.dim: (axis, each) for axis, each in places if axis.parts}


def together(name: str, value: object = None) -> dict[str, Value]:
    """Parameters that go together with one, or in a case, at a value; the first without any."""
    axis, places = _cases(_SPOKEN_OF.get(), _STUDY.get()).get(name, (None, {}))
    if axis is None:
        return {}
    place = 0 if value is None else places.get(value)  # type: ignore[call-overload]
    return {} if place is None else {one.dim: one.values[place] for one in axis.parts}


def is_spelled_out(name: str, value: object) -> bool:
    """Whether the label of a case says no more than the parameters that it sets."""
    axis, _ = _cases(_SPOKEN_OF.get(), _STUDY.get()).get(name, (None, {}))
    parts = zip(axis.parts, together(name, value).values(), strict=False) if axis else ()
    return value == "; ".join(f"{one.key} = {shown(each)}" for one, each in parts)


def speaker() -> System | None:
    """The system that is spoken of, None if none is."""
    return lookup(_SPOKEN_OF.get())


def spoken() -> str:
    """What the system that is spoken of is called, in short; empty if none is."""
    record = speaker()
    return "" if record is None else (record.short or record.title)


def entries() -> frozenset[str]:
    """Dimensions of entries of matrices in the system that is spoken of, or so in every system."""
    record = speaker()
    if record is not None:
        return record.entries
    every = [dim for one in systems().values() for dim in one.dimensions]
    others = {dim.name for dim in every if not dim.entries}
    return frozenset(dim.name for dim in every if dim.entries) - others


def padded() -> frozenset[str]:
    """Dimensions along which points have different numbers of entries; the rest is NaN."""
    sized = {
        dim for record in systems().values() for dim in getattr(record.parameters, "sized_by", {})
    }
    return STATES | sized | entries()


def written(name: str) -> Symbol | None:
    """How a name is written, by the system that is spoken of or the first that says so."""
    known = sorted(systems().values(), key=lambda record: record.name != _SPOKEN_OF.get())
    return next((record.symbols[name] for record in known if name in record.symbols), None)


def own(name: str) -> Symbol | None:
    """How the system that is spoken of writes a name, None if it does not say or none is."""
    record = speaker()
    return None if record is None else record.symbols.get(name)


def starts() -> frozenset[str]:
    """Swept parameters that set the one number that the limit follows at the start."""
    return frozenset(
        alias
        for record in systems().values()
        for alias, path in getattr(record.parameters, "aliases", {}).items()
        if path == ("start", "overlap") and not record.order_parameters[0].dims
    )


def steps() -> frozenset[str]:
    """Parameters that are step sizes."""
    controls = (control for record in systems().values() for control in record.controls)
    return frozenset(control.name for control in controls if control.step)


def order_parameters(name: str = "") -> Iterator[OrderParameter]:
    """Order parameters of every system; those of one name."""
    for record in systems().values():
        yield from (one for one in record.order_parameters if name in ("", one.name))


def matrix_over(dims: Collection[object]) -> OrderParameter | None:
    """The order parameter that is a matrix over most of these dimensions, if any: the first."""
    matrices = (p for p in order_parameters() if p.dims and set(p.dims) <= set(dims))
    return max(matrices, key=lambda p: len(p.dims), default=None)
