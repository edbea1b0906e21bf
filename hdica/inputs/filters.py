"""First-layer filters from files: arrays, folders of snapshots, PyTorch checkpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdica.errors import HdicaError, no_room, path_of, suggestion
from hdica.ingredients.plain import Array, Indices
from hdica.inputs.arrays import Refused, check_archive, most_numbers
from hdica.inputs.place import is_data


@dataclass(frozen=True, eq=False)
class Series:
    """Filters at snapshots; refused where shapes or steps do not fit or numbers are not finite."""

    steps: Indices  # of training before each snapshot, shape (T,), increasing
    filters: NDArray[np.float32]  # shape (T, K, channels, h, w)

    def __post_init__(self) -> None:
        if self.filters.ndim != 5 or len(self.steps) != len(self.filters) or not len(self.steps):
            raise HdicaError(
                f"filters of shape {self.filters.shape} at {len(self.steps)} steps are not allowed "
                "(snapshots, filters, channels, rows, columns; one step a snapshot)"
            )
        if np.any(np.diff(self.steps) <= 0) or self.steps[0] < 0:
            raise HdicaError(
                "steps of the snapshots are not allowed (>= 0, each larger than the last)"
            )
        if not np.all(np.isfinite(self.filters)):
            raise HdicaError("filters with a number that is not finite are not allowed")

    @property
    def dimension(self) -> int:
        """Entries d of a filter: channels times rows times columns."""
        return int(np.prod(self.filters.shape[2:]))

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for red, green and blue."""
        return int(self.filters.shape[2])

    def vectors(self, snapshot: int) -> Array:
        """Filters of a snapshot, shape (K, d), entries as in patches: row, column, channel."""
        moved = np.moveaxis(self.filters[snapshot], 1, -1)
        return moved.reshape(len(moved), -1).astype(np.float64)

    def at(self, time: float) -> int:
        """Number of the last snapshot until a time in steps; -1 before the first."""
        return int(np.searchsorted(self.steps, time, side="right")) - 1


ARRAYS = (".npz", ".npy")
CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin")
NEEDED = (
    "reading {name} needs PyTorch, which is not installed (pip install 'hdica[networks]', or save "
    "the filters as .npz)"
)
_NESTED = ("state_dict", "model_state_dict", "model", "net")
_PARALLEL = "module."  # what DataParallel puts before names
_WHOLE = re.compile(r"\d+")
_MOST_STEPS = 2**53
Filters = NDArray[np.float32]


def load_filters(filters: ArrayLike | Path, *, layer: str = "", training: int = 0) -> Series:
    """First-layer filters over training: steps and filters of the snapshots.

    Parameters
    ----------
    filters
        An array of shape (K, channels, rows, columns), or (snapshots, K, channels, rows, columns)
        with the steps 0, 1, ...; or the path of a file or a folder. A file is ``.npy`` with such an
        array, ``.npz`` with ``filters`` and, where there is one, ``step`` (or ``steps``), or a
        PyTorch checkpoint (``.pt``, ``.pth``, ``.ckpt``, ``.bin``). A folder has a file a snapshot,
        or a folder of its own for each of several trainings. A file that does not say its step has
        the last whole number in its name, and 0 without one.
    layer
        Name of the weights in a checkpoint; empty for the first convolution: the first tensor of
        four dimensions.
    training
        Number of a training in the order of their names.

    Returns
    -------
    Series
        Steps and filters, each snapshot of shape (K, channels, rows, columns).

    Raises
    ------
    HdicaError
        If something is not there, is no filters, or needs PyTorch where there is none.
    """
    if not isinstance(filters, str | Path):
        array = _array(filters, "filters")
        many = array[None] if array.ndim == 4 else array
        return Series(np.arange(len(many)), many)
    path = path_of(filters, "filters", "data/filters/run.npz")
    if isinstance(training, bool) or not isinstance(training, int | np.integer) or training < 0:
        raise HdicaError(f"training = {training!r} is not allowed (a whole number >= 0)")
    if path.is_dir():
        path = _chosen(path, training)
    elif training:
        raise HdicaError(f"training = {training} is not allowed ({path.name} is one file)")
    if path.is_file():
        return _of(_snapshots(path, layer), path.name)
    if not path.is_dir():
        raise HdicaError(f"filters: there is no {path.name} (a file or a folder of snapshots)")
    # What a digest leaves out is not read: hidden files, such as those that some systems add.
    data = (entry for entry in sorted(path.iterdir()) if is_data(entry.name))
    files = [entry for entry in data if entry.suffix in ARRAYS + CHECKPOINTS]
    if not files:
        raise HdicaError(
            f"filters: {path.name} has no snapshots ({', '.join(ARRAYS + CHECKPOINTS)})"
        )
    snapshots: list[tuple[int, Filters]] = []
    stored = sum(file.stat().st_size for file in files)
    for file in files:
        snapshots += _snapshots(file, layer)
        if sum(filters.size for _, filters in snapshots) > most_numbers(stored):
            raise HdicaError(
                f"filters: {path.name} cannot be read (its files expand from {stored} bytes to "
                f"more than {most_numbers(stored)} numbers)"
            )
    return _of(snapshots, path.name)


def _chosen(folder: Path, training: int) -> Path:
    """The folder of one training: a subfolder where the snapshots lie in several."""
    inner = sorted(one for one in folder.iterdir() if one.is_dir() and one.name[0] != ".")
    if not inner and training == 0:
        return folder
    if training >= len(inner):
        many = f"{folder.name} has {len(inner) or 'one'} of them"
        raise HdicaError(f"training = {training} is not allowed ({many})")
    return inner[training]


