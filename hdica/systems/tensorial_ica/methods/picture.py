"""The landscape of tensorial ICA on the circle and on the sphere, to be drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hdica.ingredients.save import Save
from hdica.systems.method import About, Cost, Outputs, Role, Scope
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.limit.landscape import objective
from hdica.systems.tensorial_ica.methods import states
from hdica.systems.tensorial_ica.methods.limits import ANY_SIGN, ODE
from hdica.systems.tensorial_ica.methods.trajectories import PAPER
from hdica.systems.tensorial_ica.system import TensorialICA

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


def _sphere(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    polar, azimuth = np.meshgrid(POLAR, AZIMUTH, indexing="ij")
    v = [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)]
    return PointResult({"value": objective(np.stack(v, axis=-1))})


def _circle(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
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
        engines=states.LANDSCAPE,
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

METHODS = (LANDSCAPE, CIRCLE)
