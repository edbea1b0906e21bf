"""What is asked for beyond the order parameters: densities, support recovery, and the like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.save import ALL, Save
from hdica.systems.arguments import extra_names, formulas, increasing, shown
from hdica.systems.method import Method
from hdica.systems.points import (
    check_extra,
    check_functionals,
    check_points,
    check_size,
    how_many_entries,
    times_for,
)
from hdica.systems.registry import record_of

Array = NDArray[np.float64]


Numbers = Iterable[float] | Mapping[str, Any]
"""A list of numbers, or ``{start, stop, num, spacing}`` as a study writes them."""


@dataclass(frozen=True)
class Asked:
    """What is asked for beyond Q and R, as in :func:`hdica.limit`."""

    snapshots: Numbers | None
    x: Numbers | None
    thresholds: Numbers | None
    functionals: Mapping[str, str] | None
    extra: Iterable[str] | None = None
    estimate: bool | int = False
    bands: bool = False
    bias: bool = False

    def __post_init__(self) -> None:
        for name, value in {"bands": self.bands, "bias": self.bias}.items():
            if not isinstance(value, bool | np.bool_):
                raise HdicaError(f"{name} = {shown(value)} is not allowed (True or False)")

    @property
    def plain(self) -> bool:
        """Whether none of it is of the entries of the estimate."""
        entries = (self.snapshots, self.x, self.thresholds, self.functionals)
        return all(value is None for value in entries) and not how_many_entries(self.estimate)

    def first(self, methods: Sequence[Method]) -> list[Method]:
        """Methods that give what is asked for by name; all of them if none does."""
        wanted = set(extra_names(self.extra))
        if how_many_entries(self.estimate):
            methods = [m for m in methods if "estimate" in m.keeps] or methods
        if self.bands or self.bias:
            methods = [m for m in methods if not _refused(m, self)] or methods
        return [m for m in methods if wanted <= {o.name for o in m.extras}] or list(methods)


def _refused(method: Method, asked: Asked) -> str:
    """Empty if a method has the bands and the bias that are asked for, else the sentence."""
    for name, there in (("bands", method.bands), ("bias", method.bias)):
        given = getattr(asked, name)
        if not isinstance(given, bool):
            return f"{name} = {given!r} is not allowed (true or false)"
        if given and not there and not _has(method, name):
            what = "fluctuations" if name == "bands" else "the mean"
            return (
                f"{name} = True is not allowed with method {method.name!r} (no theory of {what} at "
                "finite n is known for it)"
            )
    return ""


def _has(method: Method, name: str) -> bool:
    """Whether a method gives bands without being asked."""
    return name == "bands" and any(output.name.endswith("_sd") for output in method.outputs)


def timed(method: Method, times: Array | None, asked: Asked) -> Array:
    """The output times of what is asked of a method."""
    return times_for(method, times, extra_names(asked.extra))


def _entries(method: Method, system: Any, asked: Asked, sizes: Sequence[int | None]) -> int:
    """How many entries of the estimate are kept, of at most as many as there are."""
    count, most = how_many_entries(asked.estimate), max((n for n in sizes if n), default=0)
    if count and "estimate" not in method.keeps:
        name = type(system).__name__
        able = [repr(m.name) for m in record_of(system).methods if "estimate" in m.keeps]
        use = f"use method {' or '.join(able)}" if able else f"no method of {name} does"
        raise HdicaError(f"method {method.name!r} keeps no estimate ({use})")
    if count > most:
        raise HdicaError(f"estimate = {count} is not allowed (at most n = {most} entries)")
    return most if count == ALL else count


def saved(
    method: Method, system: Any, times: Array, asked: Asked, sizes: Sequence[int | None] = ()
) -> Save:
    """What to keep, checked against the times, the method and its dimensions."""
    from hdica.ingredients.formula import parse_functional

    entries = _entries(method, system, asked, sizes)
    snapshots = asked.snapshots
    points = increasing(asked.x, "x", "point", positive=False)
    theta = increasing(asked.thresholds, "thresholds", "threshold")
    means = formulas(asked.functionals)
    anything = snapshots is not None or points or theta or means
    if anything and not method.keeps:
        name = type(system).__name__
        able = [repr(m.name) for m in record_of(system).methods if m.keeps]
        use = f"use method {' or '.join(able)}" if able else f"no method of {name} does"
        raise HdicaError(f"method {method.name!r} keeps no densities ({use})")
    check_points(points)
    kept = increasing(snapshots, "snapshots", "time")
    if snapshots is None and (points or theta or entries):
        kept = tuple(times.tolist())
    for one in kept:
        if not np.any(np.isclose(times, one, rtol=1e-12, atol=1e-12)):
            raise HdicaError(f"snapshots: {one:g} is not one of the times {times.tolist()}")
    refusal = _refused(method, asked)
    if refusal:
        raise HdicaError(refusal)
    extra = extra_names(asked.extra)
    allowed = (output.name for output in method.extras)
    check_extra(extra, allowed, "extra", f"method {method.name!r}")
    save = Save(
        kept, points, theta, extra=extra, estimate=entries, bands=asked.bands, bias=asked.bias
    )
    check_functionals(means, method.outputs_of(save), "functionals")
    for text in means.values():
        parse_functional(text, system.constants)
    save = replace(save, functionals=means)
    if save.anything:
        check_size(method.bytes_of(times, save, system.dims()), method.name)
    return save
