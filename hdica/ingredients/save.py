"""What a point keeps beyond its order parameters: densities, support recovery, and the like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hdica.ingredients.plain import Array

ALL = -1
"""All entries, whatever the dimension."""


@dataclass(frozen=True)
class Save:
    """What to keep; everything empty keeps the order parameters alone.

    Densities and support recovery are kept at ``snapshots``, each one of the output times: the
    densities at the points ``x``, increasing (a histogram's bins meet midway between them), support
    recovery at ``thresholds`` on abs(x) above which an entry counts as part of the support.
    ``functionals`` are names and formulas in ``x`` and ``xi`` of means over the entries, kept at
    every time, ``constants`` numbers for other names in them: those of the system that is computed.
    ``extra`` are names of further variables of the method, kept at every time. ``estimate`` is how
    many entries of the estimate itself are kept at the snapshots, the first ones; :data:`ALL` until
    it is known how many there are. ``bands`` asks of limits how far runs of a finite n are from
    them, sqrt(n) times the standard deviation of everything kept, ``bias`` where their mean is.
    """

    snapshots: tuple[float, ...] = ()
    x: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()
    functionals: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    estimate: int = 0
    bands: bool = False
    bias: bool = False

    @cached_property
    def edges(self) -> Array:
        """Edges of the bins around ``x``, shape (len(x) + 1,), in 12 digits as coordinates are."""
        x = np.asarray(self.x, dtype=float)
        middle = (x[:-1] + x[1:]) / 2
        edges = np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])
        return np.array([float(f"{edge:.12g}") for edge in edges])

    @property
    def anything(self) -> bool:
        """Whether anything beyond the order parameters is kept."""
        wishes = self.snapshots, self.functionals, self.extra, self.bands, self.bias
        return any(bool(one) for one in wishes)


NOTHING = Save()
