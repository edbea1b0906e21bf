"""Landscape of -sum_i v_i^4 on the sphere: critical points by support size, and pictures of it.

E (u.X)^4 = 3 + (mu4 - 3) sum_i v_i^4 with v = A' u, so that the rule descends -sign(mu4 - 3)
E y^4 = -3 sign - beta sum_i v_i^4, whatever the source. Critical points have |v_i| = 1/sqrt k on k
axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hdica.systems.method import About, Cost, Limit, Outputs, Role, Scope, States
from hdica.systems.outputs import Array, Output, PointResult, padded
from hdica.systems.tensorial_ica.system import HOME, PAPER, TensorialICA
from hdica.systems.tensorial_ica.transient import ANY_SIGN, ODE

ENGINES = ("hdica.systems", HOME)
"""Folders behind the landscape, which needs nothing of the source."""
MOST = 1000
"""Largest dimension whose critical points a result holds."""
_FLOATS = 600
"""3^d overflows no floating-point number up to this dimension."""
_AT = ("fixed_point",)


def objective(v: Array) -> Array:
    """-sum_i v_i^4 along the last axis: from -1 at a component to -1/d at a maximiser."""
    return np.asarray(-np.sum(np.asarray(v, dtype=float) ** 4, axis=-1))


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
    logarithm = np.array([math.log10(one) for one in number])
    with np.errstate(over="ignore"):
        multiplicity = np.rint(10.0**logarithm)
    if d <= _FLOATS:
        multiplicity = np.array([float(one) for one in number])
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


def _too_large(system: TensorialICA) -> str:
    if system.dimension <= MOST:
        return ""
    return f"dimension = {system.dimension} is not allowed for fixed points (at most {MOST})"


def _fixed_points(system: TensorialICA, *_: object) -> PointResult:
    d = system.dimension
    v = np.full((MOST, d), np.nan)
    for k in range(1, d + 1):
        v[k - 1] = np.where(np.arange(d) < k, k**-0.5, 0.0)
    return PointResult(padded(landscape(d), MOST, "fixed points") | {"v": v})


FIXED_POINTS = States[TensorialICA](
    name="fixed_points",
    role=Role.STEADY_STATES,
    rank=1,
    about=About(
        text=(
            "critical points of the landscape, one a support size, with their number and stability"
        ),
        accuracy="exact",
        equations=f"{PAPER}, stationary points of the tensorial objective",
        engines=ENGINES,
    ),
    outputs=Outputs(
        (
            Output("tan2", _AT, "squared tangent of the angle to the nearest axis, k - 1"),
            Output("v", (*_AT, "component"), "v at the fixed point, one of its images"),
            Output("support", _AT, "number k of entries that are not 0"),
            Output("value", _AT, "objective -sum_k v_k^4 at the fixed point"),
            Output("stable", _AT, "1 if stable, 0 if unstable"),
            Output(
                "kind", _AT, "0 informative (a component), 1 uninformative (a saddle or maximiser)"
            ),
            Output("unstable", _AT, "number of unstable directions"),
            Output("rate_inside", _AT, "rate within the support, in units of beta eta"),
            Output("rate_outside", _AT, "rate off the support, in units of beta eta"),
            Output("multiplicity", _AT, "number of images, 2^k C(d, k); infinite from 1e308 on"),
            Output("log10_multiplicity", _AT, "its decimal logarithm"),
        ),
        coords=lambda times: {"fixed_point": np.arange(MOST)},
    ),
    cost=Cost(seconds=lambda system, n, last: 1e-3 + 2e-8 * system.dimension**2),
    scope=Scope(refuses=_too_large, ignores=ANY_SIGN | {"eta", "schedule", "start", "source"}),
    run=_fixed_points,
)

ALL = 6
"""Largest dimension of which a result holds every critical point: 728."""


def _too_many(system: TensorialICA) -> str:
    if system.dimension <= ALL:
        return ""
    return (
        f"dimension = {system.dimension} is not allowed for a list of every critical point (at "
        f"most {ALL}; fixed_points has one of each support size)"
    )


def _critical_points(system: TensorialICA, *_: object) -> PointResult:
    d = system.dimension
    signs = np.array(list(itertools.product((0.0, 1.0, -1.0), repeat=d))[1:])
    support = np.abs(signs).sum(axis=1)
    order = np.argsort(support, kind="stable")
    signs, support = signs[order], support[order]
    columns = {
        "value": -1 / support,
        "stable": (support == 1).astype(float),
        "unstable": support - 1,
    }
    values = padded(columns, MOST, "critical points")
    v = np.full((MOST, d), np.nan)
    v[: len(signs)] = signs / np.sqrt(support)[:, None]
    return PointResult(values | {"v": v})


CRITICAL_POINTS = Limit[TensorialICA](
    name="critical_points",
    role=Role.OTHER,
    about=replace(
        FIXED_POINTS.about,
        text="every critical point of the landscape, 3^d − 1 of them, for d ≤ 6",
        engines=("hdica.systems", HOME),
    ),
    outputs=replace(
        FIXED_POINTS.outputs,
        always=tuple(
            one
            for one in FIXED_POINTS.outputs.always
            if one.name in ("v", "value", "stable", "unstable")
        ),
    ),
    cost=FIXED_POINTS.cost,
    scope=replace(FIXED_POINTS.scope, refuses=_too_many),
    run=_critical_points,
)

STATES = (FIXED_POINTS, CRITICAL_POINTS)

POLAR = np.linspace(0.0, math.pi, 91)
AZIMUTH = np.linspace(-math.pi, math.pi, 181)
"""With the equator and every critical direction among them: multiples of 2 degrees."""


def _only(d: int, other: str) -> Callable[[TensorialICA], str]:
    """What refuses every dimension but d, for which it names the method for the other."""

    def refuses(system: TensorialICA) -> str:
        if system.dimension == d:
            return ""
        return f"dimension = {system.dimension} is not allowed for this picture ({d}; see {other})"

    return refuses


def _sphere(*_: object) -> PointResult:
    polar, azimuth = np.meshgrid(POLAR, AZIMUTH, indexing="ij")
    v = [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)]
    return PointResult({"value": objective(np.stack(v, axis=-1))})


def _circle(*_: object) -> PointResult:
    v = np.stack([np.cos(AZIMUTH), np.sin(AZIMUTH)], axis=-1)
    return PointResult({"value": objective(v)})


LANDSCAPE = replace(
    ODE,
    name="landscape",
    role=Role.OTHER,
    rank=None,
    about=About(
        text="−Σ v⁴ over the sphere of v, for d = 3",
        accuracy="exact",
        equations=f"{PAPER}, Figure 1: landscape of the tensorial objective",
        engines=ENGINES,
    ),
    outputs=Outputs(
        (Output("value", ("polar", "azimuth"), "objective -sum_k v_k^4"),),
        coords=lambda times: {"polar": POLAR, "azimuth": AZIMUTH},
    ),
    cost=Cost(seconds=lambda system, n, last: 2e-3),
    scope=Scope(
        refuses=_only(3, "'landscape_circle' for 2"),
        ignores=ANY_SIGN | {"eta", "schedule", "start", "source"},
    ),
    run=_sphere,
    closed=False,
)

CIRCLE = replace(
    LANDSCAPE,
    name="landscape_circle",
    about=replace(LANDSCAPE.about, text="−Σ v⁴ over the circle of v, for d = 2"),
    outputs=Outputs(
        (Output("value", ("azimuth",), "objective -sum_k v_k^4"),),
        coords=lambda times: {"azimuth": AZIMUTH},
    ),
    scope=replace(LANDSCAPE.scope, refuses=_only(2, "'landscape' for 3")),
    run=_circle,
)

PICTURES = (LANDSCAPE, CIRCLE)
