"""The limit of small steps, dv_k/dx = v_k^3 - v_k sum_i v_i^4, x = beta sum eta, and its landscape.

With p_k = v_k(0)^2, of which p_m is the largest, r_k = p_k/p_m and g_k = 1 - r_k,

    v_k^2 ~ r_k / (1 + E g_k),    x = 1/2 sum_k ln(1 + E r_k / (1 + E g_k)),    E = e^L - 1 >= 0.

No term changes its sign and nothing is subtracted but g_k, from the factors of p_m - p_k, so that
components that are tiny, tied or nearly so keep their relative accuracy. x(L) is increasing and
concave, and Newton's method from below converges without a safeguard.

The landscape is -sum_i v_i^4 on the sphere, since E (u.X)^4 = 3 + (mu4 - 3) sum_i v_i^4 with
v = A' u: the rule descends -sign(mu4 - 3) E y^4 = -3 sign - beta sum_i v_i^4, whatever the source.
Critical points have |v_i| = 1/sqrt k on k axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hdica.ingredients.schedules import Schedule
from hdica.process.progress import check_deadline
from hdica.systems import method
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.tensorial_ica import system as model
from hdica.systems.tensorial_ica.system import AT_LIMIT, HOME, PAPER, TAN2, TensorialICA, V

_EPS = float(np.finfo(float).eps)
_MOST_ITERATIONS = 500
_FOREVER, _ROUNDING = 1e300, 16 * _EPS
_BLOCK, _DIRECT = 1 << 18, 1 << 22


@dataclass(frozen=True, eq=False)
class Transient:
    """The solution v, shape (T, d), and the largest error of its entries, shape (T,)."""

    v: Array
    error: Array


def drift(v: Array) -> Array:
    """dv_k/dx = v_k^3 - v_k sum_i v_i^4, the components along the last axis."""
    return v**3 - v * np.sum(v**4, axis=-1, keepdims=True)


def tan2_of(v: Array) -> Array:
    """Squared tangent of the angle to the nearest axis: the other squares over the largest."""
    p = np.sort(v**2, axis=-1)
    return np.sum(p[..., :-1], axis=-1) / p[..., -1]


def _ratios(v: Array) -> tuple[Array, Array]:
    """R = p/p_m and g = 1 - r along the last axis, g from differences of |v|."""
    size = np.abs(v)
    most = size.max(axis=-1, keepdims=True)
    part = size / most
    return part * part, (most - size) / most * (1.0 + part)


def _thinned(r: Array, g: Array, scale: Array) -> Array:
    """r/(1 + E g) at E = e^scale - 1, of every shape that broadcasts, E = inf included."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = r / (1.0 + np.expm1(scale) * g)
        far = r * np.exp(-np.maximum(scale, 700.0) - np.log(g))
    return np.where(g == 0.0, r, np.where(scale < 700.0, near, far))


def _elapsed_at(r: Array, g: Array, scale: Array) -> Array:
    """The x at L = scale, summed over the last axis."""
    with np.errstate(over="ignore", divide="ignore"):
        inverse = 1.0 / np.expm1(scale)
        terms = np.where(g == 0.0, scale, np.log1p(r / (inverse + np.where(g == 0.0, 1.0, g))))
    return np.sum(terms, axis=-1) / 2


def _scale_at(r: Array, g: Array, elapsed: Array) -> tuple[Array, Array]:
    """L with x(L) = elapsed, shape (T,), and the residual of x there."""
    # The slope of x(L) falls from sum(r)/2 to half the number of largest components.
    scale = 2.0 * elapsed / r.sum()
    most = 2.0 * elapsed / np.count_nonzero(g == 0.0)
    left = np.arange(elapsed.size)
    for _ in range(_MOST_ITERATIONS):
        now = scale[left, None]
        miss = elapsed[left] - _elapsed_at(r, g, now)
        step = 2.0 * miss / _thinned(r, g, now).sum(axis=1)
        scale[left] = np.minimum(scale[left] + step, most[left])
        # What is missed by less is rounding of the sum.
        left = left[miss > _ROUNDING * elapsed[left]]
        if not left.size:
            break
    return scale, np.abs(elapsed - _elapsed_at(r, g, scale[:, None]))


