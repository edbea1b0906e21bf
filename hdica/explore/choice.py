"""What a visitor has chosen: always something that the results have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.points.space import (
    DENSITY,
    Axis,
    Point,
    Quantity,
    beside,
    methods_in,
    quantity,
    variables_in,
)
from hdica.show.words import Text, method_name, place, symbol, words


@dataclass(frozen=True)
class Choice:
    """A variable, the sides of its map, and one value along every dimension.

    Parameters
    ----------
    shown
        The variable.
    others
        The same variable of other methods, and what theory says of it.
    densities
        Densities that methods have.
    x, y
        Sides of the map: swept parameters with several values, empty where there are too few.
    values
        The chosen value along every dimension, by its name.
    """

    shown: Quantity
    others: tuple[Quantity, ...]
    densities: tuple[Quantity, ...]
    x: str
    y: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every dimension along which a value is chosen, those of densities last."""
        own = {one.name: one for one in self.shown.axes}
        for one in self.densities[:1]:
            own |= {axis.name: axis for axis in one.entries if axis.name not in own}
        return tuple(own.values())

    @cached_property
    def point(self) -> Point:
        """Positions of the chosen values."""
        return {one.name: one.at(self.values[one.name]) for one in self.axes}

    def point_of(self, other: Quantity) -> Point:
        """The same point for another method; where it does not have it, its last value."""
        found = {}
        for one in other.axes:
            value = self.values.get(one.name)
            known = value is not None and one.values[one.at(value)] == value
            found[one.name] = one.at(value) if known else one.size - 1
        return found

    def label_of(self, other: Quantity) -> Text:
        """A method, and where its point is if that is not the chosen one."""
        at, mine = self.point_of(other), self.values
        differs = {
            a.name: a.values[at[a.name]].item()
            for a in other.swept
            if a.size and (a.name == "n" or a.values[at[a.name]] != mine.get(a.name))
        }
        name = method_name(other.method)
        if DENSITY.name != other.variable != self.shown.variable:
            name = name + words(": ") + symbol(other.variable)
        return name + words(", ") + place(differs) if differs else name

    @property
    def key(self) -> tuple[Any, ...]:
        """What is another one as soon as figures have to be made anew."""
        axes = tuple((one.name, tuple(one.values.tolist())) for one in self.axes)
        names = tuple((one.method, one.variable) for one in (*self.others, *self.densities))
        return (self.shown.method, self.shown.variable, self.x, self.y, axes, names)


def chosen(
    tree: xr.DataTree,
    method: str = "",
    variable: str = "",
    x: str = "",
    y: str = "",
    values: Mapping[str, Any] | None = None,
) -> Choice:
    """A choice as close as possible to what is asked for.

    Parameters
    ----------
    tree
        Results.
    method, variable, x, y
        Names; what is empty or not there is replaced.
    values
        Wanted values by dimension; of others the last time and ``n``, and values in the middle.
    """
    method = method if method in methods_in(tree) else _first_method(tree)
    names = variables_in(tree, method)
    shown = quantity(tree, method, variable if variable in names else names[0])
    densities = tuple(_densities(tree))
    sides = [one.name for one in sorted(shown.numbers, key=_rank)]
    if x not in sides:
        x = next((name for name in sides if name != y), sides[0] if sides else "")
    if y not in sides or y == x:
        y = next((name for name in sides if name != x), "")
    found = Choice(shown, tuple(beside(tree, shown)), densities, x, y)
    wanted = dict(values or {})
    settled = {one.name: _value(one, wanted.get(one.name), shown) for one in found.axes}
    return Choice(shown, found.others, densities, x, y, wanted | settled)


def _first_method(tree: xr.DataTree) -> str:
    """The method that is shown first: with seeds, and over most swept parameters."""

    def rank(name: str) -> tuple[bool, int]:
        status = tree[name]["status"]
        return "seed" not in status.dims, -sum(status.sizes[d] > 1 for d in status.dims)

    return min(methods_in(tree), key=rank)


def _densities(tree: xr.DataTree) -> list[Quantity]:
    """The densities that methods have, those with seeds first."""
    known = [m for m in methods_in(tree) if DENSITY.name in variables_in(tree, m)]
    every = [quantity(tree, method, DENSITY.name) for method in known]
    return sorted(every, key=lambda one: not one.seeds)


def _rank(axis: Axis) -> int:
    """Which axes make a map first: numbers, then words, then ``n``."""
    return 2 if axis.name == "n" else int(axis.values.dtype.kind not in "fiu")


def _value(axis: Axis, wanted: Any, shown: Quantity) -> Any:
    """The value of an axis that is closest to a wanted one, or a good first one."""
    last = axis.name == "n" or (shown.along is not None and axis.name == shown.along.name)
    first = 0 if axis in shown.entries else (axis.size - 1) // 2
    place = axis.at(wanted) if wanted is not None else (axis.size - 1 if last else first)
    value = axis.values[place]
    return value.item() if isinstance(value, np.generic) else value
