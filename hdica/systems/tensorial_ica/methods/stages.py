"""How long the stages of online tensorial ICA take at a constant step size."""

from __future__ import annotations

import math

import numpy as np

from hdica.ingredients.save import Save
from hdica.systems.method import About, Cost, Limit, Outputs, Role, Scope, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fields import constant_eta, first_vector, moments
from hdica.systems.tensorial_ica.limit import traverse
from hdica.systems.tensorial_ica.limit.transient import drift, tan2_of, time_to
from hdica.systems.tensorial_ica.methods.limits import ANY_SIGN, moments_for_noise
from hdica.systems.tensorial_ica.methods.trajectories import HERE, PAPER
from hdica.systems.tensorial_ica.system import TensorialICA

_ON = ("quantile",)
_UNIT = "steps"
OUTPUTS = (
    Output("N1", (), "mean time from a critical point to tan^2 = 1/3", _UNIT),
    Output("N1_se", (), "standard error of N1", _UNIT),
    Output("N1_median", (), "median of the same", _UNIT),
    Output("N1_quantiles", _ON, "its quantiles", _UNIT),
    Output("N1_order", (), "its leading terms for small eta", _UNIT),
    Output("N2", (), "time from any other start to tan^2 = 1/3, mean over uniform ones", _UNIT),
    Output("N2_se", (), "standard error of N2", _UNIT),
    Output("N2_median", (), "median of the same", _UNIT),
    Output("N2_quantiles", _ON, "its quantiles", _UNIT),
    Output("N2_order", (), "its leading term for large d", _UNIT),
    Output("N3", (), "time from tan^2 = 1/3, or a nearer start, to the stationary level", _UNIT),
)
STILL = 1e-12
"""A start whose drift is smaller is a critical point, whose smaller entries are zeros."""


def _law(law: traverse.Law, name: str, order: float) -> dict[str, Array]:
    quantiles, _ = law.quantiles()
    middle, _ = law.quantiles([0.5])
    return {
        f"{name}_median": middle[0],
        name: np.asarray(law.mean),
        f"{name}_se": np.asarray(law.error),
        f"{name}_quantiles": quantiles,
        f"{name}_order": np.asarray(order),
    }


def _exact(time: float) -> dict[str, Array]:
    every = np.full(len(traverse.PROBABILITIES), time)
    exact = {"N2": time, "N2_median": time, "N2_se": 0.0}
    return {name: np.asarray(value) for name, value in exact.items()} | {"N2_quantiles": every}


def _support(v0: Array) -> int:
    """Support size of the critical point that a start is; 0 if it is none."""
    at_rest = np.abs(drift(v0)).max() <= STILL
    return int(np.count_nonzero(np.abs(v0) > STILL)) if at_rest else 0


def _first_stage(system: TensorialICA, v0: Array | None) -> dict[str, Array]:
    """N1 or N2 in units of beta eta t."""
    d = system.dimension
    if v0 is None:
        return _law(traverse.uniform_law(d), "N2", traverse.uniform_asymptote(d))
    k = _support(v0)
    if k < 2:
        return _exact(float(time_to(v0, traverse.WARM)))
    known, eta = moments_for_noise(system, k), constant_eta(system)
    order = traverse.escape_asymptote(known, k, eta)
    return _law(traverse.escape_law(known, k, eta), "N1", order)


def _traverse(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    eta, v0, d = constant_eta(system), first_vector(system), system.dimension
    unit = 1 / (moments(system).beta * eta)
    blank = {
        o.name: np.full((len(traverse.PROBABILITIES),) * len(o.dims), math.nan) for o in OUTPUTS
    }
    found = blank | _first_stage(system, v0)
    near = math.inf if v0 is None else float(tan2_of(v0))
    floor = traverse.first_order_level(moments_for_noise(system, 1), d, eta)
    last = traverse.floor_time(min(near, traverse.WARM), floor) if near > 0 else 0.0
    found["N3"] = np.asarray(last)
    return PointResult({name: unit * np.asarray(value) for name, value in found.items()})


def _known(system: TensorialICA) -> None:
    """Refuse a step size that changes, and a source without the moments that its stages need."""
    constant_eta(system)
    v0 = first_vector(system)
    moments_for_noise(system, 1 if v0 is None else _support(v0) or 1)


TRAVERSE = Limit[TensorialICA](
    name="traverse",
    role=Role.OTHER,
    about=About(
        text="steps of the three stages N₁, N₂, N₃: mean and quantiles, over uniform starts too",
        accuracy="approximate",
        equations=f"{PAPER}, traverse times of the three stages, with their constants",
        engines=HERE,
    ),
    outputs=Outputs(OUTPUTS, coords=lambda times: {"quantile": np.array(traverse.PROBABILITIES)}),
    cost=Cost(seconds=lambda system, n, last: 0.5),
    scope=Scope(refuses=refusal(_known), ignores=ANY_SIGN),
    run=_traverse,
)

METHODS = (TRAVERSE,)
