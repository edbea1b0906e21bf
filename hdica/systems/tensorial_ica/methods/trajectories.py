"""Paths of online tensorial ICA: the rule in coordinates of the sources and of the data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from hdica.finite.random.streams import LANES, Stream, streams_of
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    FINITE,
    About,
    Bits,
    Cost,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
    Together,
    Trial,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.finite.rule import TensorialRule, run_observed, run_together
from hdica.systems.tensorial_ica.system import TensorialICA, rule
from hdica.systems.trials import alone, content_of, each, in_groups

PAPER = "Li and Jordan 2021"
HOME = "hdica.systems.tensorial_ica"
HERE = (*COMMON, AVERAGES, HOME, f"{HOME}.limit")
AT_FINITE = (*FINITE, *HERE, f"{HOME}.finite")
"""Folders behind limits and simulations."""
IGNORED = frozenset({"mixing", "bounds"})
"""Fields that the law of v does not depend on: they choose no random numbers."""

TAN2 = Output("tan2", ("time",), "squared tangent of the angle to the nearest axis")
PATH = (
    TAN2,
    Output("nearest", ("time",), "number of the nearest component"),
    Output("update_sign", ("time",), "sign of the update"),
)
V = Output("v", ("time", "component"), "entry of v = A'u, overlap with a component")
U = Output("u", ("time", "component"), "entry of the estimate u")


def streams(system: TensorialICA) -> Callable[[int], Stream]:
    """Random numbers of a point by its seed: one stream of samples, whatever is made of them."""
    return streams_of(content_of(system, IGNORED), "vector", 0)


def in_lanes(
    trials: Sequence[Trial],
    rules: Sequence[TensorialRule],
    compute: Callable[[list[int], list[Stream]], list[Values]],
    apart: Sequence[Hashable] = (),
) -> list[PointResult]:
    """Points side by side, as many as there are lanes; their numbers do not depend on that.

    Points are kept ``apart`` where these, one a point, differ: their output times, for example.
    """
    of_seed = each(streams, trials)
    keys = [one.alike for one in rules]

    def some(group: list[int]) -> list[Values]:
        return compute(group, [of_seed[k](trials[k][1] or 0) for k in group])

    groups = list(zip(keys, apart, strict=True)) if apart else keys
    return in_groups(groups, LANES, some)


def _vectors(trials: Sequence[Trial], times: Array, n: int | None, save: Save) -> list[PointResult]:
    rules = each(rule, trials)

    def compute(group: list[int], own: list[Stream]) -> list[Values]:
        return run_together([rules[k] for k in group], times, own, frozenset(save.extra))

    return in_lanes(trials, rules, compute)


def mixing(system: TensorialICA, stream: Stream) -> Array | None:
    """A, shape (d, d), orthonormal from the Haar measure; None for the identity."""
    if system.mixing == "identity":
        return None
    raw = stream("mixing").standard_normal((system.dimension, system.dimension))
    with one_thread():
        q, r = np.linalg.qr(raw)
    # Unique, and so Haar distributed, with a positive diagonal of R (Mezzadri 2007).
    return np.asarray(q * np.where(np.diag(r) < 0, -1.0, 1.0))


def _observed(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    stream = streams(system)(seed or 0)
    wanted = frozenset(save.extra)
    return PointResult(*run_observed(rule(system), mixing(system, stream), times, stream, wanted))


_STEP = {"rademacher": 1.1e-9, "uniform": 1.2e-9, "laplace": 2.5e-9}
"""Seconds a component and step, by source; others come from NumPy."""


def steps_seconds(system: TensorialICA, steps: float) -> float:
    """Cost model of so many steps of one point."""
    spec = system.source if isinstance(system.source, str) else ""
    return 1e-4 + steps * (1e-9 + system.dimension * _STEP.get(spec, 2.5e-8))


VECTOR = Simulation[TensorialICA](
    name="vector",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="v = A'u, all d entries; a step costs d operations, eight seeds run side by side",
        accuracy="exact",
        equations=f"{PAPER}, (ICA) in the coordinates v = A'u of the sources",
        bits=Bits.EVERY_KIND,
        engines=AT_FINITE,
    ),
    outputs=Outputs(PATH, extras=(V,)),
    cost=Cost(
        seconds=lambda system, n, last: steps_seconds(system, last),
        memory=lambda system, n: 2 * system.dimension,
    ),
    scope=Scope(ignores=IGNORED, n=Size.NONE),
    run=alone(_vectors),
    together=Together(_vectors),
)


def _dense_seconds(system: TensorialICA, n: int | None, last: float) -> float:
    work = system.dimension**2 * 1e-9 if system.mixing == "random" else 0.0
    return 1e-4 + last * (work + 2e-8 * system.dimension)


OBSERVED = Simulation[TensorialICA](
    name="observed",
    role=Role.SIMULATION,
    about=About(
        text="u from data X = AZ, identity or random orthonormal A, on the same samples",
        accuracy="exact",
        equations=f"{PAPER}, (ICA) as it is printed",
        engines=AT_FINITE,
    ),
    outputs=Outputs(PATH, extras=(V, U)),
    cost=Cost(
        seconds=_dense_seconds,
        memory=lambda system, n: 2 * system.dimension ** (1 if system.mixing == "identity" else 2),
    ),
    scope=Scope(ignores=frozenset({"bounds"}), n=Size.NONE),
    run=_observed,
)

METHODS = (VECTOR, OBSERVED)
