"""Escape of online ICA from Q = 0 by theory: exactly at n, by the diffusion at n, as n grows.

With nu = n tau of order one r = sqrt(n) Q obeys (24)-(26) of Rattray (2002), whose Hebbian rule has
the same first terms; f lets it escape where kappa4 <f'''(z)> < 0, as x^3 does for uniform sources.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits.averages.trap import Trap, near_zero, safe_exp
from hdica.limits.diffusion.escape import Begin, EscapeLaw, escape_law, limit_range, optimum
from hdica.limits.passage.diffusion import step_range
from hdica.limits.passage.exact import Chain, Passage, exact_passage
from hdica.systems.fields import at_dimension, prior, schedule, source, start
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    DIFFUSIONS,
    NUMERICS,
    OVERLAP,
    PASSAGES,
    About,
    Cost,
    Limit,
    Outputs,
    Role,
    Scope,
    Size,
    refusal,
)
from hdica.systems.online_ica.escape import passage_refusal
from hdica.systems.online_ica.system import OnlineICA, learned, step_unit
from hdica.systems.outputs import UNIT, Array, Output, PointResult, at_ages, over_age
from hdica.systems.projected.simulation import OWN

LEAST = 3
MEAN = (
    Output("mean", (), "mean time until abs(Q) has escaped", UNIT),
    Output("sd", (), "standard deviation of that time", UNIT),
)
LAW = Output("survival", ("age",), "probability of no escape until age times the mean")
ERROR = Output("error", (), "relative error of the mean")
_TRAP = (
    Output("median", (), "median of that time", UNIT),
    Output("kramers", (), "Kramers' formula for the mean", UNIT),
    Output("exponent", (), "exponent 3 P nu/(4 C) of Kramers' formula"),
)
_BEST = (
    Output("nu_optimal", (), "nu with the least mean as n -> infinity"),
    Output("mean_optimal", (), "least mean escape time over nu as n -> infinity", UNIT),
)


def rate(system: OnlineICA, n: int | None) -> float:
    """The constant step size: nu as n -> infinity, tau at n."""
    refused = passage_refusal(system)
    if refused:
        raise HdicaError(refused)
    unit = step_unit(system)
    if n is None and unit != "nu":
        raise HdicaError(
            f"tau = {system.tau!r} is not allowed for escape times as n -> infinity (give nu = n "
            "tau, which stays finite there, or n)"
        )
    found = schedule(system if n is None else at_dimension(system, n), "nu" if n is None else "tau")
    if found.constant is None:
        raise HdicaError(
            f"{unit} = {getattr(system, unit)!r} is not allowed for escape times (a constant step "
            "size)"
        )
    return found.constant


def _begin(system: OnlineICA, n: int | None) -> Begin:
    """The start in the terms of escape times."""
    q0 = start(system).overlap(prior(system))
    known = isinstance(system.start, dict) and "overlap" in system.start
    exact = known and bool(system.start.get("exact", False))
    if known and (q0 == 0 or (exact and n is not None)):
        return ("zero" if exact else "random") if q0 == 0 else abs(q0)
    allowed = "overlap: 0, exact or not" + ("" if n is None else ", or {overlap: Q0, exact: true}")
    raise HdicaError(f"start = {system.start!r} is not allowed for escape times ({allowed})")


def _trap(system: OnlineICA) -> Trap:
    """P, kappa4 and <f'''(z)>, of an f with which R = 0 can be left."""
    trap = near_zero(learned(system), source(system))
    if trap.sigma >= 0:
        raise HdicaError(
            f"nonlinearity = {system.nonlinearity!r} is not allowed for escape times with the "
            f"source {source(system).label} (kappa4 <f'''(z)> = {trap.product:.3g} must be below "
            "0, else nothing leads away from Q = 0: take its negative, or sign = 'auto')"
        )
    return trap


def _even(system: OnlineICA) -> bool:
    """Whether Q and -Q are alike."""
    return learned(system).is_odd or source(system).symmetric


def check_even(system: OnlineICA, what: str) -> None:
    """Refuse a rule for which Q and -Q are not alike, for what follows abs(Q)."""
    if not _even(system):
        raise HdicaError(
            f"nonlinearity = {system.nonlinearity!r} with the source {source(system).label} is not "
            f"allowed for {what} (an odd f or a symmetric source: both sides of Q = 0 alike)"
        )


def check(system: OnlineICA, n: int | None) -> None:
    """Refuse what has no escape from Q = 0: another rule, a moving step size, a start outside."""
    rate(system, n)
    _begin(system, n)


def _of_limit(system: OnlineICA) -> None:
    check(system, None)
    _trap(system)