def solve(v0: Array, elapsed: Array) -> Transient:
    """The path from ``v0``, shape (d,), at x = ``elapsed`` >= 0 (inf included), shape (T,).

    Components that are equal stay so. The error is what the root of x(L) = elapsed is missed by,
    times the drift there, and rounding.
    """
    v, x = v0 / np.linalg.norm(v0), np.minimum(elapsed, _FOREVER)
    r, g = _ratios(v)
    scale, miss = _scale_at(r, g, x)
    size = np.abs(v) * np.sqrt(_thinned(np.ones_like(g), g, scale[:, None]))
    path = np.copysign(size / np.linalg.norm(size, axis=1, keepdims=True), v)
    moved = np.abs(drift(path)).max(axis=1) * (miss + 4 * _EPS * x)
    return Transient(path, moved + 8 * _EPS)


def time_to(v0: Array, tan2: float) -> Array:
    """The x at which tan^2 first is ``tan2`` > 0: 0 if it is no larger, inf if it never is.

    Starts v0 lie along the last axis, shape (..., d), of any norm but zero; the result is (...).
    q(E) = sum over the components that are not the largest of r/(1 + E g): its inverse is concave
    in E, a parallel sum of lines, so that Newton's method from E = 0 converges from below.
    """
    rows = v0.reshape(-1, v0.shape[-1])
    block = max(1, 500_000 // rows.shape[1])
    parts = [_times(rows[i : i + block], tan2) for i in range(0, rows.shape[0], block)]
    return np.concatenate([np.empty(0), *parts]).reshape(v0.shape[:-1])


def _times(v: Array, tan2: float) -> Array:
    """:func:`time_to` of a block of starts, shape (rows, d)."""
    r, g = _ratios(v)
    others = np.count_nonzero(g == 0.0, axis=1) - 1
    goal = tan2 - others
    now = np.sum(np.where(g == 0.0, 0.0, r), axis=1)
    out = np.where(now <= goal, 0.0, np.inf)
    open_ = np.flatnonzero((now > goal) & (goal > 0))
    if open_.size:
        r, g = r[open_], g[open_]
        grown = growth_to(r, g, goal[open_])
        out[open_] = _elapsed_at(r, g, np.log1p(grown)[:, None])
    return out


def growth_to(r: Array, g: Array, goal: Array) -> Array:
    """E with sum of r/(1 + E g) over g > 0 equal to a goal, rows of r and g, shape (rows,)."""
    out, left = np.zeros(goal.size), np.arange(goal.size)
    r = np.where(g == 0.0, 0.0, r)
    for _ in range(_MOST_ITERATIONS):
        check_deadline()
        slope = 1.0 / (1.0 + out[left, None] * g)
        thin = r * slope
        q = thin.sum(axis=1)
        # The slope of q times E, of which nothing underflows where E is huge.
        unit = np.where(out[left] > 0.0, out[left], 1.0)
        fall = np.sum(thin * (g * slope * unit[:, None]), axis=1)
        miss = q / goal[left] - 1.0
        step = miss * (q / fall) * unit
        out[left] = np.maximum(out[left] + step, 0.0)
        going = miss > _ROUNDING
        left, r, g = left[going], r[going], g[going]
        if not left.size:
            break
    return out


def elapsed(schedule: Schedule, beta: float, times: Array) -> Array:
    """Elapsed x, beta times the sum of the step sizes eta(k) of the steps before t, shape (T,).

    The rule makes that sum, and not the integral over t; between two steps it goes on evenly.
    """
    whole = steps_sum(schedule, times)
    begun = (times - np.floor(times)) * schedule.value(np.floor(times))
    return beta * (whole + begun)


def steps_sum(schedule: Schedule, times: Array, power: int = 1) -> Array:
    """Sum of eta(k)^power over k < floor(t), shape (T,): exact, or to 1e-10 in long smooth runs."""
    steps = np.floor(times)
    if schedule.constant is not None:
        return schedule.constant**power * steps
    breaks = [math.ceil(b) for b in schedule.breaks]
    marks = np.unique([0.0, *steps, *(b for b in breaks if 0 < b < steps.max(initial=0.0))])
    pieces = [_piece(schedule, int(a), int(b), power) for a, b in pairwise(marks)]
    totals = np.concatenate([[0.0], np.cumsum(pieces)])
    return totals[np.searchsorted(marks, steps)]


def _direct(schedule: Schedule, first: int, last: int, power: int) -> float:
    """Sum over first <= k < last, term by term."""
    blocks = range(first, last, _BLOCK)
    return math.fsum(
        np.sum(schedule.value(np.arange(k, min(k + _BLOCK, last), dtype=float)) ** power)
        for k in blocks
    )


def _piece(schedule: Schedule, first: int, last: int, power: int) -> float:
    """Sum over first <= k < last, between which the schedule is smooth.

    A long one by Euler and Maclaurin after some terms, unless quadrature says that the schedule is
    not smooth from step to step.
    """
    if last - first <= _DIRECT:
        return _direct(schedule, first, last, power)
    from scipy.integrate import quad

    def eta(k: float) -> float:
        return float(schedule.value(np.array([k]))[0]) ** power

    low, high = float(first + _BLOCK), float(last - 1)
    edges = np.geomspace(low, high, 2 + int(math.log2(high / low)))
    parts = [
        quad(eta, a, b, epsrel=1e-12, epsabs=0.0, limit=200, full_output=1)[:2]
        for a, b in pairwise(edges)
    ]
    middle = math.fsum(value for value, _ in parts)
    if not math.fsum(error for _, error in parts) <= 1e-10 * middle:
        return _direct(schedule, first, last, power)
    slopes = (eta(high) - eta(high - 1)) - (eta(low + 1) - eta(low))
    ends = (eta(low) + eta(high)) / 2 + slopes / 12
    return _direct(schedule, first, first + _BLOCK, power) + middle + ends


_AT = ("time",)
ANY_SIGN = frozenset({"mixing", "bounds", "sign"})
WRONG = 1.02  # rate of the negative control


def start_of(system: TensorialICA) -> Array:
    """v(0), refused where it is random."""
    return model.fixed_vector(system, "the transient")


def elapsed_of(system: TensorialICA, times: Array) -> Array:
    """Beta times the sum of the step sizes until each time."""
    return elapsed(model.step_sizes(system), model.moments(system).beta, times)


def _ode(system: TensorialICA, times: Array, *_: object) -> PointResult:
    v0, x = start_of(system), elapsed_of(system, times)
    path = solve(v0, x)
    tan2 = tan2_of(path.v)
    # |d tan2| <= 2 (1 + tan2)^(3/2) |dv| for every entry that is missed.
    steep = 2 * (1 + tan2) ** 1.5 * math.sqrt(system.dimension)
    control = tan2_of(solve(v0, WRONG * x).v)
    error = steep * path.error
    return PointResult({"v": path.v, "tan2": tan2, "tan2_error": error, "tan2_control": control})


ODE = method.Limit[TensorialICA](
    name="ode",
    role=method.Role.LIMIT,
    rank=1,
    about=method.About(
        text="v as η → 0 at fixed βηt, from any start that is not random, in closed form",
        accuracy="converged",
        equations=f"{PAPER}, transient stage: dv_k/d(eta t) = beta (v_k^3 - v_k sum v_i^4)",
        engines=AT_LIMIT,
    ),
    outputs=method.Outputs(
        (
            TAN2,
            V,
            Output("tan2_error", _AT, "error of tan2, from the root of the closed form"),
            Output("tan2_control", _AT, "tan2 with the rate wrong by 2 % (negative control)"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 2e-3 + 1e-5 * system.dimension),
    scope=method.Scope(refuses=method.refusal(start_of), ignores=ANY_SIGN),
    run=_ode,
    closed=True,
)


ENGINES = ("hdica.systems", HOME)  # the landscape needs nothing of the source
ANY_RULE = ANY_SIGN | {"eta", "schedule", "start", "source"}
MOST = 1000  # largest dimension whose critical points a result holds
_FLOATS = 600  # 3^d overflows no floating-point number up to this dimension
_OF = ("fixed_point",)


def objective(v: Array) -> Array:
    """-sum_i v_i^4 along the last axis: from -1 at a component to -1/d at a maximiser."""
    return -np.sum(v**4, axis=-1)


def counts(d: int) -> list[int]:
    """2^k C(d, k) for k = 1 ... d: 3^d - 1 in all, of which 3^d - 2^d - 2 d - 1 are saddles."""
    out, now = [], 1
    for k in range(1, d + 1):
        now = now * 2 * (d - k + 1) // k
        out.append(now)
    return out


def landscape(d: int) -> dict[str, Array]:
    """Critical points of dimension d by the size k = 1 ... d of their support, shape (d,) each.

    Minimisers have k = 1, maximisers k = d, and the eigenvalues of the tangent Hessian are -8/k in
    the k - 1 directions of the support, +4/k in the d - k others: -4 times the rates of the drift.
    """
    support, number = np.arange(1.0, d + 1), counts(d)
    logarithm = np.array([math.log10(count) for count in number])
    with np.errstate(over="ignore"):
        multiplicity = np.array(number, dtype=float) if d <= _FLOATS else np.rint(10.0**logarithm)
    return {
        "tan2": support - 1,
        "support": support,
        "value": -1.0 / support,
        "stable": (support == 1).astype(float),
        "kind": (support > 1).astype(float),
        "unstable": support - 1,
        "rate_inside": np.where(support > 1, 2 / support, np.nan),
        "rate_outside": np.where(support < d, -1 / support, np.nan),
        "log10_multiplicity": logarithm,
        "multiplicity": multiplicity,
    }


def _within(low: int, high: int, what: str) -> Callable[[TensorialICA], str]:
    """What refuses other dimensions, with the words for what they are not allowed for."""
    return lambda system: (
        ""
        if low <= system.dimension <= high
        else f"dimension = {system.dimension} is not allowed for {what}"
    )


def _fixed_points(system: TensorialICA, *_: object) -> PointResult:
    d = system.dimension
    v = np.full((MOST, d), np.nan)
    for k in range(1, d + 1):
        v[k - 1] = np.where(np.arange(d) < k, k**-0.5, 0.0)
    return PointResult(method.padded(landscape(d), MOST, "fixed points") | {"v": v})


FIXED_POINTS = method.States[TensorialICA](
    name="fixed_points",
    role=method.Role.STEADY_STATES,
    rank=1,
    about=method.About(
        text=(
            "critical points of the landscape, one a support size, with their number and stability"
        ),
        accuracy="exact",
        equations=f"{PAPER}, stationary points of the tensorial objective",
        engines=ENGINES,
    ),
    outputs=method.Outputs(
        (
            Output("tan2", _OF, "squared tangent of the angle to the nearest axis, k - 1"),
            Output("v", (*_OF, "component"), "v at the fixed point, one of its images"),
            Output("support", _OF, "number k of entries that are not 0"),
            Output("value", _OF, "objective -sum_k v_k^4 at the fixed point"),
            Output("stable", _OF, "1 if stable, 0 if unstable"),
            Output(
                "kind",
                _OF,
                "0 informative (a component), 1 uninformative (a saddle or maximiser)",
            ),
            Output("unstable", _OF, "number of unstable directions"),
            Output("rate_inside", _OF, "rate within the support, in units of beta eta"),
            Output("rate_outside", _OF, "rate off the support, in units of beta eta"),
            Output("multiplicity", _OF, "number of images, 2^k C(d, k); infinite from 1e308 on"),
            Output("log10_multiplicity", _OF, "its decimal logarithm"),
        ),
        coords=lambda times: {"fixed_point": np.arange(MOST)},
    ),
    cost=method.Cost(seconds=lambda system, n, last: 1e-3 + 2e-8 * system.dimension**2),
    scope=method.Scope(
        refuses=_within(2, MOST, f"fixed points (at most {MOST})"), ignores=ANY_RULE
    ),
    run=_fixed_points,
)

ALL = 6  # largest dimension of which a result holds every critical point: 728


def _critical_points(system: TensorialICA, *_: object) -> PointResult:
    d = system.dimension
    signs = np.array(list(itertools.product((0.0, 1.0, -1.0), repeat=d))[1:])
    support = np.abs(signs).sum(axis=1)
    order = np.argsort(support, kind="stable")
    signs, support = signs[order], support[order]
    stable = (support == 1).astype(float)
    columns = {"value": -1 / support, "stable": stable, "unstable": support - 1}
    values = method.padded(columns, MOST, "critical points")
    v = np.full((MOST, d), np.nan)
    v[: len(signs)] = signs / np.sqrt(support)[:, None]
    return PointResult(values | {"v": v})


_LISTED = ("v", "value", "stable", "unstable")
CRITICAL_POINTS = method.Limit[TensorialICA](
    name="critical_points",
    role=method.Role.OTHER,
    about=replace(
        FIXED_POINTS.about,
        text="every critical point of the landscape, 3^d − 1 of them, for d ≤ 6",
    ),
    outputs=replace(
        FIXED_POINTS.outputs,
        always=tuple(o for o in FIXED_POINTS.outputs.always if o.name in _LISTED),
    ),
    cost=FIXED_POINTS.cost,
    scope=replace(
        FIXED_POINTS.scope,
        refuses=_within(
            2,
            ALL,
            f"a list of every critical point (at most {ALL}; fixed_points has one of each support "
            "size)",
        ),
    ),
    run=_critical_points,
)

STATES = (FIXED_POINTS, CRITICAL_POINTS)

POLAR = np.linspace(0.0, math.pi, 91)
AZIMUTH = np.linspace(-math.pi, math.pi, 181)
"""With the equator and every critical direction among them: multiples of 2 degrees."""
_POLAR, _AZIMUTH = np.meshgrid(POLAR, AZIMUTH, indexing="ij")
_SPHERE = np.stack(
    [np.sin(_POLAR) * np.cos(_AZIMUTH), np.sin(_POLAR) * np.sin(_AZIMUTH), np.cos(_POLAR)], axis=-1
)


LANDSCAPE = method.Limit[TensorialICA](
    name="landscape",
    role=method.Role.OTHER,
    about=method.About(
        text="−Σ v⁴ over the sphere of v, for d = 3",
        accuracy="exact",
        equations=f"{PAPER}, Figure 1: landscape of the tensorial objective",
        engines=ENGINES,
    ),
    outputs=method.Outputs(
        (Output("value", ("polar", "azimuth"), "objective -sum_k v_k^4"),),
        coords=lambda times: {"polar": POLAR, "azimuth": AZIMUTH},
    ),
    cost=method.Cost(seconds=lambda system, n, last: 2e-3),
    scope=method.Scope(
        refuses=_within(3, 3, "this picture (3; see 'landscape_circle' for 2)"), ignores=ANY_RULE
    ),
    run=lambda *_: PointResult({"value": objective(_SPHERE)}),
)

CIRCLE = replace(
    LANDSCAPE,
    name="landscape_circle",
    about=replace(LANDSCAPE.about, text="−Σ v⁴ over the circle of v, for d = 2"),
    outputs=method.Outputs(
        (Output("value", ("azimuth",), "objective -sum_k v_k^4"),),
        coords=lambda times: {"azimuth": AZIMUTH},
    ),
    scope=replace(
        LANDSCAPE.scope, refuses=_within(2, 2, "this picture (2; see 'landscape' for 3)")
    ),
    run=lambda *_: PointResult(
        {"value": objective(np.stack([np.cos(AZIMUTH), np.sin(AZIMUTH)], axis=-1))}
    ),
)

PICTURES = (LANDSCAPE, CIRCLE)
