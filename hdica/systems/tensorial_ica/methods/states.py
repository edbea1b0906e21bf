"""Critical points of the landscape of tensorial ICA, one of each support size."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from hdica.ingredients.save import Save
from hdica.systems.method import About, Cost, Limit, Outputs, Role, Scope, States
from hdica.systems.outputs import Array, Output, PointResult, padded
from hdica.systems.tensorial_ica.limit.landscape import landscape, representative
from hdica.systems.tensorial_ica.methods.limits import ANY_SIGN
from hdica.systems.tensorial_ica.methods.trajectories import HOME, PAPER
from hdica.systems.tensorial_ica.system import TensorialICA

LANDSCAPE = ("hdica.systems", HOME, f"{HOME}.limit")
"""Folders behind the landscape, which needs nothing of the source."""
MOST = 1000
"""Largest dimension whose critical points a result holds."""
_EXACT = 600
"""3^d overflows no floating-point number up to this dimension."""
_AT = ("fixed_point",)


def _too_large(system: TensorialICA) -> str:
    if system.dimension <= MOST:
        return ""
    return f"dimension = {system.dimension} is not allowed for fixed points (at most {MOST})"


def _fixed_points(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    d = system.dimension
    found = landscape(d)
    support = found.support.astype(float)
    columns = {
        "tan2": support - 1,
        "support": support,
        "value": found.value,
        "stable": (found.inside_number == 0).astype(float),
        "kind": (support > 1).astype(float),
        "unstable": found.inside_number.astype(float),
        "rate_inside": np.where(support > 1, 2 / support, np.nan),
        "rate_outside": np.where(support < d, -1 / support, np.nan),
        "log10_multiplicity": found.log10_count,
    }
    with np.errstate(over="ignore"):
        columns["multiplicity"] = np.rint(10.0**found.log10_count)
    if d <= _EXACT:
        columns["multiplicity"] = np.array([float(one) for one in found.count])
    values = padded(columns, MOST, "fixed points")
    v = np.full((MOST, d), np.nan)
    for k in range(1, d + 1):
        v[k - 1] = representative(d, k)
    return PointResult(values | {"v": v})


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
        engines=LANDSCAPE,
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


def _critical_points(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
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

METHODS = (FIXED_POINTS, CRITICAL_POINTS)
