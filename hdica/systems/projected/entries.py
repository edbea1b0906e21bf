"""Method ``entries``: what every entry of the estimate does as n -> infinity, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream, digest, normal_numbers
from hdica.finite.record import Observation, Track, Values, observe, steps_of
from hdica.ingredients.priors import Prior
from hdica.ingredients.save import Save
from hdica.limits.mean_field.density.state import start_refusal
from hdica.limits.mean_field.family import MeanField
from hdica.systems import fields, method
from hdica.systems.fields import F
from hdica.systems.method import Array, Output
from hdica.systems.projected.density import ENGINES, FieldOf
from hdica.systems.projected.density_values import RATES
from hdica.systems.projected.family import FOLLOWED, GROUP, named
from hdica.systems.projected.simulation import KEEPS, TRAJECTORY, reached
from hdica.systems.trials import content_of, seeded

if TYPE_CHECKING:
    from hdica.limits.mean_field.entries import Coefficients, Order

_SOLVED = tuple(f"{method.MEAN_FIELD}.{room}" for room in ("density", "normal", "entries"))
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
    places = np.full((groups, WALKERS), -1)
    for group in range(groups):
        members = np.flatnonzero(labels == group)[:WALKERS]
        places[group, : members.size] = members
    return places


def _seen(limit: MeanField, xi: Array, z: Array, save: Save) -> Observation:
    """What is read off the entries, with single ones if they are asked for."""
    seen = observe(xi, z, limit.prior, limit.phi, save)
    places = _followed(limit.prior, xi) if PATH.name in save.extra else None

    def at_times() -> dict[str, float | Array]:
        values = {k: value for k, value in seen.at_times().items() if k != "largest"}
        if places is not None:
            values[PATH.name] = np.where(places < 0, np.nan, z[places])
        return values

    return replace(seen, at_times=at_times)


def walked(coefficients: Coefficients, times: Array, stream: Stream, save: Save) -> Values:
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


def _refusal(without_limit: method.Refuses[F], system: F) -> str:
    """Empty if entries can move with Q and R of the limit, else the sentence that says why not."""
    why = without_limit(system) or fields.vector_refusal(system)
    why = why or fields.resting_refusal(system, "method 'entries'")
    if why or fields.formula(system, "regularizer").slope_if_linear is not None:
        return why
    return start_refusal(fields.start(system), fields.prior(system))


def entries(
    field_of: FieldOf[F],
    equations: str,
    without_limit: method.Refuses[F] = method.always,
    uses: tuple[str, ...] = (),
) -> method.Simulation[F]:
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
        return named(walked(coefficients(limit, n), times, stream, save))

    return method.Simulation[F](
        name="entries",
        role=method.Role.SIMULATION,
        about=method.About(
            text="n uncoupled entries, each diffusing in the effective potential of the limit",
            accuracy="approximate",
            equations=equations + "; steps of 1/n by Euler's method, Q and R from the limit",
            engines=reached(field_of, uses, *method.FINITE, *ENGINES, *_SOLVED),
        ),
        outputs=method.Outputs(
            TRAJECTORY,
            extras=(PATH,),
            keeps=KEEPS | {"estimate"},
            coords=lambda times: {**method.over_time(times), FOLLOWED.name: np.arange(WALKERS)},
        ),
        cost=method.Cost(
            seconds=lambda system, n, last: 0.02 + (2e-6 + 1.5e-9 * (n or 1)) * last * (n or 1),
            prepares=fields.averages("drift"),
            memory=lambda system, n, last: 2 * (n or 0),
        ),
        scope=method.Scope(refuses=lambda one: _refusal(without_limit, one)),
        run=seeded("entries", runner),
    )


def _unreached(field: MeanField, save: Save, times: Array) -> dict[str, Array]:
    """NaN for everything that is kept of particles, until it is seen."""
    groups, rows = field.prior.group_values.size, len(save.snapshots)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(save.functionals, (times.size,))
    if rows and save.x:
        shapes |= {"density": (rows, groups, len(save.x)), "cdf": (rows, groups, len(save.x) + 1)}
        shapes |= {"xi": (groups,), "weight": (groups,)}
    if rows and save.thresholds:
        shapes |= dict.fromkeys(RATES, (rows, len(save.thresholds)))
    return {name: np.full(shape, np.nan) for name, shape in shapes.items()}


def _keeper(
    field: MeanField, save: Save, times: Array, values: dict[str, Array]
) -> Callable[[Array, Array, int], None]:
    """A callback that writes what ``save`` asks of the particles into values."""

    def see(xi: Array, z: Array, index: int) -> None:
        seen = observe(xi, z, field.prior, field.phi, save)
        for name, value in seen.at_times().items():
            if name in save.functionals:
                values[name][index] = value
        rows = np.flatnonzero(np.isclose(seen.snapshots, times[index], rtol=1e-12, atol=1e-12))
        if rows.size:
            values.update(seen.once)
            for name, array in seen.at_snapshots().items():
                values[name][rows[0]] = array

    return see


def _particle_seconds(system: fields.Projected, n: int | None, last: float) -> float:
    """Steps of all particles, and what a step takes however few there are."""
    curved = fields.formula(system, "regularizer").slope_if_linear is None
    busy = curved or fields.signal_varies(system)
    moving = 3e-4 if fields.schedule(system).constant is not None else 2.5e-3
    step, each = (0.012, 1.5e-6) if busy else (moving, 4e-8)
    return 1e-3 + last * (step + each * (n or 1))


def particles(
    field_of: FieldOf[F],
    equations: str,
    without_limit: method.Refuses[F] = method.always,
    uses: tuple[str, ...] = (),
) -> method.Simulation[F]:
    """Method ``particles``: n particles that see each other through Q and R alone."""

    def runner(
        system: F, times: Array, n: int, stream: Stream, save: Save
    ) -> tuple[dict[str, Array], str]:
        from hdica.limits.mean_field.particles import run

        field = field_of(system)
        recorded = _unreached(field, save, times)
        see = _keeper(field, save, times, recorded) if save.anything else None
        values, diverged = named(run(field, times, n, stream, observe=see))
        return {**recorded, **values}, diverged

    return method.Simulation[F](
        name="particles",
        role=method.Role.SIMULATION,
        about=method.About(
            text="the same limit by McKean–Vlasov particles, an independent check",
            accuracy="approximate",
            equations=equations,
            engines=reached(
                field_of, uses, *method.FINITE, *ENGINES, f"{method.MEAN_FIELD}.particles"
            ),
        ),
        outputs=method.Outputs(TRAJECTORY, keeps=KEEPS),
        cost=method.Cost(
            seconds=_particle_seconds,
            prepares=fields.averages("drift"),
            memory=lambda system, n, last: 2 * (n or 0),
        ),
        scope=method.Scope(
            refuses=lambda one: without_limit(one) or fields.vector_refusal(one),
            n=method.Size.PARTICLES,
        ),
        run=seeded("particles", runner),
    )
