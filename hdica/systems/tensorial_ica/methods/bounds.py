"""Theorems and lemmas of Li and Jordan 2021 as curves, with the constants of the system."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.systems.fields import source
from hdica.systems.method import About, Cost, Outputs, Role, Scope, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fields import bound_constants, first_vector, step_sizes
from hdica.systems.tensorial_ica.limit import bounds
from hdica.systems.tensorial_ica.limit.moments import Moments, moments_of
from hdica.systems.tensorial_ica.limit.orlicz import orlicz_bound
from hdica.systems.tensorial_ica.limit.transient import tan2_of
from hdica.systems.tensorial_ica.methods.limits import ODE
from hdica.systems.tensorial_ica.methods.trajectories import HERE, PAPER
from hdica.systems.tensorial_ica.system import TensorialICA

_AT = ("time",)
ABOUT = {
    "lemma_3": "bound on the tangent from a warm start",
    "lemma_5": "bound on the deviation from the centre of the vessel until t",
    "lemma_6": "bound on the tangent from a uniform start",
    "theorem_4": "bound on the tangent after T = t samples from a warm start",
    "theorem_7": "bound on the tangent after T = t samples from a uniform start",
    "corollary_8": "bound on the tangent after T = t samples in two phases",
}
_HOLDS = "1 where its scaling conditions hold"


@dataclass(frozen=True)
class _Known:
    """What the bounds of one system are made of; no step size or start where they need none."""

    moments: Moments
    b: float
    d: int
    eta: float | None
    v0: Array | None
    epsilon: float
    constants: bounds.Constants

    @property
    def tan0(self) -> float:
        """Tangent of the start."""
        return math.nan if self.v0 is None else math.sqrt(float(tan2_of(self.v0)))


def _known(system: TensorialICA) -> _Known:
    """Everything but the time; refused where B is infinite."""
    constants, epsilon = bound_constants(system)
    law = source(system)
    known, b = moments_of(law, 6), orlicz_bound(law)
    v0, eta = first_vector(system), step_sizes(system).constant
    return _Known(known, b, system.dimension, eta, v0, epsilon, constants)


def _lemmas(k: _Known, step: float) -> dict[str, bounds.Bound]:
    """The bounds at a step size after so many steps."""
    if k.eta is None:
        return {}
    at, found = np.array(step), {}
    found["lemma_6"] = bounds.lemma_6(k.moments, k.b, k.d, k.eta, at, k.epsilon, k.constants)
    if k.v0 is not None:
        found["lemma_3"] = bounds.lemma_3(
            k.moments, k.b, k.d, k.eta, at, k.tan0, constants=k.constants
        )
        found["lemma_5"] = bounds.lemma_5(k.moments, k.v0, k.eta, step, k.constants)
    return found


def _theorems(k: _Known, total: float) -> dict[str, bounds.Bound]:
    """The bounds of trainings of so many samples."""
    if total < 2:
        return {}
    uniform: dict[str, Callable[..., bounds.Bound]] = {
        "theorem_7": bounds.theorem_7,
        "corollary_8": bounds.corollary_8,
    }
    found = {
        name: bound(k.moments, k.b, k.d, total, k.epsilon, k.constants)
        for name, bound in uniform.items()
    }
    return found | {"theorem_4": bounds.theorem_4(k.moments, k.b, k.d, total, k.tan0, k.constants)}


def _bounds(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    known, steps = _known(system), steps_of(times, 1).astype(float)
    values = {output.name: np.full(times.shape, math.nan) for output in OUTPUTS}
    for place, step in enumerate(steps.tolist()):
        for name, one in (_lemmas(known, step) | _theorems(known, step)).items():
            values[name][place] = float(one.value)
            values[f"{name}_holds"][place] = float(one.applies)
            values[f"{name}_predicted"][place] = float(np.mean(one.predicted))
    return PointResult(values)


OUTPUTS = tuple(
    output
    for name, words in ABOUT.items()
    for output in (
        Output(name, _AT, words),
        Output(f"{name}_holds", _AT, f"{words}: {_HOLDS}"),
        Output(f"{name}_predicted", _AT, f"{words}: the value that the noise leads to instead"),
    )
)
BOUNDS = replace(
    ODE,
    name="bounds",
    role=Role.OTHER,
    rank=None,
    about=About(
        text=(
            "Theorems 4 and 7, Corollary 8, Lemmas 3, 5 and 6 with your constants, and predictions"
        ),
        accuracy="exact",
        equations=f"{PAPER}, Theorems 4 and 7, Corollary 8, Lemmas 3, 5 and 6",
        engines=("hdica.finite", *HERE),
    ),
    outputs=Outputs(OUTPUTS),
    cost=Cost(seconds=lambda system, n, last: 0.1 + 2e-5 * system.dimension),
    scope=Scope(
        refuses=refusal(lambda system: _lemmas(_known(system), 1.0)),
        ignores=frozenset({"mixing", "sign"}),
    ),
    run=_bounds,
    closed=False,
)

METHODS = (BOUNDS,)
