"""Ways to compute points of a series of filters: over training, over ranks, and by chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import streams_of
from hdica.ingredients.save import Save
from hdica.inputs.images import check_width, pictures, random_patches
from hdica.inputs.series import Series
from hdica.systems.filter_series.compute import (
    Principal,
    excesses,
    half_rise,
    kept_share,
    path,
    principal,
)
from hdica.systems.filter_series.fields import rank, series, shape
from hdica.systems.filter_series.measures import random_excess_overlap
from hdica.systems.filter_series.system import FilterSeries, check_patches
from hdica.systems.method import (
    About,
    Cost,
    Limit,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.trials import content_of

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


def _known(system: FilterSeries, seed: int | None) -> tuple[Series, Principal]:
    found = series(system)
    return found, principal(patches(system, found.filters.shape[3], seed or 0))


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
    found, known = _known(system, seed)
    k = rank(system, found.dimension)
    seen, steps = path(found, known, k), found.steps.astype(float)
    at = np.searchsorted(steps, times, side="right") - 1

    def until(values: Array) -> Array:
        return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)

    values = {
        "excess_overlap": until(seen.excess),
        "excess_overlap_sd": until(seen.excess_sd),
        "printed_overlap": until(seen.printed),
        "normalised_overlap": until(seen.excess / (1 - k / found.dimension)),
        "kurtosis": until(seen.kurtosis),
        "kurtosis_sd": until(seen.kurtosis_sd),
        "kurtosis_dcremoved": until(seen.dcremoved),
        "rise_overlap": np.asarray(half_rise(steps, seen.excess)),
        "rise_kurtosis": np.asarray(half_rise(steps, seen.kurtosis)),
        "rise_kurtosis_dcremoved": np.asarray(half_rise(steps, seen.dcremoved)),
    }
    return PointResult(values)


def _seconds(system: FilterSeries, n: int | None, last: float) -> float:
    """Some 25 snapshots of the filters over all patches, and the components of these."""
    count, channels, width = shape(system)
    d = channels * width * width
    each = system.patches * (4e-10 * d * d + 25 * count * (4e-10 * d + 2.8e-8))
    trained = system.filters.get("trained")
    training = 5e-7 * trained["steps"] * trained["batch"] * trained["crop"] if trained else 0.0
    return 0.05 + each + 10 * training


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
    found = np.full((many, *pictures.shape[1:]), np.nan)
    found[: len(pictures)] = pictures[:many]
    return found


def _spectrum(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    found, known = _known(system, seed)
    d, filters = found.dimension, found.vectors(-1)
    ranks = ranks_of(d)
    excess, printed = excesses(kept_share(filters, known.components)[:, ranks - 1], ranks / d)
    total = known.variances.sum()
    explained = np.cumsum(known.variances)[ranks - 1] / (total if total > 0 else 1.0)
    mean = excess.mean(axis=0)
    values = {
        "excess_overlap": mean,
        "excess_overlap_sd": excess.std(axis=0),
        "printed_overlap": printed.mean(axis=0),
        "explained": explained,
        "peak": np.asarray(FRACTIONS[int(mean.argmax())]),
    }
    if save.extra:
        side, many = found.filters.shape[3], len(system.dims()["component"])
        form = (-1, side, side, found.channels)
        shown = {"components": known.components, "last_filters": filters}
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


def _chance(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    _, channels, width = shape(system)
    d = channels * width * width
    found = _by_chance(d, np.array([rank(system, d)]))
    return PointResult({name: np.repeat(one, len(times)) for name, one in found.items()})


def _by_chance(d: int, ranks: NDArray[np.int64]) -> dict[str, Array]:
    squared = np.array([random_excess_overlap(d, int(k)) for k in ranks])
    printed = np.array([random_excess_overlap(d, int(k), squared=False) for k in ranks])
    return {
        "excess_overlap": squared[:, 0],
        "excess_overlap_sd": squared[:, 1],
        "printed_overlap": printed[:, 0],
        "printed_overlap_sd": printed[:, 1],
    }


def _chance_spectrum(
    system: FilterSeries, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    _, channels, width = shape(system)
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
