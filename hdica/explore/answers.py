"""The server's answers: the page, news, and slices (means over seeds along some dimensions)."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import xarray as xr
from pydantic import Field, TypeAdapter

from hdica.analysis.points import DENSITY, Point, Quantity, beside, quantities
from hdica.errors import HdicaError
from hdica.explore import slices
from hdica.explore.feed import Feed, Snapshot
from hdica.report.explored import Entry, Numbers, Table, catalogue, kinds, written
from hdica.report.parts import EXPLORER, STYLES, digest, embedded, joined, template
from hdica.show.terms import speaking_of_results
from hdica.show.words import clock, count
from hdica.status import STATUS_NAMES

MAP_BYTES = 2**26  # size of all maps that are kept
MAP_NUMBERS = 2**22
"""Numbers of a map that are kept for all times; of a larger one each time is read anew."""
MOST_SLICES = 200  # slices of one answer
DIGITS = 6  # digits of a mean whose error is smaller


@dataclass(frozen=True)
class Wanted:
    """A slice that a page wants."""

    table: str
    point: dict[str, Any]  # positions by dimension
    sides: list[Any]  # the free dimensions, of a map first the upright one
    runs: bool  # whether it is the values of single seeds


@dataclass(frozen=True)
class Request:
    """What a page requests, with the number of the newest snapshot that it knows."""

    number: int
    wanted: Annotated[list[Wanted], Field(max_length=MOST_SLICES)]


_REQUESTS = TypeAdapter(Request)


@dataclass
class Maps:
    """Maps that were read last, so that time moves without reading them again."""

    read: OrderedDict[Hashable, xr.Dataset] = field(default_factory=OrderedDict)

    def at(
        self, now: Snapshot, shown: Quantity, point: Point, up: str, across: str
    ) -> tuple[xr.Dataset, tuple[float, float]]:
        """A map at a point's time, and the ends of its means over all times that were read."""
        along, whole = shown.along, _fits(shown, up, across) or shown.variable == DENSITY.name
        free = {up, across, *({along.name} if along and whole else ())}
        fixed = tuple((a.name, point[a.name]) for a in shown.axes if a.name not in free)
        key = (now.number, shown.method, shown.variable, up, across, fixed)
        if (data := self.read.pop(key, None)) is None:
            data = slices.mean_over(now.tree, shown, point, up, across, whole=whole)
        self.read[key] = data
        self._bound(now)
        mean = data["mean"].to_numpy()
        finite = mean[np.isfinite(mean)]
        ends = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if along and along.name in data.dims:
            data = data.isel({along.name: point[along.name]})
        return data, ends

    def _bound(self, now: Snapshot) -> None:
        """Drop maps of an earlier snapshot, then those that were not used for longest."""
        for key in [k for k in self.read if isinstance(k, tuple) and k[0] != now.number]:
            del self.read[key]
        while len(self.read) > 1 and sum(one.nbytes for one in self.read.values()) > MAP_BYTES:
            self.read.popitem(last=False)