def _of_diffusion(system: OnlineICA) -> None:
    check(system, LEAST)
    _trap(system)
    check_even(system, "the diffusion of abs(Q)")


def _large_enough(n: int) -> None:
    if n < LEAST:
        raise HdicaError(f"n: {n} is not allowed (at least {LEAST})")


def _described(trap: Trap, law: EscapeLaw, nu: float) -> dict[str, Array]:
    """What a diffusion says."""
    values: dict[str, Array | float] = {
        "mean": law.mean,
        "sd": law.sd,
        "median": law.median,
        "kramers": safe_exp(trap.log_kramers(nu)),
        "exponent": trap.exponent(nu),
        "survival": at_ages(law.survival, law.mean),
        "error": law.mean_error,
    }
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


def _limit(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    nu, trap, begin = rate(system, None), _trap(system), _begin(system, None)
    values = _described(trap, escape_law(limit_range(trap, nu, begin)), nu)
    best = optimum(begin)
    known = {"nu_optimal": best.nu(trap), "mean_optimal": best.time(trap)}
    return PointResult(values | {k: np.asarray(v) for k, v in known.items() if k in save.extra})


def _diffusion(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    _large_enough(n)
    tau = rate(system, n)
    one = step_range(
        learned(system).value, source(system), tau, n, system.threshold, _begin(system, n)
    )
    return PointResult(_described(_trap(system), escape_law(one), n * tau))


def exact_law(system: OnlineICA, n: int) -> Passage:
    """The law of the number of steps of the chain at n."""
    check(system, n)
    _large_enough(n)
    law, f = source(system), learned(system).value
    chain = Chain(f, law, rate(system, n), n, system.threshold, _even(system))
    return exact_passage(chain, _begin(system, n))


def _exact(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    found, unit = exact_law(system, n), float(n) ** 3
    values = {
        "mean": np.asarray(found.mean / unit),
        "sd": np.asarray(found.sd / unit),
        "survival": at_ages(found.survival, found.mean),
        "error": np.asarray(found.error),
    }
    return PointResult(values)


_ENGINES = (*COMMON, AVERAGES, NUMERICS, OVERLAP, OWN, __package__)
_RATTRAY = "Rattray 2002, (24)-(26), which online ICA has too"
ESCAPE = Limit[OnlineICA](
    name="escape",
    role=Role.ESCAPE,
    rank=1,
    about=About(
        text="law of the escape from Q = 0 as n → ∞ at fixed ν",
        accuracy="converged",
        equations=f"{_RATTRAY}, first passages to infinity as n -> infinity",
        engines=(*_ENGINES, DIFFUSIONS),
    ),
    outputs=Outputs((*MEAN, *_TRAP, LAW, ERROR), extras=_BEST, coords=over_age),
    cost=Cost(seconds=lambda system, n, last: 0.3),
    scope=Scope(refuses=refusal(_of_limit), ignores=frozenset({"threshold"})),
    run=_limit,
)
ESCAPE_EXACT = replace(
    ESCAPE,
    name="escape_exact",
    rank=None,
    about=About(
        text="law of the escape from Q = 0 at n, from the exact chain",
        accuracy="exact",
        equations="Wang and Lu 2017, eq. (1)-(2): h - E h(Q') = 1 for the chain that is exact "
        "in law, by collocation",
        engines=(*_ENGINES, PASSAGES),
    ),
    outputs=replace(ESCAPE.outputs, always=(*MEAN, LAW, ERROR), extras=()),
    cost=Cost(seconds=lambda system, n, last: max(2.5, (n or 1) / 70)),
    scope=Scope(refuses=refusal(lambda system: check(system, LEAST)), n=Size.DIMENSION),
    run=_exact,
)
ESCAPE_DIFFUSION = replace(
    ESCAPE,
    name="escape_diffusion",
    rank=None,
    about=About(
        text="law of the escape from Q = 0 by the diffusion at n",
        accuracy="approximate",
        equations=(
            "diffusion with the exact mean and variance of one step of (1)-(2) at dimension n"
        ),
        engines=(*_ENGINES, DIFFUSIONS, PASSAGES),
    ),
    outputs=replace(ESCAPE.outputs, extras=()),
    cost=Cost(seconds=lambda system, n, last: 0.4 * max(1.0, (n or 1) / 400)),
    scope=Scope(refuses=refusal(_of_diffusion), n=Size.DIMENSION),
    run=_diffusion,
)
TRAPS = (ESCAPE, ESCAPE_EXACT, ESCAPE_DIFFUSION)
"""Theory of the escape; at n what is exact comes first."""
