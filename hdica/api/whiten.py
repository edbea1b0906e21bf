"""Samples whitened by their principal components, and the way back."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import xarray as xr

from hdica.errors import HdicaError, extras
from hdica.inputs.samples import Samples, samples_input, samples_of, samples_of_array
from hdica.process.machine import one_thread
from hdica.systems.arguments import check_memory, whole
from hdica.systems.labelled import portable_texts
from hdica.systems.method import Array

_NUMBERS = 2**22  # numbers of samples that are decomposed at a time


def whiten(X: object, n_components: int | None = None) -> xr.Dataset:
    """Whiten samples: mean 0, unit covariance, directions without variance left out.

    The components are those of ``sklearn.decomposition.PCA(whiten=True)``, of the samples in
    blocks (``IncrementalPCA`` with all components, which is exact). A direction has no variance if
    its standard deviation is that of the rounding of the numbers, in single precision where all
    of them are such.

    Parameters
    ----------
    X
        Samples, one a row, shape (samples, channels): an array, an ``xarray.DataArray`` whose first
        dimension is that of the samples, or what ``data`` of :class:`hdica.OnlineICA` takes, such
        as the path of a ``.npy`` file or a Zarr array below ``data/``.
    n_components
        How many components to keep, those of the largest variance; None for all that vary.

    Returns
    -------
    xarray.Dataset
        ``white(sample, component)``, the ``data`` of a rule; ``variance(component)`` of the samples
        along each component (over the number of samples less 1) and its ``share`` of the whole;
        ``mean(channel)``; and the matrices ``filters(channel, component)`` and
        ``patterns(component, channel)``: white = (X - mean) filters, and X = mean + white patterns
        but for what was left out. An estimate x over components is the filter ``filters @ x`` on
        channels, and what it stands for is seen in channels as ``x @ patterns``. ``note`` says how
        many dimensions are left, of how many, and why.

    Raises
    ------
    HdicaError
        If X holds no finite samples, they do not vary, or in fewer directions than components.
    """
    sample, channel, coords = "sample", "channel", dict[Hashable, xr.DataArray]()
    if isinstance(X, xr.DataArray) and X.ndim == 2:
        if "component" in X.dims:
            raise HdicaError("X with a dimension 'component' is not allowed (rename it)")
        sample, channel = map(str, X.dims)
        coords = {name: one for name, one in X.coords.items() if one.ndim == 1}
    in_file = isinstance(X, str | PurePath | Mapping)
    samples = samples_of(samples_input(X)) if in_file else samples_of_array(X)
    count, size = samples.shape
    if count < 2:
        raise HdicaError(f"X of {count} sample is not allowed (at least 2, to be whitened)")
    if n_components is not None:
        n_components = whole(n_components, "n_components", "a whole number >= 1", least=1)
    with one_thread():
        # Seen from the first sample, what is constant is exactly so.
        origin, eps = samples.read(0, 1)[0], _precision(samples)
        fitted = _fitted(samples, origin)
        deviation = fitted.singular_values_ / np.sqrt(count - 1)
        axes, mean = fitted.components_, origin + fitted.mean_
        varies = deviation > _rounding(axes, deviation, mean, fitted.var_, eps)
        rank = min(int(np.sum(varies)), count - 1)
        k = rank if n_components is None else n_components
        if not 1 <= k <= rank:
            raise HdicaError(
                f"n_components = {k} is not allowed ({count} samples of {size} channels vary in "
                f"{rank} directions, and what does not vary cannot be whitened)"
            )
        check_memory(8 * count * k, f"X of {count} samples", "fewer samples or n_components")
        axes, deviation = axes[:k], deviation[:k]
        filters = axes.T / deviation
        white, first = np.empty((count, k)), 0
        for block in _blocks(samples):
            white[first : first + len(block)] = (block - mean) @ filters
            first += len(block)
    data = {
        "white": ((sample, "component"), white),
        "variance": ("component", deviation**2),
        "share": ("component", fitted.explained_variance_ratio_[:k]),
        "mean": (channel, mean),
        "filters": ((channel, "component"), filters),
        "patterns": (("component", channel), axes * deviation[:, None]),
    }
    attrs = {"components": k, "rank": rank, "dimension": size, "note": _note(k, rank, size, count)}
    return portable_texts(xr.Dataset(data, coords, attrs))


def _blocks(samples: Samples) -> Iterator[Array]:
    """Blocks of at least as many rows as there are columns, all samples if there are fewer."""
    count, size = samples.shape
    rows = max(size, _NUMBERS // size)
    # What is left for the last one joins the one before.
    edges = [*range(0, max(count - rows + 1, 1), rows)]
    for first, last in zip(edges, [*edges[1:], count], strict=True):
        yield samples.read(first, last)


def _fitted(samples: Samples, origin: Array) -> Any:
    """All principal components of samples less the origin, from one pass."""
    with extras():
        from sklearn.decomposition import IncrementalPCA  # a second, which few commands need

    fitted = IncrementalPCA(min(samples.shape), copy=False)
    with np.errstate(invalid="ignore"):  # the shares of no variance, which is refused later
        for block in _blocks(samples):
            fitted.partial_fit(block - origin, check_input=False)
    return fitted


def _precision(samples: Samples) -> float:
    """Relative rounding of the numbers: of single precision if all of them are such."""
    single = np.float32
    with np.errstate(over="ignore", under="ignore"):
        short = all(np.array_equal(block.astype(single), block) for block in _blocks(samples))
    return float(np.finfo(single if short else np.float64).eps)


def _rounding(axes: Array, deviation: Array, mean: Array, variance: Array, eps: float) -> Array:
    """Standard deviation along each axis that rounding may make, of numbers and of the SVD."""
    size = np.sqrt(mean**2 + variance)
    numbers = eps * np.sqrt((axes * axes) @ (size * size))
    return np.asarray(len(mean) * (numbers + np.finfo(float).eps * deviation[0]))


def _note(k: int, rank: int, size: int, count: int) -> str:
    """How many dimensions are left, and why not all."""
    first = f"{k} of {size} dimensions kept"
    if rank == size == k:
        return f"{first}: {count} samples vary in all of them"
    if count <= size and rank == count - 1:
        first += f": {count} samples of mean 0 vary in {rank} (is every row a sample?)"
    elif rank < size:
        first += f": {count} samples vary in {rank}"
    return first if k == rank else f"{first}, and n_components = {k}"