def _of(snapshots: Sequence[tuple[int, Filters]], name: str) -> Series:
    """Snapshots in the order of their steps."""
    ordered = sorted(snapshots, key=lambda one: one[0])
    steps = [step for step, _ in ordered]
    if len(set(steps)) < len(steps):
        twice = next(a for a, b in pairwise(steps) if a == b)
        raise HdicaError(f"filters: {name} has two snapshots at step {twice} (one a step)")
    shapes = {filters.shape for _, filters in ordered}
    if len(shapes) > 1:
        raise HdicaError(f"filters: {name} has snapshots of shapes {sorted(shapes)} (all alike)")
    return Series(np.array(steps), np.stack([filters for _, filters in ordered]))


def _snapshots(file: Path, layer: str) -> list[tuple[int, Filters]]:
    """Steps and filters in one file."""
    if file.suffix in CHECKPOINTS:
        return [(_step_in(file), _checkpoint(file, layer))]
    try:
        check_archive(file)
        with open(file, "rb") as opened:
            loaded = np.load(opened, allow_pickle=False)
            content = dict(loaded) if isinstance(loaded, Mapping) else {"filters": loaded}
    except MemoryError as exc:
        raise no_room(f"filters: {file.name}") from exc
    # Readers of damaged files raise whatever they run into.
    except Exception as exc:
        why = f"{exc}; a NumPy file" if isinstance(exc, Refused) else "a NumPy file"
        raise HdicaError(f"filters: {file.name} cannot be read ({why})") from None
    if "filters" not in content:
        raise HdicaError(
            f"filters: {file.name} has no array 'filters' (it has {', '.join(content)})"
        )
    array = _array(content["filters"], file.name)
    steps = content.get("steps", content.get("step"))
    if array.ndim == 4:
        return [(_step_in(file) if steps is None else _whole(steps, file), array)]
    if steps is None:
        steps = np.arange(len(array))
    if np.shape(steps) != (len(array),):
        raise HdicaError(
            f"filters: {file.name} has {np.size(steps)} steps of {len(array)} snapshots"
        )
    return [(_whole(step, file), one) for step, one in zip(steps, array, strict=True)]


def _whole(step: object, file: Path) -> int:
    values = np.ravel(np.asarray(step))
    number = values.size == 1 and values.dtype.kind in "iuf"
    if not number or not 0 <= values[0] <= _MOST_STEPS or not float(values[0]).is_integer():
        raise HdicaError(
            f"filters: {file.name} has step = {step} (a whole number from 0 to {_MOST_STEPS})"
        )
    return int(values[0])


def _step_in(file: Path) -> int:
    numbers = _WHOLE.findall(file.stem)
    return _whole(float(numbers[-1]), file) if numbers else 0


def _array(values: ArrayLike, name: str) -> Filters:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.asarray("")
    if array.dtype.kind not in "biuf":
        raise HdicaError(f"{name} is no array of numbers")
    with np.errstate(over="ignore"):  # what is too large is refused as not finite
        filters = array.astype(np.float32, copy=False)
    if filters.ndim not in (4, 5) or not filters.size:
        raise HdicaError(
            f"{name} of shape {filters.shape} is not allowed (filters, channels, rows, columns, "
            "and before them snapshots)"
        )
    return filters


def _checkpoint(file: Path, layer: str) -> Filters:
    """Weights of the first convolution in a PyTorch checkpoint; nothing in it is executed."""
    try:
        import torch
    except ImportError:
        raise HdicaError(NEEDED.format(name=file.name)) from None
    try:
        check_archive(file)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except MemoryError as exc:
        raise no_room(f"filters: {file.name}") from exc
    except Exception:
        # Torch has no one class of errors for files that are broken or hold more than weights.
        raise HdicaError(
            f"filters: {file.name} cannot be read (a checkpoint with tensors alone: "
            "torch.save(net.state_dict(), ...))"
        ) from None
    weights = _weights(content, file)
    if layer:
        wanted = layer.removeprefix(_PARALLEL)
        key = next((k for k in (wanted, f"{wanted}.weight") if k in weights), "")
        if not key:
            shown = ", ".join(list(weights)[:8]) + (", ..." if len(weights) > 8 else "")
            near = suggestion(layer, weights, shown, f"{file.name} has")
            raise HdicaError(f"layer = {layer!r} is not allowed ({near})")
    else:
        key = next((name for name, tensor in weights.items() if tensor.ndim == 4), "")
        if not key:
            raise HdicaError(f"filters: {file.name} has no convolution (a tensor of 4 dimensions)")
    if weights[key].ndim != 4:
        raise HdicaError(f"layer = {layer!r} is not allowed (a convolution has 4 dimensions)")
    # One number may stand for any count of them.
    if weights[key].numel() > most_numbers(file.stat().st_size):
        raise HdicaError(f"filters: {file.name} cannot be read ({key} expands beyond its bytes)")
    try:
        # The one kind of numbers that NumPy does not know is bfloat16.
        tensor = weights[key].detach()
        numbers = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    except (TypeError, RuntimeError, NotImplementedError):
        raise HdicaError(f"filters: {file.name} has no plain numbers in {key}") from None
    return _array(numbers, file.name)


def _weights(content: object, file: Path) -> dict[str, Any]:
    """Tensors by name, out of what surrounds them; names without what DataParallel adds."""
    while isinstance(content, Mapping):
        inner = (content[name] for name in _NESTED if isinstance(content.get(name), Mapping))
        deeper = next(inner, None)
        if deeper is None:
            break
        content = deeper
    if not isinstance(content, Mapping):
        raise HdicaError(f"filters: {file.name} has no weights by name (a state_dict)")
    tensors = {str(k): v for k, v in content.items() if hasattr(v, "ndim") and hasattr(v, "detach")}
    return {name.removeprefix(_PARALLEL): one for name, one in tensors.items()}
