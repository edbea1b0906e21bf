"""One direction found by FastICA in patches, judged on other patches iteration by iteration."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from hdica.finite.random.streams import Stream, streams_of
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.inputs.images import check_width, pictures
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
from hdica.systems.patch_ica.finite.judged import Plan, judged
from hdica.systems.patch_ica.finite.patches import Patches, Training, trained
from hdica.systems.patch_ica.system import (
    CHANNELS,
    PatchICA,
    contrast,
    count,
    dimension,
    rank,
)
from hdica.systems.trials import content_of

PAPER = "Reduce and Conquer 2025"
HOME = "hdica.systems.patch_ica"
ENGINES = (
    *FINITE, "hdica.finite.fastica", "hdica.finite.whitening", "hdica.inputs", HOME,
    f"{HOME}.finite",
)  # fmt: skip
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


def _fits(system: PatchICA) -> None:
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
    with training(system, source) as seen:
        found = judged(source, seen, plan, source.stream)
    # After the last iteration nothing changes any more.
    at = np.minimum(steps_of(times, 1), found.iterations)
    values = {
        "test_loss": found.test[at],
        "raw_loss": found.raw[at],
        "test_loss_ambient": found.test_ambient[at],
        "raw_loss_ambient": found.raw_ambient[at],
        "train_loss": found.train[at],
        "excess_kurtosis": found.kurtosis[at],
        "iterations": np.asarray(float(found.iterations)),
        "converged": np.asarray(float(found.converged)),
    }
    if FILTER.name in save.extra:
        values[FILTER.name] = pictured(system, found.filter)
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
    scope=Scope(refuses=refusal(_fits), ignores=frozenset({"kept"}), n=Size.NONE),
    run=_run,
)

METHODS = (HELD_OUT,)
