"""Filters over training: how each point is computed, over ranks and by chance; their record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import streams_of
from hdica.ingredients.save import Save
from hdica.inputs.filters import Series
from hdica.inputs.images import check_width, pictures, random_patches
from hdica.systems.arguments import check_memory
from hdica.systems.filter_series import measures
from hdica.systems.filter_series.system import FilterSeries, rank, series, shape
from hdica.systems.method import (
    About,
    Array,
    Cost,
    Limit,
    Output,
    Outputs,
    PointResult,
    Role,
    Scope,
    Simulation,
    Size,
    refusal,
)
from hdica.systems.system import Clock, Dimension, OrderParameter, Symbol, System, in_words, work
from hdica.systems.trials import content_of

__all__ = ["SYSTEM", "FilterSeries"]

PAPER = "Reduce and Conquer 2025"
_HERE = "hdica.systems.filter_series"
BY_CHANCE = ("hdica.systems", "hdica.inputs", _HERE)
WITHOUT = frozenset({"filters", "layer", "training", "k"})
"""Fields that choose no patches: filters of every training are seen with the same ones."""
FRACTIONS = np.arange(1, 21) / 20  # k/d of Figure A.1
_AT, _OVER = ("time",), ("fraction",)
_PIXELS = ("component", "row", "column", "channel")
_SQUARED = "excess overlap |Pw|^2/|w|^2 - k/d"
_PRINTED = "excess overlap as printed, 1 - |w - Pw|/|w| - k/d"


def patches(system: FilterSeries, width: int, seed: int) -> Array:
    """Patches of a seed, shape (P, d)."""
    images = pictures(system.images, system.colour)
    stream = streams_of(content_of(system, WITHOUT), "patches", None)(seed)
    return random_patches(images, width, system.patches, stream("patches"))


def _data(system: FilterSeries, seed: int | None) -> tuple[Series, measures.Principal]:
    snapshots = series(system)
    return snapshots, measures.principal(patches(system, snapshots.filters.shape[3], seed or 0))


def _dimension(system: FilterSeries) -> int:
    """D, the entries of a filter."""
    _, channels, width = shape(system)
    return channels * width * width


def _rank(system: FilterSeries) -> int:
    return rank(system, _dimension(system))


def _able(system: FilterSeries) -> None:
    """Refuse filters that cannot be read, k that is too large and patches that do not fit."""
    _rank(system)
    # In memory twice, with their copy that is centred.
    needed = 16.0 * system.patches * _dimension(system)
    check_memory(needed, f"patches = {system.patches}", "fewer patches")
    check_width(pictures(system.images, system.colour), shape(system)[2])


def _history(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """Means over filters and standard deviations among them, of the last snapshot until a time."""
    snapshots, components = _data(system, seed)
    k, d, rows = rank(system, snapshots.dimension), snapshots.dimension, []
    for snapshot in range(len(snapshots.steps)):
        filters = snapshots.vectors(snapshot)
        share = measures.kept_share(filters, components.components)[:, k - 1]
        excess, printed = measures.excesses(share, k / d)
        plain, without = measures.kurtoses(filters, components.centred)
        rows.append(
            {
                "excess_overlap": excess.mean(),
                "excess_overlap_sd": excess.std(),
                "printed_overlap": printed.mean(),
                "normalised_overlap": excess.mean() / (1 - k / d),
                "kurtosis": plain.mean(),
                "kurtosis_sd": plain.std(),
                "kurtosis_dcremoved": without.mean(),
            }
        )
    means = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    at = np.searchsorted(snapshots.steps.astype(float), times, side="right") - 1
    return PointResult(
        {name: np.where(at >= 0, mean[np.maximum(at, 0)], np.nan) for name, mean in means.items()}
    )


def _seconds(system: FilterSeries, n: int | None, last: float) -> float:
    """Some 25 snapshots of the filters over all patches, and the components of these."""
    count, d = shape(system)[0], _dimension(system)
    return 0.05 + system.patches * (4e-10 * d * d + 25 * count * (4e-10 * d + 2.8e-8))


def _overlaps(dims: tuple[str, ...]) -> tuple[Output, ...]:
    return (
        Output("excess_overlap", dims, f"{_SQUARED}, mean over filters"),
        Output("excess_overlap_sd", dims, "standard deviation of excess_overlap among filters"),
        Output("printed_overlap", dims, f"{_PRINTED}, mean over filters"),
    )


HISTORY = Simulation[FilterSeries](
    name="filter_history",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="overlap of the filters with the principal subspace, and kurtosis, at every snapshot",
        accuracy="exact",
        equations=f"{PAPER}, (A.1) with squared lengths, (A.2) with the mean subtracted",
        engines=("hdica.finite.random", *BY_CHANCE),
    ),
    outputs=Outputs(
        (
            *_overlaps(_AT),
            Output("normalised_overlap", _AT, "excess_overlap/(1 - k/d), 1 in the subspace"),
            Output("kurtosis", _AT, "excess kurtosis of w.x, mean over filters"),
            Output("kurtosis_sd", _AT, "standard deviation of kurtosis among filters"),
            Output(
                "kurtosis_dcremoved", _AT, "excess kurtosis of w.x, patches without their own mean"
            ),
        )
    ),
    cost=Cost(seconds=_seconds, memory=lambda system, n, last: 2 * system.patches, fused=True),
    scope=Scope(refuses=refusal(_able), n=Size.NONE),
    run=_history,
)


def _spectrum(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    snapshots, components = _data(system, seed)
    d, filters = snapshots.dimension, snapshots.vectors(-1)
    ranks = ranks_of(d)
    excess, printed = measures.excesses(
        measures.kept_share(filters, components.components)[:, ranks - 1], ranks / d
    )
    total = components.variances.sum()
    explained = np.cumsum(components.variances)[ranks - 1] / (total if total > 0 else 1.0)
    mean = excess.mean(axis=0)
    values = {
        "excess_overlap": mean,
        "excess_overlap_sd": excess.std(axis=0),
        "printed_overlap": printed.mean(axis=0),
        "explained": explained,
        "peak": np.asarray(FRACTIONS[int(mean.argmax())]),
    }
    side, many = snapshots.filters.shape[3], len(system.dims()["component"])
    vectors = {"components": components.components, "last_filters": filters}
    for name in vectors.keys() & set(save.extra):
        images = vectors[name].reshape(-1, side, side, snapshots.channels)
        values[name] = np.full((many, *images.shape[1:]), np.nan)
        values[name][: len(images)] = images[:many]
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
            *_overlaps(_OVER),
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


def _by_chance(d: int, ranks: NDArray[np.int64]) -> dict[str, Array]:
    squared = np.array([measures.random_excess_overlap(d, k) for k in ranks])
    printed = np.array([measures.random_excess_overlap(d, k, squared=False) for k in ranks])
    return {
        "excess_overlap": squared[:, 0],
        "excess_overlap_sd": squared[:, 1],
        "printed_overlap": printed[:, 0],
        "printed_overlap_sd": printed[:, 1],
    }


def _chance(system: FilterSeries, times: Array, *_: object) -> PointResult:
    values = _by_chance(_dimension(system), np.array([_rank(system)]))
    return PointResult({name: np.repeat(one, len(times)) for name, one in values.items()})


def _chance_spectrum(system: FilterSeries, *_: object) -> PointResult:
    d = _dimension(system)
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
    scope=Scope(refuses=refusal(_rank), ignores=frozenset({"images", "patches"})),
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

_MEASURES = ("excess_kurtosis", "excess_overlap", "random_excess_overlap")
_TINY = {
    "filters": {"random": {"filters": 3, "width": 4}},
    "images": {"bundled": ["china", "flower"]},
    "patches": 60,
}

SYSTEM = System(
    parameters=FilterSeries,
    title="First-layer filters of a network: principal subspace and non-Gaussian directions",
    papers=(work("Reduce and Conquer 2025"),),
    order_parameters=(
        OrderParameter(
            "excess_overlap",
            "share of a filter's squared length in the principal subspace, minus k/d",
        ),
    ),
    clock=Clock("time t = k", "steps"),
    dimensions=(
        Dimension("component", "number of the filter or principal component"),
        Dimension("row", "row of the picture"),
        Dimension("column", "column of the picture"),
        Dimension("channel", "0 for grey, or 0, 1, 2 for red, green and blue"),
        Dimension("fraction", "rank of the principal subspace over d"),
    ),
    symbols={
        **in_words(
            excess_overlap="excess overlap",
            printed_overlap="excess overlap (as printed)",
            kurtosis="excess kurtosis",
            kurtosis_dcremoved="excess kurtosis (patches without their mean)",
            filter_history="filters over training",
            rank_spectrum="last filters",
            random_directions="random directions",
            random_spectrum="random directions",
            explained="share of variance",
        ),
        "fraction": Symbol("<i>k</i>/<i>d</i>", "$k/d$", "k/d"),
        "k": Symbol("<i>k</i>/<i>d</i>", "$k/d$", "k/d"),
    },
    methods=(HISTORY, SPECTRUM, CHANCE, CHANCE_SPECTRUM),
    functions={
        **dict.fromkeys(_MEASURES, f"{_HERE}.measures"),
        "load_filters": "hdica.inputs.filters",
    },
    analyses={"ensemble": {"simulation": Role.SIMULATION}},
    horizon=10.0,
    examples=(
        _TINY,
        {
            **_TINY,
            "filters": {"random": {"filters": 2, "width": 3, "seed": 1}},
            "colour": "rgb",
            "k": 5,
        },
    ),
)
