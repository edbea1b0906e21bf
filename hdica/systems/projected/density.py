"""Methods of every system whose limit is of the mean-field family: densities and particles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream
from hdica.finite.record import observe
from hdica.ingredients.formula import parse_functional
from hdica.ingredients.save import NOTHING, Save
from hdica.limits.bands.bias import Rule
from hdica.limits.mean_field.density.solve import DensityPath, enveloped, solve, start_refusal
from hdica.limits.mean_field.family import MeanField, Scaled, coefficient_error
from hdica.systems.fields import (
    F,
    Projected,
    averages,
    formula,
    prior,
    signal_varies,
    start,
    vector_refusal,
)
from hdica.systems.method import (
    AVERAGES,
    BANDS,
    COMMON,
    FINITE,
    MEAN_FIELD,
    NUMERICS,
    About,
    Cost,
    Densities,
    Guard,
    Limit,
    Outputs,
    Refuses,
    Role,
    Scope,
    Simulation,
    Size,
    always,
    home_of,
    untimed,
)
from hdica.systems.outputs import CONTROL as CONTROL_TEXT
from hdica.systems.outputs import Array, Output, PointResult, band_of, bias_of
from hdica.systems.projected.bands import band_values
from hdica.systems.projected.biased import bias_values
from hdica.systems.projected.controls import named
from hdica.systems.projected.density_values import is_convex, kept_values, laws, potentials
from hdica.systems.projected.simulation import KEEPS, OWN, TRAJECTORY
from hdica.systems.trials import seeded

FieldOf = Callable[[F], MeanField]
RuleOf = Callable[[F], Rule]
PathOf = Callable[[MeanField, F, Array, Save, float], DensityPath]
"""How a limit is solved, as :func:`path_of` does it."""
ENGINES = (*COMMON, NUMERICS, MEAN_FIELD, OWN)
CONTROL = 1.02
_SAFETY = 4.0
"""An error of g may matter more than one of b of the same share."""
_NODES = 2.0
"""Error of the nodes of a continuous prior over its difference to twice as many: 4/3 at a kink."""
EXACT, COARSE = 1e-7, 1e-5
"""Error of Q at which refinement ends, of the limit and of its negative control."""

PATH = (
    *TRAJECTORY,
    Output("Q_error", ("time",), "error of Q, from successive refinements"),
    Output("R_error", ("time",), "error of R, from successive refinements"),
    Output("Q_control", ("time",), f"overlap {CONTROL_TEXT}"),
    Output("R_control", ("time",), f"R {CONTROL_TEXT}"),
    Output("curvature", ("time",), "d_t = 2h, curvature of the effective potential"),
    Output("pull", ("time",), "b, coefficient of xi in the drift"),
    Output("convex", ("time",), "1 where the effective potential is convex"),
    Output("residual", ("time",), "largest departure of mass and of E[x^2] from 1"),
)


def path_of(
    field: MeanField,
    system: Projected,
    times: Array,
    save: Save = NOTHING,
    tolerance: float = EXACT,
) -> DensityPath:
    """The solved limit, with the densities and functionals that ``save`` asks for."""
    snapshots, means = save.snapshots, means_of(system, save)
    cuts = cuts_of(field, system, save)
    return solve(
        field, times, snapshots=snapshots, functionals=means, cuts=cuts, tolerance=tolerance
    )


def means_of(system: Projected, save: Save) -> dict[str, Callable[[Array, Array], Array]]:
    """The functionals that ``save`` asks for, by name."""
    return {
        name: parse_functional(text, system.constants).value
        for name, text in save.functionals.items()
    }


def cuts_of(field: MeanField, system: Projected, save: Save) -> dict[str, tuple[float, ...]]:
    """Where the functionals that ``save`` asks for, or their slopes, jump in x, by name."""
    xi = field.prior.nodes.points
    found = {
        name: parse_functional(text, system.constants).cuts(xi)
        for name, text in save.functionals.items()
    }
    return {name: cuts for name, cuts in found.items() if cuts}


def regular_grid(path: DensityPath, points: int = 800) -> Array:
    """About so many round numbers over where the densities of the snapshots matter."""
    ends = [density.support() for density in path.densities]
    ends = [end for end in ends if np.isfinite(end[0])] or [(-1.0, 1.0)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    least = (high - low) / points
    step = 10.0 ** np.floor(np.log10(least))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if m * step >= least)
    return np.round(step * np.arange(np.floor(low / step), np.ceil(high / step) + 1), 12)


def on_grid(save: Save, path: DensityPath) -> Save:
    """What a picture keeps: densities at the points asked for, else where they matter."""
    return save if save.x else replace(save, x=tuple(regular_grid(path).tolist()))


def wrong_by(field: MeanField, factor: float) -> MeanField:
    """The same limit with the pull b towards the feature wrong by a factor.

    A wrong rate of everything would only shift time, and no steady state would tell it.
    """
    pull = field.pull
    if isinstance(pull, Scaled):
        return replace(field, pull=pull.times(factor))
    return replace(field, pull=lambda q, tau: factor * pull(q, tau))


def pde_values(
    field: MeanField,
    system: F,
    times: Array,
    save: Save,
    path: DensityPath | None = None,
    solved: PathOf = path_of,
    beyond: RuleOf[F] | None = None,
) -> PointResult:
    """Everything that method ``pde`` gives for one point; ``path`` if it is solved already.

    ``solved`` is how, also for the negative control; ``beyond`` what bands and bias take of
    the rule.
    """
    path = path or solved(field, system, times, save, EXACT)
    # Only laws of the control are kept: where there is no use for one, none is solved for.
    plain = replace(save, snapshots=())
    used = save if save.x or save.thresholds else plain
    control = solved(wrong_by(field, CONTROL), system, times, used, COARSE)
    wrong = laws(field, control, used)
    q_off, r_off = carried(field, path, control, times)
    off = {}
    if field.prior.finer is not None:
        fine = solved(wrong_by(_finer(field), CONTROL), system, times, plain, COARSE)
        off = left_out(control, fine, times)
        q_off, r_off = q_off + off["Q"], r_off + off["R"]
    values = {
        "Q": path.q,
        "R": path.r,
        "Q_error": path.q_error + q_off,
        "R_error": path.r_error + r_off,
        "Q_control": control.q,
        "R_control": control.r,
        "curvature": path.curvature,
        "pull": path.pull,
        "convex": _convexity(field, path, times),
        "residual": np.maximum(path.mass_error, path.moment_error) + 0.0 * path.q,
        **kept_values(field, path, save),
        **{f"{k}_error": e + off.get(k, 0.0) for k, e in path.functional_errors.items()},
        **{
            f"{k}_control": wrong[k] for k in ("cdf", "tpr", "fpr", *save.functionals) if k in wrong
        },
    }
    if save.snapshots and save.x:
        values["potential"] = potentials(field, path, save, times)
    if beyond is not None and (save.bands or save.bias):
        rule, means = beyond(system), means_of(system, save)
        if save.bands:
            values |= band_values(field, rule.noise, means, times, save, values)
        if save.bias:
            values |= bias_values(field, rule, means, times, save)
    return PointResult(values, path.stopped)


def _finer(field: MeanField) -> MeanField:
    """The same with twice as many nodes of a continuous prior."""
    law = field.prior
    sides = (np.count_nonzero(law.nodes.points > 0), np.count_nonzero(law.nodes.points < 0))
    return replace(field, prior=law.with_nodes(2 * int(max(sides))))


def left_out(control: DensityPath, fine: DensityPath, times: Array) -> dict[str, Array]:
    """What the nodes of a continuous prior leave out of Q, R and the functionals, by name.

    Both limits are solved alike, ``fine`` with twice as many nodes, so that errors of cells and
    steps are the same in both.
    """
    pairs = {"Q": (control.q, fine.q), "R": (control.r, fine.r)}
    pairs |= {k: (control.functionals[k], fine.functionals[k]) for k in control.functionals}
    moved = np.stack([np.abs(one - other) for one, other in pairs.values()], axis=1)
    found = _NODES * enveloped(moved, times)
    return dict(zip(pairs, found.T, strict=True))


def carried(
    field: MeanField, path: DensityPath, control: DensityPath, times: Array
) -> tuple[Array, Array]:
    """What errors of the averages in b and g make of Q and R, each of shape (T,).

    The limit with b wrong by 2 % tells how much a wrong coefficient matters; an error of b is
    compared with that 2 %, one of g with 2 % of g. 0 where both are known to rounding.
    """
    share, worst = np.zeros(times.size), 0.0
    tops = [0.0, 0.0]
    for k in np.flatnonzero(np.isfinite(path.q)):
        q, tau = float(path.q[k]), float(field.schedule.value(np.array(times[k])))
        for i, one in enumerate((field.pull, field.diffusion)):
            off, size = coefficient_error(one, q, tau), abs(one(q, tau))
            tops[i] = max(tops[i], size)
            # Where b passes through zero its error is compared with what b is elsewhere.
            worst = max(worst, off / max(size, 1e-3 * tops[i], 1e-300))
        share[k] = _SAFETY * worst / (CONTROL - 1)
    moved = (np.abs(control.q - path.q), np.abs(control.r - path.r))
    return share * moved[0] + _SAFETY * worst * 1e-3, share * moved[1] + _SAFETY * worst * 1e-3


def pde_many(
    field_of: FieldOf[F],
    systems: Sequence[Any],
    times: Array,
    save: Save = NOTHING,
    threads: int = 1,
    guard: Guard = untimed,
    beyond: RuleOf[F] | None = None,
) -> list[PointResult | HdicaError]:
    """Method ``pde`` for many points: each has the bits that it has alone.

    ``threads`` are solved at once: the compiled march lets go of Python's lock. The error is in the
    place of a point that has no density: the others do not suffer for it. ``guard`` is what
    computes a point, maybe within a time.
    """

    def one(system: F) -> PointResult | HdicaError:
        try:
            return guard(
                system, lambda: pde_values(field_of(system), system, times, save, beyond=beyond)
            )
        except HdicaError as exc:
            return exc

    if threads == 1 or len(systems) < 2:
        return [one(system) for system in systems]
    with ThreadPoolExecutor(min(threads, len(systems))) as pool:
        return list(pool.map(one, systems))


def _convexity(field: MeanField, path: DensityPath, times: Array) -> Array:
    out = np.full(times.size, np.nan)
    for k in np.flatnonzero(np.isfinite(path.curvature)):
        tau = float(field.schedule.value(np.array(times[k])))
        out[k] = is_convex(field, tau, float(path.curvature[k]))
    return out


def pde(
    field_of: FieldOf[F],
    equations: str,
    without_limit: Refuses[F] = always,
    uses: tuple[str, ...] = (),
    beyond: RuleOf[F] | None = None,
) -> Limit[F]:
    """Method ``pde``: the density of the estimate as n -> infinity, and its bands."""

    def picture(system: F, times: Array, save: Save) -> tuple[Save, PointResult]:
        field = field_of(system)
        path = path_of(field, system, times, save)
        save = on_grid(save, path)
        return save, pde_values(field, system, times, save, path, beyond=beyond)

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        return pde_values(field_of(system), system, times, save, beyond=beyond)

    return Limit[F](
        name="pde",
        role=Role.LIMIT,
        rank=2,
        about=About(
            text="the density of the estimate as n → ∞ for any φ: conservative, positive, "
            "with its own error",
            accuracy="converged",
            equations=equations
            + "; Scharfetter-Gummel fluxes and SDIRK2, E[x^2] = 1 by a Lagrange multiplier, "
            "refined",
            engines=(
                *ENGINES,
                f"{MEAN_FIELD}.density",
                AVERAGES,
                BANDS,
                home_of(field_of),
                *uses,
            ),
        ),
        outputs=Outputs(
            PATH,
            bands=() if beyond is None else tuple(band_of(output) for output in TRAJECTORY),
            bias=() if beyond is None else tuple(bias_of(output) for output in TRAJECTORY),
            keeps=KEEPS
            | {"potential", "controls"}
            | (set() if beyond is None else {"bands", "bias"}),
        ),
        cost=Cost(seconds=lambda system, n, last: 0.06 + 0.001 * last, prepares=averages("drift")),
        scope=Scope(
            refuses=lambda one: without_limit(one) or start_refusal(start(one), prior(one))
        ),
        run=run,
        densities=Densities(many=partial(pde_many, field_of, beyond=beyond), picture=picture),
    )


def _unreached(field: MeanField, save: Save, times: Array) -> dict[str, Array]:
    """NaN for everything that is kept of particles, until it is seen."""
    groups = field.prior.group_values.size
    # One array each: they are written in place.
    found = {name: np.full(times.size, np.nan) for name in save.functionals}
    if save.snapshots and save.x:
        rows, columns = len(save.snapshots), len(save.x)
        found["density"] = np.full((rows, groups, columns), np.nan)
        found["cdf"] = np.full((rows, groups, columns + 1), np.nan)
        found |= {k: np.full(groups, np.nan) for k in ("xi", "weight")}
    if save.snapshots and save.thresholds:
        shape = (len(save.snapshots), len(save.thresholds))
        found |= {k: np.full(shape, np.nan) for k in ("tpr", "fpr", "misclassified")}
    return found


def _keeper(
    field: MeanField, save: Save, times: Array, kept: dict[str, Array]
) -> Callable[[Array, Array, int], None]:
    """A callback that writes what ``save`` asks of the particles into ``kept``."""

    def see(xi: Array, z: Array, index: int) -> None:
        seen = observe(xi, z, field.prior, field.phi, save)
        for name, value in seen.at_times().items():
            if name in save.functionals:
                kept[name][index] = value
        rows = np.flatnonzero(np.isclose(seen.snapshots, times[index], rtol=1e-12, atol=1e-12))
        if rows.size:
            kept.update(seen.once)
            for name, values in seen.at_snapshots().items():
                kept[name][rows[0]] = values

    return see


def _particle_seconds(system: Projected, n: int | None, last: float) -> float:
    """Steps of all particles, and what a step takes however few there are."""
    busy = signal_varies(system) or formula(system, "regularizer").slope_if_linear is None
    step, each = (0.012, 1.5e-6) if busy else (0.001, 2e-7)
    return 1e-3 + last * (step + each * (n or 1))


def particles(
    field_of: FieldOf[F],
    equations: str,
    without_limit: Refuses[F] = always,
    uses: tuple[str, ...] = (),
) -> Simulation[F]:
    """Method ``particles``: n particles that see each other through Q and R alone."""

    def runner(
        system: F, times: Array, n: int, stream: Stream, save: Save
    ) -> tuple[dict[str, Array], str]:
        from hdica.limits.mean_field.particles import run

        field = field_of(system)
        kept = _unreached(field, save, times)
        see = _keeper(field, save, times, kept) if save.anything else None
        values, diverged = named(run(field, times, n, stream, observe=see))
        return {**kept, **values}, diverged

    return Simulation[F](
        name="particles",
        role=Role.SIMULATION,
        about=About(
            text="the same limit by McKean–Vlasov particles, an independent check",
            accuracy="approximate",
            equations=equations,
            engines=(*FINITE, *ENGINES, f"{MEAN_FIELD}.particles", home_of(field_of), *uses),
        ),
        outputs=Outputs(TRAJECTORY, keeps=KEEPS),
        cost=Cost(
            seconds=_particle_seconds,
            prepares=averages("drift"),
            memory=lambda system, n: 2 * (n or 0),
        ),
        scope=Scope(
            refuses=lambda one: without_limit(one) or vector_refusal(one), n=Size.PARTICLES
        ),
        run=seeded("particles", runner),
    )
