"""What can be chosen in results: methods, variables, swept parameters, entries and times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.reading import grid_of, overlaps
from hdica.show.terms import padded
from hdica.show.words import Text, axis, count, counted, is_numbered, symbol, value_of, words
from hdica.systems.outputs import DENSITIES, STEADY_DENSITIES

DENSITY = DENSITIES[0]
"""The variable that is drawn as densities, and its own dimensions."""
COMPANIONS = ("_error", "_control", "_sd", "_bias", "_from_n")
"""Ends of the names of variables that stand beside another one."""
ERROR = "error"
"""The error of all variables of a method at once, which is the last to be looked at."""
TIMES = {"time": "", "snapshot": " of the density"}
"""Times, which are all written t, and what tells them apart."""
Point = dict[str, int]
"""A grid point, and an entry of a variable: the position along each dimension."""


@dataclass(frozen=True, eq=False)
class Axis:
    """A dimension along which a value is chosen; its values, of shape (size,), may be words."""

    name: str
    values: NDArray[Any]

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.values.size)

    @property
    def label(self) -> Text:
        """As the label of an axis."""
        return self.symbol if self.name in TIMES else axis(self.name)

    @property
    def symbol(self) -> Text:
        """As it is written before a value."""
        if self.name in TIMES:
            return symbol("snapshot") + words(TIMES[self.name])
        return symbol(self.name)

    @property
    def scale(self) -> Literal["linear", "log", "places"]:
        """Whether the values are evenly spaced, evenly in their logarithm, or neither."""
        if self.values.dtype.kind not in "fiu" or self.size < 2:
            return "places"
        steps = self.values.astype(float)
        if _even(steps):
            return "linear"
        return "log" if steps[0] > 0 and _even(np.log(steps)) else "places"

    def at_value(self, place: int) -> Text:
        """One value with the symbol: "τ = 0.05"."""
        return self.symbol + words(self.equals + self.shown(place))

    @property
    def equals(self) -> str:
        """What stands between the symbol and a value."""
        return " " if self._counts else " = "

    @property
    def _counts(self) -> bool:
        """Whether the values number entries of a matrix."""
        return self.values.dtype.kind in "fiu" and is_numbered(self.name)

    def shown(self, place: int) -> str:
        """One value."""
        value = self.values.item(place)
        return count(counted(self.name, value)) if self._counts else value_of(value)

    def at(self, value: Any) -> int:
        """Position of a value, or of the one that is closest; 0 for a word that is not there."""
        if self.values.dtype.kind in "fiu" and isinstance(value, int | float | np.number):
            return int(np.argmin(np.abs(self.values - value)))
        found = np.flatnonzero(self.values == value)
        return int(found[0]) if found.size else 0


def _even(values: NDArray[np.float64]) -> bool:
    steps = np.diff(values)
    return bool(np.all(np.abs(steps - steps.mean()) <= 0.02 * abs(steps.mean())))


@dataclass(frozen=True, eq=False)
class Quantity:
    """One variable of one method.

    ``swept`` are the swept parameters and ``n``, in the order of the study; ``along`` is the
    variable's own dimension along which it is drawn, as time, if any, and ``entries`` are its other
    own ones, of which one entry is looked at. ``seeds`` is 0 for a method without.
    """

    method: str
    variable: str
    swept: tuple[Axis, ...]
    along: Axis | None
    entries: tuple[Axis, ...]
    seeds: int

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every dimension of which one value is looked at."""
        return (*self.swept, *self.entries, *((self.along,) if self.along else ()))

    def axis(self, name: str) -> Axis:
        """One of the dimensions."""
        return next(one for one in self.axes if one.name == name)

    @property
    def numbers(self) -> tuple[Axis, ...]:
        """Swept parameters with more than one value, over which a map can be drawn."""
        return tuple(one for one in self.swept if one.size > 1)


def methods_in(tree: xr.DataTree) -> list[str]:
    """Methods of results, in the order of their study; what is no method's group is left out."""
    order = list(_study(tree).get("methods", {}))
    known = [str(name) for name, node in tree.children.items() if "status" in node]
    return sorted(known, key=lambda name: order.index(name) if name in order else len(order))


def _study(tree: xr.DataTree) -> dict[str, Any]:
    """The study of results, empty if they have none."""
    return dict(json.loads(tree.attrs.get("study_yaml") or "{}"))


def variables_in(tree: xr.DataTree, method: str) -> list[str]:
    """Variables of a method, order parameters first, and without companions of others.

    Nor with the densities of steady states, of which an analysis draws that of the runs' state.
    """
    data = tree[method].to_dataset()
    steady = STEADY_DENSITIES[0]
    if steady.name in data and steady.dims[0] in data[steady.name].dims:
        data = data.drop_vars([one.name for one in STEADY_DENSITIES])
    beside = set(data["status"].dims)
    names = [
        str(name)
        for name, values in data.data_vars.items()
        if name not in ("status", "reason", "cpu_seconds", "step")
        and values.dtype.kind in "fiu"
        and beside <= set(values.dims)
    ]
    companions = {name + end for name in names for end in COMPANIONS}
    meant = overlaps(tree)
    order = [*meant, *(name for name in names if name not in meant and name != ERROR), ERROR]
    return sorted(set(names) - companions, key=order.index)


def quantity(tree: xr.DataTree, method: str, variable: str) -> Quantity:
    """What can be chosen of a variable of a method."""
    data = tree[method].to_dataset()
    own = [str(d) for d in data[variable].dims if d not in data["status"].dims]
    lines = [d for d in own if d not in padded() and data[d].dtype.kind in "fiu"]
    along = "time" if "time" in own else (lines[-1] if lines else "")
    swept = [*grid_of(data), *(["n"] if "n" in data["status"].dims else [])]

    def made(name: str) -> Axis:
        return Axis(name, data[name].to_numpy())

    return Quantity(
        method,
        variable,
        tuple(map(made, swept)),
        made(along) if along else None,
        tuple(made(d) for d in own if d != along),
        data.sizes.get("seed", 0),
    )


def quantities(tree: xr.DataTree) -> list[Quantity]:
    """Every variable of every method."""
    return [quantity(tree, m, name) for m in methods_in(tree) for name in variables_in(tree, m)]


def beside(
    tree: xr.DataTree, shown: Quantity, every: Sequence[Quantity] | None = None
) -> list[Quantity]:
    """What other methods have of the same variable over the same own dimensions.

    That is what has the same name, and what the study's analyses compare with it; ``every`` has
    the quantities of the results, where they are there already.
    """
    names = [shown.variable, *_predicted(tree, shown.variable)]
    alike = [
        one
        for one in (quantities(tree) if every is None else every)
        if one.method != shown.method and one.variable in names and _own(one) == _own(shown)
        and (one.variable == shown.variable or not one.seeds)
    ]  # fmt: skip
    methods = list(dict.fromkeys(one.method for one in alike))
    return sorted(alike, key=lambda one: (methods.index(one.method), names.index(one.variable)))


def _own(one: Quantity) -> tuple[str, tuple[str, ...]]:
    return one.along.name if one.along else "", tuple(axis.name for axis in one.entries)


def _predicted(tree: xr.DataTree, variable: str) -> list[str]:
    """Names under which the analyses of the study have a theory's value of a variable."""
    found: list[str] = []
    for settings in (_study(tree).get("analysis") or {}).values():
        if isinstance(settings, dict) and settings.get("predicted"):
            measured = [settings.get("variable"), *(settings.get("beside") or ())]
            pairs = zip(measured, settings["predicted"], strict=False)
            found += [theirs for ours, theirs in pairs if ours == variable]
    return found
