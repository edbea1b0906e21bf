"""First-layer filters of a network over its training, and the images that it was trained on.

"Reduce and Conquer: Independent Component Analysis at linear sample complexity" (2025), Section 5.
Nothing is trained here: filters are data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import is_number
from hdica.inputs.data_input import BUNDLED, DATA, DataInput, Reads, data_input, path_of
from hdica.inputs.filters import Series, load_filters
from hdica.systems.parameters import Parameters

FILTERS = (
    "a path below `data/`, or `{path, sha256}`: `.npy`, `.npz`, PyTorch checkpoints, or a folder "
    "of one a snapshot; `{random: {...}}`: independent normal entries, no training"
)
# Of filters with independent normal entries how many, of how many pixels a side, and which: the
# number where none is given, the least and the largest.
RANDOM = {"filters": (16, 1, 4096), "width": (11, 1, 64), "seed": (0, 0, 2**53)}


def _filters(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping) and list(value) == ["random"]:
        return {"random": _random(value["random"])}
    if value == BUNDLED or (isinstance(value, Mapping) and BUNDLED in value):
        raise HdicaError(f"filters = {value!r} is not allowed ({FILTERS.replace('`', '')})")
    return data_input(value)


def _random(numbers: object) -> dict[str, int]:
    if not isinstance(numbers, Mapping):
        raise HdicaError(f"random = {numbers!r} is not allowed ({{{', '.join(RANDOM)}}})")
    for key in numbers:
        if key not in RANDOM:
            raise HdicaError(f"random.{key} is not known ({suggestion(key, RANDOM)})")
    for key, (usual, low, high) in RANDOM.items():
        value = numbers.get(key, usual)
        if not is_number(value) or not float(value).is_integer() or not low <= value <= high:
            raise HdicaError(
                f"random.{key} = {value!r} is not allowed (a whole number from {low} to {high})"
            )
    return {key: int(numbers.get(key, usual)) for key, (usual, _, _) in RANDOM.items()}


def _share(value: object) -> float:
    if is_number(value) and (0 < value < 1 or (value >= 1 and float(value).is_integer())):
        return float(value)
    raise HdicaError(
        f"k = {value!r} is not allowed (a share of d between 0 and 1, or a whole number >= 1)"
    )


CHANNELS = {"grey": 1, "rgb": 3}


def rank(system: FilterSeries, d: int) -> int:
    """Dimension k of the principal subspace, a share of d or the number; refused if not below d."""
    k = round(system.k * d) if system.k < 1 else int(system.k)
    if not 1 <= max(k, 1) < d:
        raise HdicaError(
            f"k = {system.k:g} is not allowed for filters of {d} entries (k < {d})", ["k"]
        )
    return max(k, 1)


def series(system: FilterSeries) -> Series:
    """The filters at their snapshots.

    Refused if they cannot be read, are not square, have other channels than the images, or one of
    them is 0.
    """
    filters = json.dumps(system.filters, sort_keys=True)
    snapshots = _series(filters, system.layer, system.training, CHANNELS[system.colour])
    if snapshots.channels != CHANNELS[system.colour]:
        raise HdicaError(
            f"colour = {system.colour!r} is not allowed with filters of {snapshots.channels} "
            "channels (grey for 1, rgb for 3)",
            ["colour", "filters"],
        )
    rows, columns = snapshots.filters.shape[3:]
    if rows != columns:
        raise HdicaError(f"filters of {rows} x {columns} pixels are not allowed (square ones)")
    # A mean over filters would be NaN, with nothing to say why.
    snapshot, number = np.nonzero(~np.any(snapshots.filters, axis=(2, 3, 4)))
    if snapshot.size:
        raise HdicaError(
            f"filters with one that is 0 are not allowed (filter {number[0]} at step "
            f"{snapshots.steps[snapshot[0]]} has no direction)",
            ["filters"],
        )
    return snapshots


@lru_cache(maxsize=16)
def _series(filters: str, layer: str, training: int, channels: int) -> Series:
    form = json.loads(filters)
    if "random" not in form:
        snapshots = load_filters(path_of(form), layer=layer, training=training)
        data_input(form)  # once more: they may have changed while they were read
        return snapshots
    count, width = form["random"]["filters"], form["random"]["width"]
    draw = np.random.default_rng([form["random"]["seed"], 2])
    entries = draw.standard_normal((1, count, channels, width, width))
    return Series(np.zeros(1, dtype=np.int64), entries.astype(np.float32))


def shape(system: FilterSeries) -> tuple[int, int, int]:
    """Filters K, channels and pixels a side."""
    if "random" in system.filters:
        random = system.filters["random"]
        return random["filters"], CHANNELS[system.colour], random["width"]
    count, channels, width, _ = series(system).filters.shape[1:]
    return count, channels, width


class FilterSeries(Parameters):
    """First-layer filters at snapshots of a training, beside the principal components of patches.

    Filters w are vectors of d = pixels times channels entries; U holds the k leading principal
    components of patches x drawn from images. What is followed is how much of w lies in their span
    (A.1) and how far from normal w.x is (A.2). Time is the training step; between two snapshots
    everything is as at the earlier one.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    filters: Annotated[dict[str, Any], BeforeValidator(_filters), Reads()] = Field(
        description=FILTERS
    )
    images: DataInput = Field("bundled", validate_default=True, description=f"images: {DATA}")
    colour: Literal["grey", "rgb"] = Field("grey", description="`grey` or `rgb`")
    patches: int = Field(20000, ge=2, le=10**7, description="patches that a seed draws")
    k: Annotated[float, BeforeValidator(_share)] = Field(
        0.4,
        description="dimension of the principal subspace: below 1 a share of d, else the number",
    )
    layer: str = Field(
        "", description="name of the weights in checkpoints (default: the first convolution)"
    )
    training: int = Field(
        0, ge=0, le=10**6, description="number of the training in a folder that has several"
    )

    sized_by: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("component", "row", "column"), "filters"),
        "channel": "colour",
    }

    @model_validator(mode="after")
    def _consistent(self) -> FilterSeries:
        if "path" not in self.filters:
            for name, usual in (("layer", ""), ("training", 0)):
                if getattr(self, name) != usual:
                    raise HdicaError(
                        f"{name} = {getattr(self, name)!r} is not allowed here (filters that "
                        "are not read from files)",
                        [name],
                    )
        return self

    @property
    def steps(self) -> list[float]:
        """Steps of the snapshots."""
        return [float(step) for step in series(self).steps]

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: of pictures of filters and principal components."""
        count, channels, side = shape(self)
        pixels = tuple(range(side))
        components = max(count, min(64, side * side * channels))  # as many as in Figure A.1
        return {
            "component": tuple(range(components)),
            "row": pixels,
            "column": pixels,
            "channel": tuple(range(channels)),
        }
