"""What the fields of a series of filters mean: where the filters come from, and the subspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import is_number
from hdica.inputs.data_input import BUNDLED, Reads, data_input, path_of
from hdica.inputs.filters import load_filters
from hdica.inputs.images import pictures
from hdica.inputs.network import Training, check_training, snapshot_steps, train
from hdica.inputs.series import Series

FILTERS = (
    "a path below `data/`, or `{path, sha256}`: `.npy`, `.npz`, PyTorch checkpoints, or a folder "
    "of one a snapshot; `{trained: {...}}`: a small network trained on the images; `{random: "
    "{...}}`: no training"
)
RANDOM = {"filters": 16, "width": 11, "seed": 0}
"""Of filters with independent normal entries: how many, of how many pixels a side, which."""
_LEAST = {"filters": 1, "width": 1, "seed": 0}
_MOST = {"filters": 4096, "width": 64, "seed": 2**53}


def _spec(given: Any, kind: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of one kind of filters, each known, and none missing."""
    if not isinstance(given, Mapping):
        raise HdicaError(f"{kind} = {given!r} is not allowed ({{{', '.join(defaults)}}})")
    for key in given:
        if key not in defaults:
            raise HdicaError(f"{kind}.{key} is not known ({suggestion(key, defaults)})")
    return {**defaults, **given}


def _random(given: Any) -> dict[str, Any]:
    found = _spec(given, "random", RANDOM)
    for key, value in found.items():
        low, high = _LEAST[key], _MOST[key]
        if not is_number(value) or not float(value).is_integer() or not low <= value <= high:
            raise HdicaError(
                f"random.{key} = {value!r} is not allowed (a whole number from {low} to {high})"
            )
    return {key: int(value) for key, value in found.items()}


def _filters(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, given),) = value.items()
        if kind == "random":
            return {kind: _random(given)}
        if kind == "trained":
            made = check_training(_spec(given, kind, asdict(Training())))
            return {kind: asdict(made)}
    if value == BUNDLED or (isinstance(value, Mapping) and BUNDLED in value):
        raise HdicaError(f"filters = {value!r} is not allowed ({FILTERS.replace('`', '')})")
    return data_input(value)


FilterInput = Annotated[dict[str, Any], BeforeValidator(_filters), Reads()]


def _share(value: Any) -> Any:
    whole = is_number(value) and value >= 1 and float(value).is_integer()
    if whole or (is_number(value) and 0 < value < 1):
        return float(value)
    raise HdicaError(
        f"k = {value!r} is not allowed (a share of d between 0 and 1, or a whole number >= 1)"
    )


Share = Annotated[float, BeforeValidator(_share)]


def rank(system: Any, d: int) -> int:
    """k, the dimension of the principal subspace: a share of d, or the number itself.

    Raises
    ------
    HdicaError
        If it is not below d.
    """
    k = round(system.k * d) if system.k < 1 else int(system.k)
    if not 1 <= max(k, 1) < d:
        raise HdicaError(
            f"k = {system.k:g} is not allowed for filters of {d} entries (k < {d})", ["k"]
        )
    return max(k, 1)


def series(system: Any) -> Series:
    """The filters at their snapshots.

    Raises
    ------
    HdicaError
        If they cannot be read or trained, are not square, have other channels than the images, or
        one of them is 0.
    """
    found = _series(_Key(system))
    channels = 1 if system.colour == "grey" else 3
    if found.channels != channels:
        raise HdicaError(
            f"colour = {system.colour!r} is not allowed with filters of {found.channels} channels "
            "(grey for 1, rgb for 3)",
            ["colour", "filters"],
        )
    rows, columns = found.filters.shape[3:]
    if rows != columns:
        raise HdicaError(f"filters of {rows} x {columns} pixels are not allowed (square ones)")
    # A mean over filters would be NaN, with nothing to say why.
    snapshot, number = np.nonzero(~np.any(found.filters, axis=(2, 3, 4)))
    if snapshot.size:
        raise HdicaError(
            f"filters with one that is 0 are not allowed (filter {number[0]} at step "
            f"{found.steps[snapshot[0]]} has no direction)",
            ["filters"],
        )
    return found


def shape(system: Any) -> tuple[int, int, int]:
    """Filters K, channels and pixels a side, without training a network."""
    kind, given = _kind(system.filters)
    if kind:
        return given["filters"], 1 if system.colour == "grey" else 3, given["width"]
    found = series(system).filters.shape
    return found[1], found[2], found[3]


def last_step(system: Any) -> float:
    """The step of the last snapshot, without training a network."""
    kind, given = _kind(system.filters)
    if kind == "trained":
        return float(snapshot_steps(Training(**given))[-1])
    return 0.0 if kind else float(series(system).steps[-1])


def _kind(filters: Mapping[str, Any]) -> tuple[str, Any]:
    """``"random"`` or ``"trained"`` with its keys; nothing for filters from files."""
    return next(((k, filters[k]) for k in ("random", "trained") if k in filters), ("", None))


class _Key:
    """A system as the key of its filters: what they do not depend on makes no other."""

    def __init__(self, system: Any) -> None:
        self.system = system
        kind, _ = _kind(system.filters)
        images = repr(system.images) if kind == "trained" else ""
        self.text = repr((system.filters, system.layer, system.training, system.colour, images))

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.text == other.text


@lru_cache(maxsize=16)
def _series(key: _Key) -> Series:
    system = key.system
    kind, given = _kind(system.filters)
    if kind == "random":
        return Series(np.zeros(1, dtype=np.int64), _normal(given, system)[None])
    if kind == "trained":
        images = [one.pixels for one in pictures(system.images, system.colour)]
        return train(images, Training(**given))
    where = path_of(system.filters)
    found = load_filters(where, layer=system.layer, training=system.training)
    data_input(system.filters)  # once more: they may have changed while they were read
    return found


def _normal(given: Mapping[str, Any], system: Any) -> NDArray[np.float32]:
    channels, width = 1 if system.colour == "grey" else 3, given["width"]
    draw = np.random.default_rng([given["seed"], 2])
    made = draw.standard_normal((given["filters"], channels, width, width))
    return made.astype(np.float32)
