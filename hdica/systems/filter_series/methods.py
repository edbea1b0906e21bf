"""Ways to compute points of a series of filters: over training, over ranks, and by chance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import streams_of
from hdica.ingredients.save import Save
from hdica.inputs.filters import Series
from hdica.inputs.images import check_width, pictures, random_patches
from hdica.process.machine import one_thread
from hdica.systems.filter_series.measures import excess_kurtosis, random_excess_overlap
from hdica.systems.filter_series.system import FilterSeries, check_patches, rank, series, shape
from hdica.systems.method import About, Cost, Limit, Outputs, Role, Scope, Simulation, Size, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.trials import content_of

BLOCK = 4096
"""Patches that are averaged over at a time."""


@dataclass(frozen=True, eq=False)
class Principal:
    """Principal components of patches.

    Parameters
    ----------
    centred
        Patches x minus their mean, shape (P, d).
    components
        Orthonormal rows, shape (d, d), the leading one first; the largest entry of each is
        positive.
    variances
        Along them, shape (d,), decreasing.
    """

    centred: Array
    components: Array
    variances: Array


def principal(patches: Array) -> Principal:
    """Principal components of patches of shape (P, d); one thread, so that bits are the same."""
    from scipy.linalg import eigh

    with one_thread():
        centred = patches - patches.mean(axis=0)
        covariance = np.zeros((patches.shape[1],) * 2)
        for first in range(0, len(centred), BLOCK):
            block = centred[first : first + BLOCK]
            covariance += block.T @ block
        variances, vectors = eigh(covariance / len(centred))
    rows = vectors.T[::-1]
    largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    return Principal(
        centred,
        np.ascontiguousarray(rows * np.sign(largest)[:, None]),
        np.maximum(variances[::-1], 0.0),
    )


def kept_share(filters: Array, components: Array) -> Array:
    """Share of each filter's squared length in the leading components.

    Parameters
    ----------
    filters
        Shape (K, d).
    components
        All d, the leading one first.

    Returns
    -------
    Array
        Shape (K, d): entry k - 1 for the leading k of them, in [0, 1].
    """
    with one_thread():
        scaled = filters / np.abs(filters).max(axis=1, keepdims=True)
        squares = (scaled @ components.T) ** 2
    summed = np.cumsum(squares, axis=1)
    return np.asarray(summed / summed[:, -1:])


def kurtoses(filters: Array, centred: Array) -> tuple[Array, Array]:
    """Excess kurtosis of projections of patches, and of patches without their own mean.

    Parameters
    ----------
    filters
        Shape (K, d).
    centred
        Patches x, shape (P, d), with mean 0 in every pixel.

    Returns
    -------
    tuple of Array
        Of w.x, shape (K,), and of w.(x - mean of the pixels of x): the DC component, which varies
        most of all, tells nothing of the filter's form.
    """
    with one_thread():
        projected = centred @ filters.T
        level = centred.mean(axis=1)
    without = projected - np.outer(level, filters.sum(axis=1))
    return excess_kurtosis(projected), excess_kurtosis(without)


@dataclass(frozen=True, eq=False)
class Path:
    """Means over filters and standard deviations among them at every snapshot, shape (T,)."""

    excess: Array
    excess_sd: Array
    printed: Array
    kurtosis: Array
    kurtosis_sd: Array
    dcremoved: Array


def path(snapshots: Series, principal: Principal, k: int) -> Path:
    """Excess overlap with the leading k components, and kurtosis, of every snapshot."""
    rows = []
    for snapshot in range(len(snapshots.steps)):
        filters = snapshots.vectors(snapshot)
        share = kept_share(filters, principal.components)[:, k - 1]
        excess, printed = excesses(share, k / snapshots.dimension)
        plain, without = kurtoses(filters, principal.centred)
        rows.append(
            [excess.mean(), excess.std(), printed.mean(), plain.mean(), plain.std(), without.mean()]
        )
    return Path(*np.array(rows).T)


def excesses(share: Array, random: float | Array) -> tuple[Array, Array]:
    """Excess overlaps, squared and as printed, of the share of a filter and that of a random one.

    See :func:`hdica.systems.filter_series.measures.excess_overlap`.
    """
    return share - random, 1 - np.sqrt(np.maximum(1 - share, 0.0)) - random


def half_rise(steps: Array, values: Array) -> float:
    """First step at which a number is half-way from its first value to its last; NaN if unknown."""
    middle = (values[0] + values[-1]) / 2
    beyond = (values >= middle) if values[-1] >= values[0] else (values <= middle)
    defined = beyond.any() and np.isfinite(middle)
    return float(steps[int(beyond.argmax())]) if defined else float("nan")


PAPER = "Reduce and Conquer 2025"
HOME = "hdica.systems.filter_series"
BY_CHANCE = ("hdica.systems", "hdica.inputs", HOME)
ENGINES = ("hdica.finite.random", *BY_CHANCE)
"""Folders behind what chance gives, and behind what patches give."""
WITHOUT = frozenset({"filters", "layer", "training", "k"})
"""Fields that choose no patches: filters of every training are seen with the same ones."""
FRACTIONS = np.arange(1, 21) / 20
"""k/d of Figure A.1."""
_AT, _OVER = ("time",), ("fraction",)
_PIXELS = ("component", "row", "column", "channel")
_SQUARED = "excess overlap |Pw|^2/|w|^2 - k/d"
_PRINTED = "excess overlap as printed, 1 - |w - Pw|/|w| - k/d"


def patches(system: FilterSeries, width: int, seed: int) -> Array:
    """Patches of a seed, shape (P, d)."""
    images = pictures(system.images, system.colour)
    stream = streams_of(content_of(system, WITHOUT), "patches", None)(seed)
    return random_patches(images, width, system.patches, stream("patches"))


def _data(system: FilterSeries, seed: int | None) -> tuple[Series, Principal]:
    snapshots = series(system)
    return snapshots, principal(patches(system, snapshots.filters.shape[3], seed or 0))


def _able(system: FilterSeries) -> None:
    """Refuse filters that cannot be read, k that is too large and patches that do not fit."""
    _, channels, width = shape(system)
    d = channels * width * width
    rank(system, d)
    check_patches(system, d)
    check_width(pictures(system.images, system.colour), width)


def _history(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    snapshots, components = _data(system, seed)
    k = rank(system, snapshots.dimension)
    means, steps = path(snapshots, components, k), snapshots.steps.astype(float)
    at = np.searchsorted(steps, times, side="right") - 1

    def until(values: Array) -> Array:
        return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)

    values = {
        "excess_overlap": until(means.excess),
        "excess_overlap_sd": until(means.excess_sd),
        "printed_overlap": until(means.printed),
        "normalised_overlap": until(means.excess / (1 - k / snapshots.dimension)),
        "kurtosis": until(means.kurtosis),
        "kurtosis_sd": until(means.kurtosis_sd),
        "kurtosis_dcremoved": until(means.dcremoved),
        "rise_overlap": np.asarray(half_rise(steps, means.excess)),
        "rise_kurtosis": np.asarray(half_rise(steps, means.kurtosis)),
        "rise_kurtosis_dcremoved": np.asarray(half_rise(steps, means.dcremoved)),
    }
    return PointResult(values)


def _seconds(system: FilterSeries, n: int | None, last: float) -> float:
    """Some 25 snapshots of the filters over all patches, and the components of these."""
    count, channels, width = shape(system)
    d = channels * width * width
    each = system.patches * (4e-10 * d * d + 25 * count * (4e-10 * d + 2.8e-8))
    return 0.05 + each


HISTORY = Simulation[FilterSeries](
    name="filter_history",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="overlap of the filters with the principal subspace, and kurtosis, at every snapshot",
        accuracy="exact",
        equations=f"{PAPER}, (A.1) with squared lengths, (A.2) with the mean subtracted",
        engines=ENGINES,
    ),
    outputs=Outputs(
        (
            Output("excess_overlap", _AT, f"{_SQUARED}, mean over filters"),
            Output("excess_overlap_sd", _AT, "standard deviation of excess_overlap among filters"),
            Output("printed_overlap", _AT, f"{_PRINTED}, mean over filters"),
            Output("normalised_overlap", _AT, "excess_overlap/(1 - k/d), 1 in the subspace"),
            Output("kurtosis", _AT, "excess kurtosis of w.x, mean over filters"),
            Output("kurtosis_sd", _AT, "standard deviation of kurtosis among filters"),
            Output(
                "kurtosis_dcremoved", _AT, "excess kurtosis of w.x, patches without their own mean"
            ),
            Output("rise_overlap", (), "step at which excess_overlap has risen half-way", "steps"),
            Output("rise_kurtosis", (), "step at which kurtosis has risen half-way", "steps"),
            Output(
                "rise_kurtosis_dcremoved",
                (),
                "step at which kurtosis_dcremoved has risen half-way",
                "steps",
            ),
        )
    ),
    cost=Cost(seconds=_seconds, memory=lambda system, n: 2 * system.patches, fused=True),
    scope=Scope(refuses=refusal(_able), n=Size.NONE),
    run=_history,
)


def _padded(pictures: Array, many: int) -> Array:
    """The same with NaN up to so many pictures."""
    out = np.full((many, *pictures.shape[1:]), np.nan)
    out[: len(pictures)] = pictures[:many]
    return out


def _spectrum(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    snapshots, principal = _data(system, seed)
    d, filters = snapshots.dimension, snapshots.vectors(-1)
    ranks = ranks_of(d)
    excess, printed = excesses(kept_share(filters, principal.components)[:, ranks - 1], ranks / d)
    total = principal.variances.sum()
    explained = np.cumsum(principal.variances)[ranks - 1] / (total if total > 0 else 1.0)
    mean = excess.mean(axis=0)
    values = {
        "excess_overlap": mean,
        "excess_overlap_sd": excess.std(axis=0),
        "printed_overlap": printed.mean(axis=0),
        "explained": explained,
        "peak": np.asarray(FRACTIONS[int(mean.argmax())]),
    }
    if save.extra:
        side, many = snapshots.filters.shape[3], len(system.dims()["component"])
        form = (-1, side, side, snapshots.channels)
        shown = {"components": principal.components, "last_filters": filters}
        values |= {k: _padded(v.reshape(form), many) for k, v in shown.items() if k in save.extra}
    return PointResult(values)


def ranks_of(d: int) -> NDArray[np.int64]:
    """K for every share of d."""
    return np.maximum(np.rint(FRACTIONS * d), 1).astype(np.int64)


SPECTRUM = replace(
    HISTORY,
    name="rank_spectrum",
    role=Role.OTHER,
    rank=None,
    about=replace(
        HISTORY.about,
        text=(
            "overlap of the last filters with the leading k components, over k/d; pictures of both"
        ),
        equations=f"{PAPER}, Figure A.1: (A.1) of the final filters over the rank",
    ),
    outputs=Outputs(
        (
            Output("excess_overlap", _OVER, f"{_SQUARED}, mean over filters"),
            Output(
                "excess_overlap_sd", _OVER, "standard deviation of excess_overlap among filters"
            ),
            Output("printed_overlap", _OVER, f"{_PRINTED}, mean over filters"),
            Output(
                "explained", _OVER, "share of the variance of patches in the leading k components"
            ),
            Output("peak", (), "k/d at which excess_overlap is largest"),
        ),
        extras=(
            Output("components", _PIXELS, "principal components of the patches"),
            Output("last_filters", _PIXELS, "filters of the last snapshot"),
        ),
        coords=lambda times: {"fraction": FRACTIONS},
    ),
    scope=replace(HISTORY.scope, ignores=frozenset({"k"})),
    run=_spectrum,
)


def _chance(system: FilterSeries, times: Array, *_: object) -> PointResult:
    channels, width = shape(system)[1:]
    d = channels * width * width
    values = _by_chance(d, np.array([rank(system, d)]))
    return PointResult({name: np.repeat(one, len(times)) for name, one in values.items()})


def _by_chance(d: int, ranks: NDArray[np.int64]) -> dict[str, Array]:
    squared = np.array([random_excess_overlap(d, int(k)) for k in ranks])
    printed = np.array([random_excess_overlap(d, int(k), squared=False) for k in ranks])
    return {
        "excess_overlap": squared[:, 0],
        "excess_overlap_sd": squared[:, 1],
        "printed_overlap": printed[:, 0],
        "printed_overlap_sd": printed[:, 1],
    }


def _chance_spectrum(system: FilterSeries, *_: object) -> PointResult:
    channels, width = shape(system)[1:]
    d = channels * width * width
    return PointResult(_by_chance(d, ranks_of(d)))


def _outputs(dims: tuple[str, ...]) -> tuple[Output, ...]:
    return (
        Output("excess_overlap", dims, f"mean of {_SQUARED} of random directions"),
        Output("excess_overlap_sd", dims, "its standard deviation among random directions"),
        Output("printed_overlap", dims, f"mean of {_PRINTED} of random directions"),
        Output("printed_overlap_sd", dims, "its standard deviation among random directions"),
    )


CHANCE = Limit[FilterSeries](
    name="random_directions",
    role=Role.LIMIT,
    rank=1,
    about=About(
        text="the same overlaps of random directions, in closed form: what chance gives",
        accuracy="exact",
        equations="|Pw|^2/|w|^2 of a random w has the law Beta(k/2, (d - k)/2)",
        engines=BY_CHANCE,
    ),
    outputs=Outputs(_outputs(_AT)),
    cost=Cost(seconds=lambda system, n, last: 1e-3),
    scope=Scope(
        refuses=refusal(lambda system: rank(system, shape(system)[1] * shape(system)[2] ** 2)),
        ignores=frozenset({"images", "patches"}),
    ),
    run=_chance,
)
CHANCE_SPECTRUM = replace(
    CHANCE,
    name="random_spectrum",
    role=Role.OTHER,
    rank=None,
    about=replace(CHANCE.about, text="the same over k/d"),
    outputs=Outputs(_outputs(_OVER), coords=lambda times: {"fraction": FRACTIONS}),
    scope=replace(CHANCE.scope, ignores=frozenset({"images", "patches", "k"})),
    run=_chance_spectrum,
)
METHODS = (HISTORY, SPECTRUM, CHANCE, CHANCE_SPECTRUM)
"""Ways to compute points of a series of filters."""
