"""ICA of patches: one direction judged on other patches, and all filters; its record."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.finite.random.streams import streams_of
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.inputs.images import check_width, pictures
from hdica.process.machine import one_thread
from hdica.systems.method import (
    FINITE,
    About,
    Array,
    Cost,
    Output,
    Outputs,
    PointResult,
    Role,
    Scope,
    Simulation,
    Size,
    refusal,
)
from hdica.systems.patch_ica.patches import Patches, bank, judged, residuals, trained
from hdica.systems.patch_ica.system import CHANNELS, PatchICA, count, dimension, rank
from hdica.systems.system import Clock, Dimension, OrderParameter, Symbol, System, in_words, work
from hdica.systems.trials import content_of

__all__ = ["SYSTEM", "PatchICA"]

PAPER = "Reduce and Conquer 2025"
PLACES = frozenset({"images", "width", "colour"})
"""Fields that choose random numbers: points that differ in others are shown the same patches."""
_AT, _OF = ("time",), ("component",)
_PIXELS = ("component", "row", "column", "channel")
_LESS = "mean of G over held-out patches less that of random directions of"
_STANDARD, _AS_IT_IS = "projections with variance 1", "projections as they are"
_FIT = "share of the norm of a {} that its nearest Gabor function leaves out"


def patches(system: PatchICA, seed: int) -> Patches:
    """Patches of a point."""
    others = frozenset(type(system).model_fields) - PLACES
    stream = streams_of(content_of(system, others), "patches", 0)(seed)
    return Patches(pictures(system.images, system.colour), system.width, stream)


def _check_width(system: PatchICA) -> None:
    """Refuse pictures that cannot be read or are smaller than a patch, before anything runs."""
    check_width(pictures(system.images, system.colour), system.width)


def pictured(system: PatchICA, filters: Array) -> Array:
    """Filters as pictures, shape (..., rows, columns, channels), of shape (..., D)."""
    shape = (system.width, system.width, CHANNELS[system.colour])
    return filters.reshape(*filters.shape[:-1], *shape)


def _held_out(
    system: PatchICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    source = patches(system, seed or 0)
    with trained(source, system) as data:
        values = judged(source, data, system)
    # After the last iteration nothing changes any more.
    at = np.minimum(steps_of(times, 1), int(values["iterations"]))
    values["filter"] = pictured(system, values["filter"])
    return PointResult(
        {o.name: values[o.name][at] if o.dims == _AT else values[o.name]
         for o in HELD_OUT.outputs_of(save)}
    )  # fmt: skip


def drawn_seconds(system: PatchICA, many: int) -> float:
    """To cut out patches, and to multiply D numbers of each with D others."""
    size = dimension(system)
    return 1e-2 + many * size * (4e-9 + 1e-10 * size) + 2e-10 * size**3


def _seconds(system: PatchICA, n: int | None, last: float) -> float:
    looks = min(system.iterations, 60)
    learnt = count(system) * rank(system) * looks * system.restarts * 2e-9
    judged_ones = system.test * looks * (dimension(system) * 2e-10 + 4e-8)
    return drawn_seconds(system, 2 * count(system) + system.test) + learnt + judged_ones


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
        engines=(*FINITE, "hdica.finite.fastica", "hdica.inputs", "hdica.systems.patch_ica"),
    ),
    outputs=Outputs(
        (
            Output("test_loss", _AT, f"{_LESS} the space of FastICA, {_STANDARD}"),
            Output("raw_loss", _AT, f"{_LESS} the space of FastICA, {_AS_IT_IS}"),
            Output("test_loss_ambient", _AT, f"{_LESS} all D dimensions, {_STANDARD}"),
            Output("raw_loss_ambient", _AT, f"{_LESS} all D dimensions, {_AS_IT_IS}"),
            Output("train_loss", _AT, "as test_loss, over the training patches"),
            Output("excess_kurtosis", _AT, "excess kurtosis of the projection of held-out patches"),
            Output("iterations", (), "iterations of the best start"),
            Output("converged", (), "1 if it converged, else 0"),
        ),
        extras=(Output("filter", ("row", "column", "channel"), "filter that is found"),),
    ),
    cost=Cost(
        seconds=_seconds,
        # Scores, projections of held-out patches, and the covariance.
        memory=lambda system, *_: (
            count(system) * rank(system)
            + system.test * (system.iterations + 2 * system.directions)
            + 3 * dimension(system) ** 2
        ),
    ),
    scope=Scope(refuses=refusal(_check_width), ignores=frozenset({"kept"}), n=Size.NONE),
    run=_held_out,
)


def _filter_bank(
    system: PatchICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    source, kept = patches(system, seed or 0), system.kept
    with trained(source, system) as data:
        values = bank(source, data, system)
        mean, variances = data.white.mean, data.white.variances
        total = sum(np.sum((block - mean) ** 2) for block in data.passes()) / count(system)
    values |= {"variance": variances / total, "principal": data.white.directions.T}
    images = {k: pictured(system, v) for k, v in values.items() if v.ndim == 2}
    with one_thread():
        fits = {name: residuals(images[name]) for name in images if name != "principal"}
    values |= images | {
        "gabor_residual": fits["filters"][0],
        "gabor_residual_random": fits["random_filters"][0],
        "feature_residual": fits["features"][0],
        "feature_residual_random": fits["random_features"][0],
        "frequency": fits["features"][1],
        "orientation": fits["features"][2],
    }
    out = {}
    for name in (output.name for output in FILTER_BANK.outputs_of(save)):
        value = values[name]
        # As many rows as filters are kept, NaN where there are fewer.
        out[name] = np.full((kept, *value.shape[1:]), np.nan) if value.ndim else value
        if value.ndim:
            out[name][: len(value)] = value[:kept]
    return PointResult(out)


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
    outputs=Outputs(
        (
            Output("score", _OF, "mean of G over training patches less that of a Gaussian"),
            Output("gabor_residual", _OF, _FIT.format("filter")),
            Output("gabor_residual_random", _OF, _FIT.format("random filter of the same space")),
            Output("feature_residual", _OF, _FIT.format("feature")),
            Output("feature_residual_random", _OF, _FIT.format("random feature of the same space")),
            Output("frequency", _OF, "frequency of a feature's Gabor function", "cycles per pixel"),
            Output("orientation", _OF, "direction of a feature's wave to that of rows", "radian"),
            Output("variance", _OF, "share of the patches' variance along a principal component"),
            Output("iterations", (), "iterations of all components together"),
            Output("converged", (), "1 if they converged, else 0"),
        ),
        extras=(
            Output("filters", _PIXELS, "filters of the patches"),
            Output("features", _PIXELS, "features: what each component adds to a patch"),
            Output("principal", _PIXELS, "principal components of patches, the largest first"),
        ),
        coords=lambda times: {},
    ),
    cost=Cost(
        seconds=_bank_seconds,
        memory=lambda system, *_: 2 * count(system) * rank(system) + 3 * dimension(system) ** 2,
    ),
    scope=replace(HELD_OUT.scope, ignores=frozenset({"restarts", "test", "directions"})),
    run=_filter_bank,
)
_TINY = {
    "images": {"bundled": ["china", "flower"]}, "width": 6, "test": 200, "directions": 5,
    "iterations": 30, "kept": 1,
}  # fmt: skip

SYSTEM = System(
    parameters=PatchICA,
    title="ICA of patches of natural images, in all pixels or in principal components",
    papers=(work("Reduce and Conquer 2025"),),
    order_parameters=(
        OrderParameter(
            "test_loss",
            "mean of G(w.y) over held-out patches less that along random directions",
            low=-math.inf,
            high=math.inf,
        ),
    ),
    clock=Clock("iteration t of FastICA", "iterations"),
    dimensions=(
        Dimension("component", "number of the component"),
        Dimension("row", "row of a patch"),
        Dimension("column", "column of a patch"),
        Dimension("channel", "red, green and blue, or grey"),
    ),
    symbols={
        "test_loss": Symbol(
            "held-out loss Δ<i>L</i>", r"held-out loss $\Delta L$", "held-out loss ΔL"
        ),
        "raw_loss": Symbol(
            "held-out loss Δ<i>L</i>, not standardised",
            r"held-out loss $\Delta L$, not standardised",
            "held-out loss ΔL, not standardised",
        ),
        "test_loss_ambient": Symbol(
            "held-out loss Δ<i>L</i>, less all of R<sup>D</sup>",
            r"held-out loss $\Delta L$, less all of $R^D$",
            "held-out loss ΔL, less all of Rᴰ",
        ),
        "raw_loss_ambient": Symbol(
            "held-out loss Δ<i>L</i>, less all of R<sup>D</sup>, not standardised",
            r"held-out loss $\Delta L$, less all of $R^D$, not standardised",
            "held-out loss ΔL, less all of Rᴰ, not standardised",
        ),
        **in_words(
            excess_kurtosis="excess kurtosis",
            held_out="FastICA",
            filter_bank="symmetric FastICA",
            ambient="all pixels",
            principal="principal components",
            logcosh="log cosh",
            gabor_residual="residual",
            feature_residual="residual",
        ),
        "d": Symbol("<i>d</i>", "$d$", "d"),
        "width": Symbol("width <i>w</i>", "width $w$", "width w"),
    },
    methods=(HELD_OUT, FILTER_BANK),
    analyses={"paths": {"simulation": Role.SIMULATION}},
    examples=(
        {**_TINY, "space": {"principal": 3}, "restarts": 2},
        {**_TINY, "width": 3, "contrast": "exp", "samples": 60},
        {**_TINY, "width": 2, "colour": "rgb", "space": {"principal": 2}, "kept": 3},
    ),
)
