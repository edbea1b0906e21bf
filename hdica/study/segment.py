"""Segments: the points of a study that one method computes at one n."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING, Save
from hdica.study import kept
from hdica.study.cells import Cells, Keys, canonical_json, cells_of, field_texts, segment_keys
from hdica.study.schema import StudySchema
from hdica.systems import registry
from hdica.systems.method import Method, no_memory
from hdica.systems.outputs import Output
from hdica.systems.space import Value, canonical, shown

NAME = re.compile(r".+-[0-9a-f]{8}")
"""What the name of a segment's directory looks like."""
MOST_WORDS = 100
"""Words of an axis that are tried for the largest point."""
Own = tuple[tuple[str, tuple[float, ...]], ...]
"""Dimensions of a system's own, each with its coordinate."""


@dataclass(frozen=True)
class Segment:
    """Points of one method at one n: cells times seeds, seed fastest."""

    system: str
    method: Method
    n: int | None  # None for a method without
    seeds: tuple[int, ...]  # empty for a method without
    times: tuple[float, ...]
    cells: Cells  # shared by the segments of a method
    save: Save = NOTHING  # what the method keeps beyond its outputs
    own: Own = ()  # dimensions of the system's own that outputs have

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Every variable of a point."""
        return self.method.outputs_of(self.save)

    @property
    def per_cell(self) -> int:
        """Points a cell: the number of seeds, or 1."""
        return max(1, len(self.seeds))

    @property
    def size(self) -> int:
        """Number of points."""
        return self.cells.size * self.per_cell

    @cached_property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Coordinates of the method's own dimensions."""
        times = np.asarray(self.times, dtype=float)
        found = self.method.coords_of(times, self.save, dict(self.own))
        return {dim: np.asarray(values) for dim, values in found.items()}

    def shape(self, dims: tuple[str, ...]) -> tuple[int, ...]:
        """Sizes of some of the method's own dimensions."""
        return tuple(len(self.coords[dim]) for dim in dims)

    @property
    def label(self) -> str:
        """Its method and its n, for a person."""
        return self.method.name if self.n is None else f"{self.method.name} with n = {self.n}"

    @cached_property
    def name(self) -> str:
        """Directory of the segment: method, n, and a digest of times, outputs, kernel and save."""
        outputs = {o.name: [list(o.dims), list(self.shape(o.dims))] for o in self.outputs}
        identity = [self.system, list(self.times), outputs, self.method.about.kernel]
        if self.save.anything:
            identity.append(kept.plain(self.save))
        digest = hashlib.sha256(canonical_json(identity).encode()).hexdigest()[:8]
        middle = "" if self.n is None else f"-n{self.n}"
        return f"{self.method.name}{middle}-{digest}"

    def keys(self) -> Keys:
        """Content keys of all points, in order."""
        return segment_keys(
            self.cells.contents(),
            self.seeds or (None,),
            system=self.system,
            method=self.method.name,
            kernel=self.method.about.kernel,
            times=self.times,
            n=self.n,
            save=kept.digest(self.save),
        )

    def sample_systems(self, count: int = 9) -> list[Any]:
        """Systems of cells spread evenly over the grid, for the cost model."""
        chosen = np.unique(np.linspace(0, self.cells.size - 1, count).round().astype(int))
        return [registry.built(self.system, text) for text in self.cells.systems(chosen)]

    @cached_property
    def seconds_per_point(self) -> float:
        """Mean cost of a point on one core, from the method's cost model."""
        costs = [self.method.cost.seconds(s, self.n, self.times[-1]) for s in self.sample_systems()]
        return max(1e-7, float(np.mean(costs)))

    @cached_property
    def prepares(self) -> dict[Hashable, float]:
        """Seconds that a process needs once for its points, by what it prepares."""
        parts = [self.method.cost.prepares(system) for system in self.sample_systems()]
        return {key: seconds for part in parts for key, seconds in part.items()}

    @cached_property
    def memory(self) -> float:
        """Bytes that its largest point needs at least while it is computed, with its results."""
        return 8.0 * self._most_held() + self.bytes_per_point

    def _most_held(self) -> int:
        held, axes, chosen = self.method.cost.memory, self.cells.axes, [0] * len(self.cells.axes)
        if held is no_memory or not self.size:
            return 0

        def needed(index: list[int]) -> int:
            place = np.ravel_multi_index(index, self.cells.shape) if axes else 0
            with suppress(HdicaError):  # not every cell need be allowed
                (text,) = self.cells.systems(np.array([place]))
                return held(registry.built(self.system, text), self.n)
            return 0

        for position, axis in enumerate(axes):
            # What is needed grows or falls with a number; words have no order.
            ends = {0, axis.size - 1}
            some = range(min(axis.size, MOST_WORDS)) if isinstance(axis.values[0], str) else ends
            tried = [[*chosen[:position], one, *chosen[position + 1 :]] for one in some]
            chosen = max(tried, key=needed)
        return needed(chosen)

    @property
    def bytes_per_point(self) -> int:
        """Size of a point's results, uncompressed, with status, time, key and seed."""
        values = sum(int(np.prod(self.shape(o.dims))) for o in self.outputs)
        return 8 * values + 1 + 8 + 32 + 8


def own_dimension(study: StudySchema, dim: str) -> tuple[float, ...]:
    """Coordinate of a dimension of the system's own: its values where all cells have the same.

    Else its entries are numbered; those of ``feature`` by increasing xi, and the variable ``xi``
    has the values.
    """
    space = study.space
    used = [axis for axis in space.axes if axis.path[0] == space.system.sized_by[dim]]
    found: dict[tuple[float, ...], tuple[Value, ...]] = {}
    for values in itertools.product(*(axis.values for axis in used)):
        built = space.at({a.path: value for a, value in zip(used, values, strict=True)})
        found.setdefault(tuple(_plain(v) for v in built.dims()[dim]), values)
    first, *others = found
    for other in others:
        if len(other) != len(first):
            names = " and ".join(f"grid.{axis.key}" for axis in used)
            raise HdicaError(
                f"{names}: dimension {dim!r} has {len(first)} entries at {_shown(found[first])} "
                f"and {len(other)} at {_shown(found[other])} (what is kept needs as many in every "
                "cell)"
            )
    return tuple(range(len(first))) if others else first


def _plain(value: float) -> float:
    return value if isinstance(value, int) else canonical(value)


def _shown(values: tuple[Value, ...]) -> str:
    return ", ".join(shown(value) for value in values)


def segments_of(study: StudySchema) -> list[Segment]:
    """All segments of a study, by method in the study's order, then by n."""
    methods = registry.methods_of(study.system, study.noise)
    asked, space = study.save_spec(), study.space
    texts, sizes = field_texts(space), space.system.sized_by
    known: dict[str, tuple[float, ...]] = {}
    found = []
    for name, settings in study.methods.items():
        save, seeds = kept.kept_by(methods[name], asked), settings.seed_values()
        save = kept.sized(save, settings.n_values)
        used = [d for d in sizes if any(d in o.dims for o in methods[name].outputs_of(save))]
        known |= {dim: own_dimension(study, dim) for dim in used if dim not in known}
        cells = cells_of(methods[name], space.axes, texts)
        what = (study.times, cells, save, tuple((dim, known[dim]) for dim in used))
        found += [Segment(study.system, methods[name], n, seeds, *what) for n in settings.n_values]
    return found
