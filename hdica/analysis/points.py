"""Grid points of results: what can be chosen, and means over seeds at all points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.laws.densities import histogram_of, over_bins
from hdica.analysis.reading import computed, finished, grid_of, overlaps, written
from hdica.show.choose import dims_of, has_values, spread
from hdica.show.terms import padded, together
from hdica.show.words import Text, axis, count, counted, is_numbered, symbol, value_of, words
from hdica.show.words import place as at_point
from hdica.status import STATUS_NAMES
from hdica.systems.method import DENSITIES, HISTOGRAM, STEADY_DENSITIES
from hdica.verdict.ladder import moments

DENSITY = DENSITIES[0]
"""The variable that is drawn as densities, and its own dimensions."""
COMPANIONS = ("_error", "_control", "_sd", "_bias", "_from_n")
"""Ends of the names of variables that stand beside another one."""
ERROR = "error"
"""The error of all variables of a method at once, which is the last to be looked at."""
TIMES = {"time": "", "snapshot": " of the density"}
"""Times, which are all written t, and what tells them apart."""
BAND = 2**22
"""Numbers of a variable that are in memory at a time, unless one row of a map has more."""
GROUP = "points"
"""Of the aggregate: its groups have the names of methods."""
MOST = 2**20
"""Numbers of a variable that are kept; of more, fewer times are."""
ALTOGETHER = 2**22
"""Numbers of all variables of all methods that are kept."""
ENTRIES = 2
"""A variable with more own dimensions of entries, as pixels of pictures, is not looked at."""
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

    @property
    def equals(self) -> str:
        """What stands between the symbol and a value."""
        return " " if self._counts else " = "

    @property
    def _counts(self) -> bool:
        return self.values.dtype.kind in "fiu" and is_numbered(self.name)

    def shown(self, place: int) -> str:
        """One value."""
        value = self.values.item(place)
        if self._counts:
            return count(counted(self.name, value))
        others = {k: v for k, v in together(self.name, value).items() if k != self.name}
        # Words are ticks of an axis, too.
        beside = f" ({at_point(others).plain})" if others and not isinstance(value, str) else ""
        return value_of(value) + beside

    def at(self, value: object) -> int:
        """Position of a value, or of the one that is closest; 0 for a word that is not there."""
        if self.values.dtype.kind in "fiu" and isinstance(value, int | float | np.number):
            return int(np.argmin(np.abs(self.values - value)))
        return int(np.argmax(self.values == value))


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
    own = dims_of(data[variable], *data["status"].dims)
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
    """Every variable of every method, in the order of their study."""
    order, known = list(written(tree).get("methods", {})), computed(tree)
    methods = sorted(known, key=lambda one: order.index(one) if one in order else len(order))
    return [quantity(tree, m, name) for m in methods for name in variables_in(tree, m)]


def beside(
    tree: xr.DataTree, shown: Quantity, every: Sequence[Quantity] | None = None
) -> list[Quantity]:
    """What other methods have of the same variable, or of what the study compares with it."""
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
    names: list[str] = []
    for settings in (written(tree).get("analysis") or {}).values():
        if isinstance(settings, dict) and settings.get("predicted"):
            measured = [settings.get("variable"), *(settings.get("beside") or ())]
            pairs = zip(measured, settings["predicted"], strict=False)
            names += [theirs for ours, theirs in pairs if ours == variable]
    return names


def means(tree: xr.DataTree) -> xr.DataTree | None:
    """Every variable of every method, mean over seeds, at all grid points; None without any.

    A group for each method, over its swept parameters, ``n`` and the variables' own dimensions:
    each variable, ``<variable>_error`` (standard error over seeds; of a method without seeds the
    solver's, left out where there is none), and the counts of points by status, ``runs_done``,
    ``runs_diverged``, ``runs_failed`` and ``runs_pending``. Attributes of a variable: ``along``,
    the own dimension along which it is drawn, and ``others``, which ``method/variable`` have the
    same quantity. Where there are too many numbers, fewer times are kept (the first, the last,
    others evenly between), then fewer variables. Attributes of the whole: ``times``, how many there
    were at most, and ``left``, which ``method/variable`` had too many numbers.
    """
    every = [  # with something to choose, or to be seen along
        one
        for one in quantities(tree)
        if len(one.entries) <= ENTRIES
        and (one.numbers or (one.along is not None and one.along.size > 1))
    ]
    if not every:
        return None
    wanted = _within(ALTOGETHER, [one for one in every if _numbers(one, 1) <= MOST])
    left = [f"{one.method}/{one.variable}" for one in every if one not in wanted]
    times = max((a.size for one in every for a in one.axes if a.name in TIMES), default=1)
    methods = dict.fromkeys(one.method for one in wanted)
    groups = {m: _of_method(tree, [one for one in wanted if one.method == m]) for m in methods}
    whole = xr.Dataset(attrs={"left": " ".join(left), "times": times})
    return xr.DataTree.from_dict({"/": whole, **groups})


def _numbers(one: Quantity, times: int) -> int:
    """How many numbers a variable has at so many times."""
    return math.prod(min(a.size, times) if a.name in TIMES else a.size for a in one.axes)


def _within(most: int, every: list[Quantity]) -> list[Quantity]:
    """Those that fit, the first variable of every method before the second of any."""
    methods = [one.method for one in every]
    ranks = [methods[:k].count(method) for k, method in enumerate(methods)]
    kept, used = set(), 0
    for k in sorted(range(len(every)), key=lambda k: ranks[k]):
        size = min(_numbers(every[k], max(a.size for a in every[k].axes)), MOST)
        if used + size <= most:
            kept.add(k)
            used += size
    return [one for k, one in enumerate(every) if k in kept]


def _times(every: Sequence[Quantity]) -> dict[str, list[int]]:
    """Positions of the times that are kept of a method, for all its variables."""
    kept = {}
    for name in TIMES:
        timed = [one for one in every if any(a.name == name for a in one.axes)]
        if timed:
            most = min(MOST // _numbers(one, 1) for one in timed)
            kept[name] = spread_times(timed[0].axis(name).size, most)
    return kept


def spread_times(size: int, most: int) -> list[int]:
    """Positions of the first time, the last and others evenly between; of one alone, the last."""
    return spread(size, most) if most > 1 else [size - 1]


def _of_method(tree: xr.DataTree, every: Sequence[Quantity]) -> xr.Dataset:
    data, kept, columns = tree[every[0].method].to_dataset(), _times(every), {}
    for name, many in counts(data["status"].load()).items():
        about = {"long_name": f"points that are {name}", "units": "1"}
        columns[f"runs_{name}"] = many.reset_coords(drop=True).drop_attrs().assign_attrs(about)

    def reduced(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
        return densities_of(band, shown).isel(kept, missing_dims="ignore")

    for one in every:
        longest = max(one.swept, key=lambda axis: axis.size, default=None)
        side, about = longest.name if longest else "", _about(tree, one)
        read = in_bands(with_error(tree, one), one, side, reduced)
        read = read.transpose(*(axis.name for axis in one.axes), missing_dims="ignore")
        columns[one.variable] = read["mean"].assign_attrs(about)
        if has_values(read["error"]):
            about = {"long_name": "standard error over seeds", "units": about["units"]}
            about |= {} if one.seeds else {"long_name": "the solver's own error"}
            columns[f"{one.variable}_error"] = read["error"].assign_attrs(about)
    out = xr.Dataset(columns, attrs={"method": every[0].method, "seeds": every[0].seeds})
    for dim in out.coords:
        out[dim].attrs = dict(data[dim].attrs)
    return out


def _about(tree: xr.DataTree, one: Quantity) -> dict[str, str]:
    attrs = tree[one.method][one.variable].attrs
    about = attrs.get("long_name", one.variable)
    if one.variable == DENSITY.name and "cdf" in tree[one.method]:
        about = HISTOGRAM.long_name  # of limits too: see over_bins
    others = beside(tree, one) if one.variable != DENSITY.name else []
    return {
        "long_name": f"{about}, mean over seeds" if one.seeds else about,
        "units": attrs.get("units", "1"),
        "along": one.along.name if one.along else "",
        "others": " ".join(f"{other.method}/{other.variable}" for other in others),
    }


def in_bands(
    part: xr.Dataset, shown: Quantity, side: str, reduced: Callable[..., xr.Dataset]
) -> xr.Dataset:
    """What becomes of data that are read in bands along a side, each of a bounded size."""
    if not side:
        return reduced(part.load(), shown)
    size = part.sizes[side]
    most = max(1, BAND // max(1, math.prod(part[shown.variable].shape) // size))
    bands = (part.isel({side: slice(low, low + most)}) for low in range(0, size, most))
    rows = [reduced(band.load(), shown) for band in bands]
    return rows[0] if len(rows) == 1 else xr.concat(rows, dim=side)


def counts(status: xr.DataArray) -> dict[str, xr.DataArray]:
    """How many seeds have each status, by its name."""
    each = {name: status == code for code, name in enumerate(STATUS_NAMES)}
    return {k: v.sum("seed") if "seed" in v.dims else v.astype(int) for k, v in each.items()}


def with_error(tree: xr.DataTree, shown: Quantity) -> xr.Dataset:
    """A variable with the status and with what its mean and its error are made of.

    That is, of a method without seeds, the solver's own error, and of its density the distribution
    function; of histograms it is the weight of their groups.
    """
    data, dense = tree[shown.method].to_dataset(), shown.variable == DENSITY.name
    more = ["weight"] if dense else []
    if not shown.seeds:
        more = [f"{shown.variable}_error", *(["cdf"] if dense else [])]
    return data[["status", shown.variable, *(name for name in more if name in data)]]


def means_of(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
    """Mean and error of what is in memory, at all its times; of one seed no error is known."""
    mean = over_bins(band) if shown.variable == DENSITY.name else finished(band, shown.variable)
    error = xr.full_like(mean, np.nan)
    if "seed" in mean.dims:
        over_seeds = moments(mean)
        mean, error = over_seeds["mean"], over_seeds["se"]
    if f"{shown.variable}_error" in band:
        error = finished(band, f"{shown.variable}_error")
    return xr.Dataset({"mean": mean, "error": error}).reset_coords(drop=True)


def densities_of(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
    """The same, of histograms with an error for one seed too."""
    if shown.variable != DENSITY.name or not shown.seeds:
        return means_of(band, shown)
    out = histogram_of(band, band["n"].astype(float) if "n" in band.coords else math.nan)
    out = out[["density", "density_se"]].rename(density="mean", density_se="error")
    return out.reset_coords(drop=True)
