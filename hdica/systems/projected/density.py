"""Methods of every system of the mean-field family: densities, solved in two ways."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_functional
from hdica.ingredients.save import NOTHING, Save
from hdica.limits.bands.bias import Rule
from hdica.limits.mean_field.density.solve import DensityPath, enveloped, solve
from hdica.limits.mean_field.density.state import start_refusal
from hdica.limits.mean_field.family import MeanField, Scaled, coefficient_error
from hdica.limits.mean_field.normal import solve as solve_normal
from hdica.systems import fields, method
from hdica.systems.fields import F
from hdica.systems.method import CONTROL as CONTROL_TEXT
from hdica.systems.method import Array, Output, PointResult, band_of, bias_of
from hdica.systems.projected import density_values
from hdica.systems.projected.simulation import KEEPS, TRAJECTORY, reached

FieldOf = Callable[[F], MeanField]
RuleOf = Callable[[F], Rule]
PathOf = Callable[[MeanField, F, Array, Save, float], DensityPath]
"""How a limit is solved, as :func:`path_of` does it."""
ENGINES = (method.NUMERICS, method.MEAN_FIELD)
_SOLVED = (*ENGINES, f"{method.MEAN_FIELD}.density", method.BANDS)
CONTROL = 1.02
_SAFETY = 4.0
"""An error of g may matter more than one of b of the same share."""
_NODES = 2.0
"""Error of the nodes of a continuous prior over its difference to twice as many: 4/3 at a kink."""
EXACT, COARSE = 1e-7, 1e-5
"""Error of Q at which refinement ends, of the limit and of its negative control."""

SQUARES = (
    Output("P", ("time",), "P = |x|^2/n"),
    Output("P_error", ("time",), "error of P, from successive refinements"),
    Output("P_control", ("time",), f"P {CONTROL_TEXT}"),
    Output("cosine", ("time",), "cosine of the angle between estimate and feature"),
)
"""What there is besides of a rule that may leave the norm free."""
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
    system: fields.Projected,
    times: Array,
    save: Save = NOTHING,
    tolerance: float = EXACT,
) -> DensityPath:
    """The solved limit, with the densities and functionals that ``save`` asks for."""
    means, cuts, xi = {}, {}, field.prior.nodes.points
    for name, text in save.functionals.items():
        functional = parse_functional(text, system.constants)
        means[name], cuts[name] = functional.value, functional.cuts(xi)
    return solve(
        field,
        times,
        snapshots=save.snapshots,
        functionals=means,
        cuts={name: places for name, places in cuts.items() if places},
        tolerance=tolerance,
    )


def means_of(system: fields.Projected, save: Save) -> dict[str, Callable[[Array, Array], Array]]:
    """The functionals that ``save`` asks for, by name."""
    return {
        name: parse_functional(text, system.constants).value
        for name, text in save.functionals.items()
    }


def on_grid(save: Save, path: DensityPath, points: int = 800) -> Save:
    """What a picture keeps: densities at the points of the study, else at round numbers.

    Of these there are about so many over where the densities of the snapshots matter.
    """
    if save.x:
        return save
    ends = [density.support() for density in path.densities]
    ends = [end for end in ends if np.isfinite(end[0])] or [(-1.0, 1.0)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    least = (high - low) / points
    step = 10.0 ** np.floor(np.log10(least))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if m * step >= least)
    x = np.round(step * np.arange(np.floor(low / step), np.ceil(high / step) + 1), 12)
    return replace(save, x=tuple(x.tolist()))


def wrong_by(field: MeanField, factor: float) -> MeanField:
    """The same limit with the pull b towards the feature wrong by a factor.

    A wrong rate of everything would only shift time, and no steady state would tell it.
    """
    pull = field.pull
    if field.planes is not None:
        return replace(field, planes=field.planes.wrong_by(factor))
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
    squares: bool = False,
) -> PointResult:
    """Everything that method ``pde`` gives for one point; ``path`` if it is solved already.

    ``solved`` is how, also for the negative control; ``beyond`` what bands and bias take of
    the rule; ``squares`` says whether P is part of it.
    """
    path = path or solved(field, system, times, save, EXACT)
    # Only laws of the control are kept: where there is no use for one, none is solved for.
    plain = replace(save, snapshots=())
    used = save if save.x or save.thresholds else plain
    control = solved(wrong_by(field, CONTROL), system, times, used, COARSE)
    wrong = density_values.laws(field, control, used)
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
        **density_values.saved_values(field, path, save),
        **{f"{k}_error": e + off.get(k, 0.0) for k, e in path.functional_errors.items()},
        **{
            f"{k}_control": wrong[k] for k in ("cdf", "tpr", "fpr", *save.functionals) if k in wrong
        },
    }
    if squares:
        share = np.abs(control.square - path.square) * _share(field)
        values |= {"P": path.square, "P_error": path.square_error + share}
        values |= {"P_control": control.square, "cosine": path.q / np.sqrt(path.square)}
    if save.snapshots and save.x:
        values["potential"] = density_values.potentials(field, path, save, times)
    if beyond is not None and (save.bands or save.bias):
        rule, means = beyond(system), means_of(system, save)
        if save.bands:
            values |= density_values.band_values(field, rule.noise, means, times, save, values)
        if save.bias:
            fields.check_bias(system)
            values |= density_values.bias_values(field, rule, means, times, save)
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
    return dict(zip(pairs, (_NODES * enveloped(moved, times)).T, strict=True))


def carried(
    field: MeanField, path: DensityPath, control: DensityPath, times: Array
) -> tuple[Array, Array]:
    """What errors of the averages in b and g make of Q and R, each of shape (T,).

    The limit with b wrong by 2 % tells how much a wrong coefficient matters; an error of b is
    compared with that 2 %, one of g with 2 % of g. 0 where both are known to rounding.
    """
    share, worst = np.zeros(times.size), 0.0
    tops = [0.0, 0.0]
    if field.planes is not None:
        worst = field.planes.error
        share += _share(field)
    for k in np.flatnonzero(np.isfinite(path.q) & (field.planes is None)):
        q, tau = float(path.q[k]), float(field.schedule.value(np.array(times[k])))
        for i, one in enumerate((field.pull, field.diffusion)):
            off, size = coefficient_error(one, q, tau), abs(one(q, tau))
            tops[i] = max(tops[i], size)
            # Where b passes through zero its error is compared with what b is elsewhere.
            worst = max(worst, off / max(size, 1e-3 * tops[i], 1e-300))
        share[k] = _SAFETY * worst / (CONTROL - 1)
    moved = (np.abs(control.q - path.q), np.abs(control.r - path.r))
    return share * moved[0] + _SAFETY * worst * 1e-3, share * moved[1] + _SAFETY * worst * 1e-3


def _share(field: MeanField) -> float:
    """The error of functions of Q and P over that of the negative control."""
    return 0.0 if field.planes is None else _SAFETY * field.planes.error / (CONTROL - 1)


def pde_many(
    field_of: FieldOf[F],
    systems: Sequence[F],
    times: Array,
    save: Save = NOTHING,
    threads: int = 1,
    guard: method.Guard = method.untimed,
    beyond: RuleOf[F] | None = None,
    squares: bool = False,
) -> list[PointResult | HdicaError]:
    """Method ``pde`` for many points: each has the bits that it has alone.

    ``threads`` are solved at once: the compiled march lets go of Python's lock. The error is in the
    place of a point that has no density: the others do not suffer for it. ``guard`` is what
    computes a point, maybe within a time.
    """

    def one(system: F) -> PointResult | HdicaError:
        def values() -> PointResult:
            field = field_of(system)
            return pde_values(field, system, times, save, beyond=beyond, squares=squares)

        try:
            return guard(system, values)
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
        out[k] = density_values.is_convex(field, tau, float(path.curvature[k]))
    return out


def _picture(
    field_of: FieldOf[F], solved: PathOf, beyond: RuleOf[F] | None = None, squares: bool = False
) -> Callable[[F, Array, Save], tuple[Save, PointResult]]:
    """What a picture keeps, and the point: the grid follows from the densities."""

    def picture(system: F, times: Array, save: Save) -> tuple[Save, PointResult]:
        field = field_of(system)
        path = solved(field, system, times, save, EXACT)
        save = on_grid(save, path)
        return save, pde_values(field, system, times, save, path, solved, beyond, squares)

    return picture


def pde(
    field_of: FieldOf[F],
    equations: str,
    without_limit: method.Refuses[F] = method.always,
    uses: tuple[str, ...] = (),
    beyond: RuleOf[F] | None = None,
    squares: bool = False,
    prepares: Callable[[F], Mapping[Hashable, float]] | None = None,
) -> method.Limit[F]:
    """Method ``pde``: the density of the estimate as n -> infinity, and its bands."""
    more = frozenset[str]() if beyond is None else frozenset({"bands", "bias"})
    return method.Limit[F](
        name="pde",
        role=method.Role.LIMIT,
        rank=2,
        about=method.About(
            text="the density of the estimate as n → ∞ for any φ: conservative, positive, "
            "with its own error",
            accuracy="converged",
            equations=equations
            + "; Scharfetter-Gummel fluxes and SDIRK2, E[x^2] = 1 by a Lagrange multiplier, "
            "refined",
            engines=reached(field_of, uses, *_SOLVED, method.AVERAGES),
        ),
        outputs=method.Outputs(
            (*PATH, *SQUARES) if squares else PATH,
            bands=tuple(map(band_of, TRAJECTORY)) if more else (),
            bias=tuple(map(bias_of, TRAJECTORY)) if more else (),
            keeps=KEEPS | {"potential", "controls"} | more,
        ),
        cost=method.Cost(
            seconds=lambda system, n, last: 0.06 + 0.001 * last,
            prepares=prepares or fields.averages("drift"),
        ),
        scope=method.Scope(
            refuses=lambda one: (
                without_limit(one) or start_refusal(fields.start(one), fields.prior(one))
            )
        ),
        run=lambda system, times, n, seed, save: pde_values(
            field_of(system), system, times, save, beyond=beyond, squares=squares
        ),
        densities=method.Densities(
            many=partial(pde_many, field_of, beyond=beyond, squares=squares),
            picture=_picture(field_of, path_of, beyond, squares),
        ),
    )


def _path_of(
    field: MeanField, system: fields.Projected, times: Array, save: Save, tolerance: float
) -> DensityPath:
    """The solved limit; its cost leaves no use for a larger tolerance than its own."""
    return solve_normal(field, times, snapshots=save.snapshots, functionals=means_of(system, save))


def ornstein_uhlenbeck(
    field_of: FieldOf[F], refuses: Callable[[F], str], equations: str, uses: tuple[str, ...] = ()
) -> method.Limit[F]:
    """Method ``ornstein_uhlenbeck``: what ``pde`` gives, by the moments of a normal law.

    ``refuses`` says why phi is not linear; where the feature moves, it is a
    mixture and not normal. By its name alone: ``auto`` takes ``pde`` for densities.
    """
    return method.Limit[F](
        name="ornstein_uhlenbeck",
        role=method.Role.LIMIT,
        about=method.About(
            text="the density as n → ∞ where it is normal given ξ, by its mean and variance: what "
            "`pde` is compared with (φ = 0 or βx)",
            accuracy="converged",
            equations=equations
            + ": x | xi = A x_0 + B xi + sqrt(V) N with A' = -d A, B' = -d B + b, V' = -2 d V + "
            "2 g, d = g + b Q; Dormand-Prince 8(5,3), tolerance 1e-12",
            engines=reached(field_of, uses, *_SOLVED, f"{method.MEAN_FIELD}.normal"),
        ),
        outputs=method.Outputs(PATH, keeps=KEEPS | {"potential", "controls"}),
        cost=method.Cost(
            seconds=lambda system, n, last: 0.01 * last if fields.signal_varies(system) else 0.02,
            prepares=fields.averages("drift"),
        ),
        scope=method.Scope(
            refuses=lambda system: (
                refuses(system) or fields.resting_refusal(system, "a normal density")
            )
        ),
        run=lambda system, times, n, seed, save: pde_values(
            field_of(system), system, times, save, solved=_path_of
        ),
        densities=method.Densities(picture=_picture(field_of, _path_of)),
    )
