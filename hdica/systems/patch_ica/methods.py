"""ICA of patches: one direction judged on other patches, and all components as pictures."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from hdica.finite.fastica.whitening import Blocks
from hdica.finite.random.streams import Stream, streams_of
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.inputs.images import check_width, pictures
from hdica.process.machine import one_thread
from hdica.systems.method import (
    FINITE,
    About,
    Cost,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.patch_ica.gabor import residuals
from hdica.systems.patch_ica.patches import Bank, Patches, Plan, Training, bank, judged, trained
from hdica.systems.patch_ica.system import CHANNELS, PatchICA, contrast, count, dimension, rank
from hdica.systems.trials import content_of

PAPER = "Reduce and Conquer 2025"
HOME = "hdica.systems.patch_ica"
ENGINES = (*FINITE, "hdica.finite.fastica", "hdica.inputs", HOME)
PLACES = frozenset({"images", "width", "colour"})
"""Fields that choose random numbers: points that differ in others are shown the same patches."""
_AT = ("time",)
_LESS = "mean of G over held-out patches less that of random directions of"
_STANDARD, _AS_IT_IS = "projections with variance 1", "projections as they are"
OUTPUTS = (
    Output("test_loss", _AT, f"{_LESS} the space of FastICA, {_STANDARD}"),
    Output("raw_loss", _AT, f"{_LESS} the space of FastICA, {_AS_IT_IS}"),
    Output("test_loss_ambient", _AT, f"{_LESS} all D dimensions, {_STANDARD}"),
    Output("raw_loss_ambient", _AT, f"{_LESS} all D dimensions, {_AS_IT_IS}"),
    Output("train_loss", _AT, "as test_loss, over the training patches"),
    Output("excess_kurtosis", _AT, "excess kurtosis of the projection of held-out patches"),
    Output("iterations", (), "iterations of the best start"),
    Output("converged", (), "1 if it converged, else 0"),
)
FILTER = Output("filter", ("row", "column", "channel"), "filter that is found")


def patches(system: PatchICA, seed: int) -> Patches:
    """Patches of a point."""
    return Patches(pictures(system.images, system.colour), system.width, _stream(system, seed))


def _check_width(system: PatchICA) -> None:
    """Refuse pictures that cannot be read or are smaller than a patch, before anything runs."""
    check_width(pictures(system.images, system.colour), system.width)


def _stream(system: PatchICA, seed: int) -> Stream:
    others = frozenset(type(system).model_fields) - PLACES
    return streams_of(content_of(system, others), "patches", 0)(seed)


def training(system: PatchICA, source: Patches) -> AbstractContextManager[Training]:
    """Its training patches, whitened, for as long as they are used."""
    return trained(source, count(system), rank(system))


def pictured(system: PatchICA, filters: Array) -> Array:
    """Filters as pictures, shape (..., rows, columns, channels), of shape (..., D)."""
    shape = (system.width, system.width, CHANNELS[system.colour])
    return filters.reshape(*filters.shape[:-1], *shape)


def _run(
    system: PatchICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    source = patches(system, seed or 0)
    plan = Plan(
        contrast(system), system.restarts, system.iterations, system.tolerance, system.test,
        system.directions,
    )  # fmt: skip
    with training(system, source) as data:
        result = judged(source, data, plan, source.stream)
    # After the last iteration nothing changes any more.
    at = np.minimum(steps_of(times, 1), result.iterations)
    values = {
        "test_loss": result.test[at],
        "raw_loss": result.raw[at],
        "test_loss_ambient": result.test_ambient[at],
        "raw_loss_ambient": result.raw_ambient[at],
        "train_loss": result.train[at],
        "excess_kurtosis": result.kurtosis[at],
        "iterations": np.asarray(float(result.iterations)),
        "converged": np.asarray(float(result.converged)),
    }
    if FILTER.name in save.extra:
        values[FILTER.name] = pictured(system, result.filter)
    return PointResult(values)


def drawn_seconds(system: PatchICA, many: int) -> float:
    """To cut out patches, and to multiply D numbers of each with D others."""
    size = dimension(system)
    return 1e-2 + many * size * (4e-9 + 1e-10 * size) + 2e-10 * size**3


def _seconds(system: PatchICA, n: int | None, last: float) -> float:
    looks = min(system.iterations, 60)
    learnt = count(system) * rank(system) * looks * system.restarts * 2e-9
    judged_ones = system.test * looks * (dimension(system) * 2e-10 + 4e-8)
    return drawn_seconds(system, 2 * count(system) + system.test) + learnt + judged_ones


def held(system: PatchICA, n: int | None) -> int:
    """Numbers in memory: scores, projections of held-out patches, and the covariance."""
    looks = system.iterations + 2 * system.directions
    return count(system) * rank(system) + system.test * looks + 3 * dimension(system) ** 2


HELD_OUT = Simulation[PatchICA](
    name="held_out",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="FastICA of patches of images, judged on other patches",
        accuracy="exact",
        equations=(
            f"{PAPER}, (1), (2), Section 3, Appendix A.1: FastICA of n patches, Figure 1(b, c)"
        ),
        engines=ENGINES,
    ),
    outputs=Outputs(OUTPUTS, extras=(FILTER,)),
    cost=Cost(seconds=_seconds, memory=held),
    scope=Scope(refuses=refusal(_check_width), ignores=frozenset({"kept"}), n=Size.NONE),
    run=_run,
)
_OF = ("component",)
_PIXELS = ("component", "row", "column", "channel")
_FIT = "share of the norm that the nearest Gabor function leaves"
BANK_OUTPUTS = (
    Output("score", _OF, "mean of G over training patches less that of a Gaussian"),
    Output("gabor_residual", _OF, f"{_FIT} of a filter"),
    Output("gabor_residual_random", _OF, f"{_FIT} of a random filter of the same space"),
    Output("feature_residual", _OF, f"{_FIT} of a feature"),
    Output("feature_residual_random", _OF, f"{_FIT} of a random feature of the same space"),
    Output("frequency", _OF, "frequency of a feature's Gabor function", "cycles per pixel"),
    Output("orientation", _OF, "direction of a feature's wave to that of rows", "radian"),
    Output("variance", _OF, "share of the patches' variance along a principal component"),
    Output("iterations", (), "iterations of all components together"),
    Output("converged", (), "1 if they converged, else 0"),
)
FILTERS = Output("filters", _PIXELS, "filters of the patches")
FEATURES = Output("features", _PIXELS, "features: what each component adds to a patch")
PRINCIPAL = Output("principal", _PIXELS, "principal components of patches, the largest first")


def _padded(values: Array, count: int) -> Array:
    """As many rows as ``count``, NaN where there are fewer."""
    out = np.full((count, *values.shape[1:]), np.nan)
    out[: len(values)] = values[:count]
    return out


def _gabor_fits(system: PatchICA, components: Bank) -> dict[str, Array]:
    """What Gabor functions leave of filters and features, and of random ones."""
    with one_thread():
        fitted = {
            name: residuals(pictured(system, values))
            for name, values in (
                ("gabor_residual", components.filters),
                ("gabor_residual_random", components.chance_filters),
                ("feature_residual", components.features),
                ("feature_residual_random", components.chance_features),
            )
        }
    _, frequency, orientation = fitted["feature_residual"]
    residual = {name: values[0] for name, values in fitted.items()}
    return {**residual, "frequency": frequency, "orientation": orientation}


def _run_bank(
    system: PatchICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    source = patches(system, seed or 0)
    with training(system, source) as data:
        components = bank(
            data, contrast(system), source.stream, kept=system.kept, iterations=system.iterations,
            tolerance=system.tolerance,
        )  # fmt: skip
        total = _variance(system, data.passes, data.white.mean)
    values = {
        "score": components.score,
        **_gabor_fits(system, components),
        "variance": data.white.variances / total,
    }
    out = {name: _padded(column, system.kept) for name, column in values.items()}
    out["iterations"] = np.asarray(float(components.iterations))
    out["converged"] = np.asarray(float(components.converged))
    pictures = {
        FILTERS.name: components.filters,
        FEATURES.name: components.features,
        PRINCIPAL.name: data.white.directions.T,
    }
    for name in pictures.keys() & set(save.extra):
        out[name] = _padded(pictured(system, pictures[name]), system.kept)
    return PointResult(out)


def _variance(system: PatchICA, passes: Blocks, mean: Array) -> float:
    """Variance of the training patches, summed over their pixels."""
    return sum(float(np.sum((block - mean) ** 2)) for block in passes()) / count(system)


def _bank_seconds(system: PatchICA, n: int | None, last: float) -> float:
    d, fits = rank(system), 4 * min(rank(system), system.kept)
    learnt = count(system) * d * d * min(system.iterations, 100) * 2e-9
    fitted = fits * (0.1 + 2e-5 * dimension(system))
    return drawn_seconds(system, 2 * count(system)) + learnt + fitted


FILTER_BANK = replace(
    HELD_OUT,
    name="filter_bank",
    rank=2,
    about=replace(
        HELD_OUT.about,
        text="all components by symmetric FastICA, and how near they are to Gabor functions",
        equations=f"{PAPER}, (2) with symmetric decorrelation of all d components; Figure A.1",
    ),
    outputs=Outputs(BANK_OUTPUTS, extras=(FILTERS, FEATURES, PRINCIPAL), coords=lambda times: {}),
    cost=Cost(
        seconds=_bank_seconds,
        memory=lambda system, n: 2 * count(system) * rank(system) + 3 * dimension(system) ** 2,
    ),
    scope=replace(HELD_OUT.scope, ignores=frozenset({"restarts", "test", "directions"})),
    run=_run_bank,
)
METHODS = (HELD_OUT, FILTER_BANK)