def _fits(shown: Quantity, up: str, across: str) -> bool:
    """Whether a map of all times is small enough to be kept."""
    cells = [-(-a.size // slices.every_nth(a.size)) for a in shown.swept if a.name in (up, across)]
    times = shown.along.size if shown.along else 1
    return math.prod(cells) * times <= MAP_NUMBERS


@dataclass
class Answers:
    """Answers about the newest snapshot of a feed."""

    feed: Feed
    maps: Maps = field(default_factory=Maps)
    _by_key: tuple[int, dict[str, Quantity]] = field(default=(0, {}), repr=False)

    def _quantities(self, now: Snapshot) -> dict[str, Quantity]:
        """Every quantity of a snapshot by the key of its table."""
        if self._by_key[0] != now.number:
            every = {f"{one.method}/{one.variable}": one for one in quantities(now.tree)}
            self._by_key = now.number, every
        return self._by_key[1]

    def page(self) -> str:
        """The page, with the catalogue of what can be looked at."""
        now, scripts = self.feed.now, joined(*EXPLORER, "plots.js")
        every, content = self._catalogue(now)
        return template("served.html.j2").render(
            attrs=now.tree.attrs,
            title=str(now.tree.attrs.get("title") or now.tree.attrs.get("study", "")),
            served=True,
            explored={"tables": every, "left": ""},
            explored_data=embedded(content),
            style=joined(*STYLES),
            script=scripts,
            digest=digest(scripts),
            **kinds(every),
        )

    def catalogue(self) -> bytes:
        """The catalogue of the newest snapshot, as a message."""
        return self._catalogue(self.feed.now)[1]

    def _catalogue(self, now: Snapshot) -> tuple[list[Table], bytes]:
        """The tables of a snapshot, and their catalogue as a message."""
        with _speaking_of(now):
            every = tables(now.tree, list(self._quantities(now).values()))
            if not every:
                raise HdicaError(f"{self.feed.path} has no variable to look at")
            header = catalogue(every, Numbers(), all_offered=True)
            header |= {"digits": DIGITS, "counts": {}, "served": self.news()}
            return every, Numbers().message(header)

    def news(self) -> Entry:
        """How much is computed, what is wrong, and the number of the newest snapshot."""
        now = self.feed.now
        done = now.points - now.counts["pending"]
        state = "A run goes on or was stopped" if now.live else "Published"
        return {
            "number": now.number,
            "computed": f"{state}: {count(done)} of {count(now.points)} points are computed",
            "share": done / max(now.points, 1) if now.live else None,
            "totals": written(now.counts),
            "trouble": self.feed.trouble,
        }

    def slices(self, request: bytes) -> bytes:
        """The slices of a :class:`Request`, which is JSON, as a message."""
        now, numbers, out = self.feed.now, Numbers(), list[Entry]()
        try:
            content = _REQUESTS.validate_json(request, strict=True)
        except ValueError as exc:
            raise HdicaError("the request is no list of slices") from exc
        if content.number != now.number:
            raise HdicaError("the request is about results as they were before")
        with _speaking_of(now):
            for one in content.wanted:
                shown = _quantity_of(self._quantities(now), one)
                if one.runs:
                    mean = slices.runs(now.tree, shown, one.point)
                    out.append({"mean": numbers.put(mean), "error": None, "counts": {}})
                else:
                    out.append(self._slice(now, shown, one.point, one.sides, numbers))
        return numbers.message({"slices": out})

    def _slice(
        self, now: Snapshot, shown: Quantity, point: Point, sides: list[str], numbers: Numbers
    ) -> Entry:
        swept = [name for name in sides if name in (a.name for a in shown.swept)]
        out: Entry = {"why": ""}
        if shown.variable == DENSITY.name and DENSITY.dims[-1] in sides:
            data = slices.density(now.tree, shown, point, *sides[:-1])
        elif len(swept) == 2:
            data, out["ends"] = self.maps.at(now, shown, point, *swept)
        else:
            # The mean of a density over bins needs them all.
            dense = shown.variable == DENSITY.name
            data = slices.mean_over(now.tree, shown, point, *swept, whole=dense or sides != swept)
            data = data.isel({DENSITY.dims[-1]: point[DENSITY.dims[-1]]} if dense else {})
        out |= {name: numbers.put(data[name].to_numpy()) for name in ("mean", "error")}
        counts = {k: data[k].to_numpy() for k in STATUS_NAMES if k in data and data[k].any()}
        missing = counts.keys() - {"done"}
        out["counts"] = {k: numbers.put(v) for k, v in counts.items()} if missing else {}
        if missing - {"pending"} and not swept:
            out["why"] = slices.reason(now.tree, shown, point)
        every = [slices.every_nth(shown.axis(k).size) if k in swept else 1 for k in sides]
        return out | {"every": every}


def _speaking_of(now: Snapshot) -> AbstractContextManager[None]:
    return speaking_of_results(now.tree.attrs)


def tables(tree: xr.DataTree, every: Sequence[Quantity]) -> list[Table]:
    """Tables of quantities, without numbers."""
    out = []
    for one in every:
        dense = one.variable == DENSITY.name
        others = [] if dense else beside(tree, one, every)
        along = one.along.name if one.along else ""
        time = clock(tree[one.method]["time"].attrs).html if along == "time" else ""
        names = tuple(f"{other.method}/{other.variable}" for other in others)
        swept = tuple(axis.name for axis in one.swept)
        out.append(Table(one.method, one.variable, one.axes, swept, along, one.seeds, names, time))
    return out


def _quantity_of(every: Mapping[str, Quantity], one: Wanted) -> Quantity:
    """The quantity of a wanted slice, if it, the free dimensions and the point exist."""
    shown, sides, point = every.get(one.table), one.sides, one.point
    if shown is None:
        raise HdicaError("the request is about no table")
    sizes = {axis.name: axis.size for axis in shown.axes}
    at = all(type(point.get(k)) is int and 0 <= point[k] < size for k, size in sizes.items())
    own = [name for name in sides if name not in (a.name for a in shown.swept)]
    along = shown.along.name if shown.along else ""
    dense = shown.variable == DENSITY.name and own[-1:] == [along]
    apart = len(sides) == len(set(map(str, sides))) and set(map(str, sides)) <= sizes.keys()
    drawn = dense and own == sides if own else len(sides) <= 2
    if not at or not apart or not (drawn or sides == [along]):
        raise HdicaError("the request is about no slice of its table")
    return shown
