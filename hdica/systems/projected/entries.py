"""Method ``entries``: what every entry of the estimate does as n -> infinity, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream, digest, normal_numbers
from hdica.finite.record import Observation, Track, Values, observe, steps_of
from hdica.ingredients.priors import Prior
from hdica.ingredients.save import Save
from hdica.limits.mean_field.density.solve import start_refusal
from hdica.limits.mean_field.family import MeanField
from hdica.systems.fields import F, averages, formula, prior, resting_refusal, start, vector_refusal
from hdica.systems.method import (
    FINITE,
    MEAN_FIELD,
    About,
    Cost,
    Outputs,
    Refuses,
    Role,
    Scope,
    Simulation,
    always,
    home_of,
    over_time,
)
from hdica.systems.outputs import Array, Output
from hdica.systems.projected.controls import FOLLOWED, GROUP, named
from hdica.systems.projected.density import ENGINES, FieldOf
from hdica.systems.projected.simulation import KEEPS, OWN, TRAJECTORY
from hdica.systems.trials import content_of, seeded

if TYPE_CHECKING:
    from hdica.limits.mean_field.entries import Coefficients, Order

WALKERS = 5
"""Entries that are followed in each group of the feature."""
PATH = Output(
    "path", ("time", GROUP.name, FOLLOWED.name), "entry of the estimate, followed from t = 0"
)


@dataclass(frozen=True)
class _Limit:
    """A system whose limit is solved until a time: equal where the content is."""

    content: bytes
    last: float
    system: Any = field(compare=False)


def _followed(law: Prior, xi: Array) -> NDArray[np.int64]:
    """Index of the first entries of every group, shape (groups, walkers); -1 where too few."""
    labels, groups = law.classify(xi), law.group_values.size
    found = np.full((groups, WALKERS), -1)
    for group in range(groups):
        members = np.flatnonzero(labels == group)[:WALKERS]
        found[group, : members.size] = members
    return found


def _seen(limit: MeanField, xi: Array, z: Array, save: Save) -> Observation:
    """What is read off the entries, with single ones if they are asked for."""
    seen = observe(xi, z, limit.prior, limit.phi, save)
    places = _followed(limit.prior, xi) if PATH.name in save.extra else None

    def at_times() -> dict[str, Any]:
        found = {k: value for k, value in seen.at_times().items() if k != "largest"}
        single = {} if places is None else {PATH.name: np.where(places < 0, np.nan, z[places])}
        return found | single

    return replace(seen, at_times=at_times)


def run(coefficients: Coefficients, times: Array, stream: Stream, save: Save) -> Values:
    """Uncoupled entries that move with Q and R of the limit, observed at the times.

    Their number is n, as is that of their steps a unit of time. Returned are what is seen by name,
    NaN from where it is not known, and why, or nothing.
    """
    from hdica.limits.mean_field.entries import Walk, first_entries

    limit, order, n = coefficients.field, coefficients.order, coefficients.n
    begin = stream("start")
    xi = limit.prior.feature(begin, n)
    z = first_entries(limit, xi, begin)
    walk = Walk(coefficients, xi, z, normal_numbers(stream("noise")))
    track = Track(
        _seen(limit, xi, z, save), None, limit.schedule, lambda: order.stopped or "not finite"
    )
    track.open(times)
    done = 0
    for index, target in enumerate(steps_of(times, n).tolist()):
        made = walk.advance(done, target)
        if made < target - done or not np.all(np.isfinite(z)):
            track.stop(done + made, n)
            break
        done = target
        track.see(index)
    return track.recorded, track.diverged


def _refusal(without_limit: Refuses[F], system: F) -> str:
    """Empty if entries can move with Q and R of the limit, else the sentence that says why not."""
    found = without_limit(system) or vector_refusal(system)
    found = found or resting_refusal(system, "method 'entries'")
    if found or formula(system, "regularizer").slope_if_linear is not None:
        return found
    return start_refusal(start(system), prior(system))


def entries(
    field_of: FieldOf[F],
    equations: str,
    without_limit: Refuses[F] = always,
    uses: tuple[str, ...] = (),
) -> Simulation[F]:
    """Method ``entries``: n uncoupled entries, each a diffusion in its own potential.

    ``auto`` never takes it: the entries move with Q and R of the limit, and what their own are at
    finite n is no simulation of the rule.
    """

    @lru_cache(maxsize=8)
    def solved(limit: _Limit) -> tuple[MeanField, Order]:
        """Points that differ in n and their seeds alone share one solved limit."""
        from hdica.limits.mean_field.entries import order_of

        field = field_of(limit.system)
        return field, order_of(field, limit.last)

    @lru_cache(maxsize=8)
    def coefficients(limit: _Limit, n: int) -> Coefficients:
        from hdica.limits.mean_field.entries import Coefficients

        return Coefficients(*solved(limit), n)

    def runner(system: F, times: Array, n: int, stream: Stream, save: Save) -> Values:
        limit = _Limit(digest(content_of(system)), max(float(times[-1]), 1 / n), system)
        return named(run(coefficients(limit, n), times, stream, save))

    return Simulation[F](
        name="entries",
        role=Role.SIMULATION,
        about=About(
            text="n uncoupled entries, each diffusing in the effective potential of the limit",
            accuracy="approximate",
            equations=equations + "; steps of 1/n by Euler's method, Q and R from the limit",
            engines=(
                *FINITE,
                *ENGINES,
                *(f"{MEAN_FIELD}.{one}" for one in ("density", "normal", "entries")),
                OWN,
                home_of(field_of),
                *uses,
            ),
        ),
        outputs=Outputs(
            TRAJECTORY,
            extras=(PATH,),
            keeps=KEEPS | {"estimate"},
            coords=lambda times: {**over_time(times), FOLLOWED.name: np.arange(WALKERS)},
        ),
        cost=Cost(
            seconds=lambda system, n, last: 0.02 + (2e-6 + 1.5e-9 * (n or 1)) * last * (n or 1),
            prepares=averages("drift"),
            memory=lambda system, n: 2 * (n or 0),
        ),
        scope=Scope(refuses=lambda one: _refusal(without_limit, one)),
        run=seeded("entries", runner),
    )
