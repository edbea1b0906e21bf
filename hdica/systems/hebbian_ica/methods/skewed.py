"""Methods of Hebbian ICA near R = 0 of skewed sources: escape times in units of n^2 steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica.escape.skewed import check_skewed, skew_near_zero, skewed_escape
from hdica.systems.hebbian_ica.escape.times import Escape
from hdica.systems.hebbian_ica.fields import given_rate, signs, sources, unit
from hdica.systems.hebbian_ica.methods.escape import (
    BEST,
    ESCAPE,
    ESCAPE_TIMES,
    ESCAPES,
    HOME,
    PAIR,
    PAPER,
    PASSAGES,
    escape_values,
    passages_in,
    shared,
)
from hdica.systems.hebbian_ica.system import HebbianICA, passage_refusal, plain_refusal
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    DIFFUSIONS,
    NUMERICS,
    About,
    Cost,
    Limit,
    Outputs,
    Role,
    Scope,
    Together,
    refusal,
)
from hdica.systems.outputs import UNIT, Array, Output, PointResult
from hdica.systems.trials import alone

SQUARED = "n^2 steps"
ABOUT = {
    "kramers": "Kramers' formula for that mean",
    "nu_optimal": "nu2 with the least mean as n -> infinity",
    "mean_optimal": "least mean escape time over nu2 as n -> infinity",
    "exponent": "exponent P^2 nu2^2/(6 kappa3^2 <phi''>^2) of Kramers' formula",
}


def _squared(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """The same in units of n^2 steps."""
    return tuple(
        replace(
            output,
            long_name=ABOUT.get(output.name, output.long_name),
            units=SQUARED if output.units == UNIT else output.units,
        )
        for output in outputs
    )


def constant_nu2(system: HebbianICA) -> float:
    """Nu2 = n^(3/2) eta of a constant step size, of a system that it is given for."""
    why = plain_refusal(system, "the diffusion of skewed sources near R = 0")
    if why:
        raise HdicaError(why)
    if unit(system) != "nu2":
        raise HdicaError(
            f"the diffusion of skewed sources near R = 0 needs nu2, and {unit(system)} is given "
            "(nu2 = n^(3/2) eta stays finite there)"
        )
    fixed = given_rate(system).constant
    if fixed is None:
        raise HdicaError(
            f"nu2 = {system.nu2!r} is not allowed for the diffusion of skewed sources near R = 0 "
            "(a constant step size)"
        )
    if system.start not in ("zero", "random"):
        raise HdicaError(
            f"start = {system.start} is not allowed for escape times as n -> infinity "
            "(R is of order n^-1/2 there: 'zero' or 'random')"
        )
    return fixed


def skewed_escape_of(system: HebbianICA) -> Escape:
    """Escape times of the system from its start, in n^2 steps."""
    nu2, phi = constant_nu2(system), formula(system, "nonlinearity")
    return skewed_escape(shared(system), phi, system.projections, nu2, str(system.start))


def _result(system: HebbianICA, found: Escape, save: Save) -> PointResult:
    phi = formula(system, "nonlinearity")
    skews = [skew_near_zero(phi, source) for source in sources(system)]
    side = [[skew.side(float(sign)) for skew in skews] for sign in signs(system)]
    return PointResult(escape_values(found, save) | {"side": np.array(side, dtype=float)})


def _escape(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    return _result(system, skewed_escape_of(system), save)


def _escapes_at_all(system: HebbianICA) -> None:
    """Refuse a system of which no entry escapes, or whose entries are no independent copies.

    With another unit it says why the trap of n^3 steps has none, if it has none.
    """
    why = ESCAPE.scope.refuses(system) if unit(system) != "nu2" else ""
    if why:
        raise HdicaError(why)
    constant_nu2(system)
    check_skewed(shared(system), formula(system, "nonlinearity"), system.projections)


SKEWED_ESCAPE = Limit[HebbianICA](
    name="skewed_escape",
    role=Role.ESCAPE,
    rank=2,
    about=About(
        text="laws of escapes in n² steps as n → ∞ at fixed ν₂, for skewed sources",
        accuracy="converged",
        equations=(
            f"{PAPER}, leading term of (22) with the noise of (25), first passages to infinity"
        ),
        engines=(*COMMON, "hdica.finite.random", AVERAGES, DIFFUSIONS, NUMERICS, HOME),
    ),
    outputs=Outputs(
        (
            *_squared(ESCAPES),
            Output("side", PAIR, "sign of the R that an entry escapes to, 0 if it does not"),
        ),
        extras=_squared(BEST),
        coords=ESCAPE.outputs.coords,
    ),
    cost=Cost(seconds=lambda system, n, last: 0.5),
    scope=Scope(refuses=refusal(_escapes_at_all), ignores=frozenset({"alpha", "threshold"})),
    run=_escape,
)


_PASSAGES = passages_in(2)
SKEWED_ESCAPE_TIMES = replace(
    ESCAPE_TIMES,
    name="skewed_escape_times",
    about=replace(ESCAPE_TIMES.about, text="when chains first find a source, in n² steps"),
    outputs=Outputs(_squared(PASSAGES)),
    cost=replace(
        ESCAPE_TIMES.cost,
        seconds=lambda system, n, last: 5e-4 + last * (n or 1) * 1.5e-9 * _entries(system),
    ),
    scope=Scope(refuses=passage_refusal),
    run=alone(_PASSAGES),
    together=Together(_PASSAGES),
)


def _entries(system: HebbianICA) -> int:
    k, m = system.projections, len(system.sources)
    return 1 + k * (k + m)


METHODS = (SKEWED_ESCAPE_TIMES, SKEWED_ESCAPE)
