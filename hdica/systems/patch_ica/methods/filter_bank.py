"""All components of patches: filters, features and principal components as pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hdica.finite.whitening.moments import Blocks
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.systems.method import Cost, Outputs
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.patch_ica.finite.bank import Bank, bank
from hdica.systems.patch_ica.finite.gabor import residuals
from hdica.systems.patch_ica.methods.held_out import (
    HELD_OUT,
    PAPER,
    drawn_seconds,
    patches,
    pictured,
    training,
)
from hdica.systems.patch_ica.system import PatchICA, contrast, count, dimension, rank

_OF = ("component",)
_PIXELS = ("component", "row", "column", "channel")
_FIT = "share of the norm that the nearest Gabor function leaves"
OUTPUTS = (
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


def _padded(values: Array, kept: int) -> Array:
    """As many as are kept, NaN where there are fewer."""
    out = np.full((kept, *values.shape[1:]), np.nan)
    out[: len(values)] = values[:kept]
    return out


def _fits(system: PatchICA, found: Bank) -> dict[str, Array]:
    """What Gabor functions leave of filters and features, and of random ones."""
    with one_thread():
        fitted = {
            name: residuals(pictured(system, values))
            for name, values in (
                ("gabor_residual", found.filters),
                ("gabor_residual_random", found.chance_filters),
                ("feature_residual", found.features),
                ("feature_residual_random", found.chance_features),
            )
        }
    _, frequency, orientation = fitted["feature_residual"]
    residual = {name: values[0] for name, values in fitted.items()}
    return {**residual, "frequency": frequency, "orientation": orientation}


def _run(
    system: PatchICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    source = patches(system, seed or 0)
    with training(system, source) as data:
        found = bank(
            data, contrast(system), source.stream, kept=system.kept, iterations=system.iterations,
            tolerance=system.tolerance,
        )  # fmt: skip
        total = _variance(system, data.passes, data.white.mean)
    values = {
        "score": found.score,
        **_fits(system, found),
        "variance": data.white.variances / total,
    }
    out = {name: _padded(one, system.kept) for name, one in values.items()}
    out["iterations"] = np.asarray(float(found.iterations))
    out["converged"] = np.asarray(float(found.converged))
    asked = {
        FILTERS.name: found.filters,
        FEATURES.name: found.features,
        PRINCIPAL.name: data.white.directions.T,
    }
    for name in asked.keys() & set(save.extra):
        out[name] = _padded(pictured(system, asked[name]), system.kept)
    return PointResult(out)


def _variance(system: PatchICA, passes: Blocks, mean: Array) -> float:
    """Variance of the training patches, summed over their pixels."""
    return sum(float(np.sum((block - mean) ** 2)) for block in passes()) / count(system)


def _seconds(system: PatchICA, n: int | None, last: float) -> float:
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
    outputs=Outputs(OUTPUTS, extras=(FILTERS, FEATURES, PRINCIPAL), coords=lambda times: {}),
    cost=Cost(
        seconds=_seconds,
        memory=lambda system, n: 2 * count(system) * rank(system) + 3 * dimension(system) ** 2,
    ),
    scope=replace(HELD_OUT.scope, ignores=frozenset({"restarts", "test", "directions"})),
    run=_run,
)

METHODS = (FILTER_BANK,)
