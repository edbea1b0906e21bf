"""What the known systems call things: dimensions of matrices, order parameters, starts, symbols."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hdica.systems.system import OrderParameter, Symbol, System, lookup, systems

STATES = frozenset({"fixed_point", "transition", "branch_point"})
"""Dimensions along which steady states and transitions are numbered."""
_SPOKEN_OF: ContextVar[str] = ContextVar("system", default="")


@contextmanager
def speaking_of(system: str) -> Iterator[None]:
    """Names as one system writes them, where it says how: several may share a name."""
    token = _SPOKEN_OF.set(system)
    try:
        yield
    finally:
        _SPOKEN_OF.reset(token)


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
