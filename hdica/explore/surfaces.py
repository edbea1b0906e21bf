"""Maps that were read last, so that time and the chosen point move without reading them again."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from hdica.analysis.points import means
from hdica.analysis.points.space import Point, Quantity
from hdica.explore.feed import Snapshot

MOST_BYTES = 2**26
"""Size of all maps that are kept."""
MOST_NUMBERS = 2**22
"""Numbers of a map that are kept for all times; of a larger one each time is read anew."""


@dataclass(frozen=True)
class Map:
    """A map at one time.

    Parameters
    ----------
    data
        As of :func:`hdica.analysis.points.means.mean_over`, at one time.
    low, high
        Smallest and largest mean over all times that were read.
    """

    data: xr.Dataset
    low: float
    high: float


@dataclass
class Surfaces:
    """Maps that were read last, of one server."""

    kept: OrderedDict[Hashable, xr.Dataset] = field(default_factory=OrderedDict)

    def at(self, now: Snapshot, shown: Quantity, point: Point, x: str, y: str) -> Map:
        """The map over two swept parameters at a point's other values and time."""
        along, whole = shown.along, _fits(shown, x, y)
        free = {x, y, *({along.name} if along and whole else ())}
        fixed = tuple((a.name, point[a.name]) for a in shown.axes if a.name not in free)
        key = (now.number, shown.method, shown.variable, x, y, fixed)
        found = self.kept.pop(key, None)
        if found is None:
            found = means.mean_over(now.tree, shown, point, y, x, whole=whole)
        self.kept[key] = found
        self._bound(now)
        mean = found["mean"].to_numpy()
        known = mean[np.isfinite(mean)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        if along and along.name in found.dims:
            found = found.isel({along.name: point[along.name]})
        return Map(found, low, high)

    def _bound(self, now: Snapshot) -> None:
        """Give up what is of an earlier snapshot, then what was not used for longest."""
        for key in [k for k in self.kept if isinstance(k, tuple) and k[0] != now.number]:
            del self.kept[key]
        while len(self.kept) > 1 and sum(one.nbytes for one in self.kept.values()) > MOST_BYTES:
            self.kept.popitem(last=False)


def _fits(shown: Quantity, x: str, y: str) -> bool:
    """Whether a map of all times is small enough to be kept."""
    cells = [-(-a.size // means.every_nth(a.size)) for a in shown.swept if a.name in (x, y)]
    times = shown.along.size if shown.along else 1
    return math.prod(cells) * times <= MOST_NUMBERS
