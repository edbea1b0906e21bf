"""Escape of online ICA from Q = 0 by theory: at n, as n grows, and at a fixed step size.

With nu = n tau of order one r = sqrt(n) Q obeys (24)-(26) of Rattray (2002), whose Hebbian rule has
the same first terms; f lets it escape where kappa4 <f'''(z)> < 0, as x^3 does for uniform sources,
within n^3 steps for an odd f. At a fixed tau it takes n C exp(n S) steps. From an informative start
the limit in t = k/n arrives.
"""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits import escape as theory
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.limits.overlap.nonlinear import drift_of
from hdica.limits.passage.chain import NormalisedChain, diffusion_range, exact_passage
from hdica.limits.passage.samples import Trapped
from hdica.limits.passage.wkb import Action, action, check_tails
from hdica.systems import method, trials
from hdica.systems.fields import at_dimension, averages, prior, schedule, source, start
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.online_ica.system import OnlineICA, learned, passage_refusal, step_unit
from hdica.systems.projected.simulation import OWN

if TYPE_CHECKING:
    import xarray as xr

LEAST = 3
_ENGINES = (
    *(*method.COMMON, method.AVERAGES, method.NEAR_ZERO, method.NUMERICS, method.OVERLAP),
    *(OWN, __package__),
)
_RULE = "Wang and Lu 2017, eq. (1)-(2)"
_RATTRAY = "Rattray 2002, (24)-(26), which online ICA has too"
_WKB = f"{_RULE}, large deviations of the chain that is exact in law"


def rate(system: OnlineICA, n: int | None) -> float:
    """The constant step size: nu as n -> infinity, tau at n."""
    why, unit = passage_refusal(system), step_unit(system)
    if not why and n is None and unit != "nu":
        why = (
            f"tau = {system.tau!r} is not allowed for escape times as n -> infinity (give nu = n "
            "tau, which stays finite there, or n)"
        )
    if why:
        raise HdicaError(why)
    steps = schedule(system if n is None else at_dimension(system, n), "nu" if n is None else "tau")
    if steps.constant is None:
        raise HdicaError(
            f"{unit} = {getattr(system, unit)!r} is not allowed for escape times (a constant step "
            "size)"
        )
    return steps.constant


def _begin(system: OnlineICA, n: int | None) -> theory.Begin:
    """The start in the terms of escape times."""
    q0, by_overlap = start(system).overlap(prior(system)), "overlap" in system.start
    exact = by_overlap and bool(system.start.get("exact", False))
    if by_overlap and (q0 == 0 or (exact and n is not None)):
        return ("zero" if exact else "random") if q0 == 0 else abs(q0)
    allowed = "overlap: 0, exact or not" + ("" if n is None else ", or {overlap: Q0, exact: true}")
    raise HdicaError(f"start = {system.start!r} is not allowed for escape times ({allowed})")


def _trap(system: OnlineICA) -> theory.Trap:
    """P, kappa4 and <f'''(z)>, of an f with which R = 0 can be left."""
    trap = theory.near_zero(learned(system), source(system))
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


def check(system: OnlineICA, n: int | None, trapped: bool = False) -> None:
    """Refuse what has no escape from Q = 0: another rule, a moving step size, a start outside.

    What is ``trapped`` on the scale of nu needs an f that leads away, and at n equal sides.
    """
    rate(system, n)
    _begin(system, n)
    if trapped:
        _trap(system)
    if trapped and n is not None:
        check_even(system, "the diffusion of abs(Q)")


def chain_at(system: OnlineICA, n: int) -> NormalisedChain:
    """The chain of the overlap at n."""
    if n < LEAST:
        raise HdicaError(f"n: {n} is not allowed (at least {LEAST})")
    f, tau = learned(system).value, rate(system, n)
    return NormalisedChain(f, source(system), tau, n, system.threshold, _even(system))


def trapped(system: OnlineICA) -> Trapped:
    """The trap at Q = 0 and the chains in it, of any step size and level."""
    one = system.model_copy(update={"tau": None, "nu": 1.0, "start": {"overlap": 0.0}})
    check(one, None, trapped=True)
    check_even(one, "samples from a random start")
    f, law = learned(one).value, source(one)
    return Trapped(_trap(one), lambda n, tau, q: NormalisedChain(f, law, tau, n, q, even=True))


def _law_values(trap: theory.Trap, law: theory.EscapeLaw, nu: float) -> dict[str, Array]:
    """What the escape law of a diffusion gives."""
    values: dict[str, Array | float] = {
        "mean": law.mean,
        "sd": law.sd,
        "median": law.median,
        "kramers": theory.safe_exp(trap.log_kramers(nu)),
        "exponent": trap.exponent(nu),
        "survival": trials.at_ages(law.survival, law.mean),
        "error": law.mean_error,
    }
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


def _limit(system: OnlineICA, save: Save) -> PointResult:
    nu, trap, begin = rate(system, None), _trap(system), _begin(system, None)
    law, best = theory.escape_law(theory.limit_range(trap, nu, begin)), theory.optimum(begin)
    least = {"nu_optimal": best.nu(trap), "mean_optimal": best.time(trap)}
    extras = {k: np.asarray(v) for k, v in least.items() if k in save.extra}
    return PointResult(_law_values(trap, law, nu) | extras)


def _diffusion(system: OnlineICA, n: int) -> PointResult:
    chain = chain_at(system, n)
    law = theory.escape_law(diffusion_range(chain, _begin(system, n)))
    return PointResult(_law_values(_trap(system), law, n * chain.tau))


def _exact(system: OnlineICA, n: int) -> PointResult:
    check(system, n)
    law = exact_passage(chain_at(system, n), _begin(system, n))
    return PointResult(trials.exact_values(law, n))


_EXPONENT = (
    Output("S", (), "exponent of the mean escape time n C exp(n S), in steps"),
    Output("prefactor", (), "C"),
    Output("S_diffusion", (), "what a diffusion has in the place of S"),
    Output("Q_unstable", (), "the overlap to be reached, an unstable fixed point of the limit"),
    Output("S_error", (), "error of S, from refinement"),
    Output("prefactor_error", (), "error of C, from refinement"),
    Output("S_diffusion_error", (), "error of what a diffusion has, from refinement"),
    Output("Q_unstable_error", (), "error of the overlap to be reached, from refinement"),
)


def _action(system: OnlineICA, tau: float) -> Action:
    check_even(system, "escapes by WKB")
    law, f = source(system), learned(system)
    check_tails(law)
    # Of the step size tau: at finite n it may be nu/n, at which the limit in t has no drift.
    states = find_fixed_points(drift_of(f, law).of_batch(system.batch), tau)
    unstable = states.q[(states.q > 0) & ~states.stable]
    rests = bool(states.stable[states.q == 0][0])
    if not (rests and unstable.size and unstable[0] < 1):
        raise HdicaError(
            f"tau: {tau:.6g} is not allowed for escapes at fixed tau by WKB (there is no unstable "
            "overlap to reach: it must be below the critical step size, and f must learn the "
            "source)"
        )
    return action(f, law, tau, float(unstable[0]))


def _wkb(system: OnlineICA, n: int) -> PointResult:
    check(system, n)
    escape = _action(system, rate(system, n))
    if system.threshold <= escape.unstable:
        raise HdicaError(
            f"threshold = {system.threshold} is not allowed for escapes by WKB (beyond the "
            f"unstable overlap {escape.unstable:.4g}, from which on the way is short)"
        )
    mean = np.asarray(theory.safe_exp(escape.log_steps(n)) / float(n) ** 3)
    # From a deep trap it escapes at a constant rate.
    values = {"mean": mean, "sd": mean, "survival": np.exp(-trials.AGES)}
    return PointResult({**values, "error": np.asarray(escape.error(n))})


def _tau_alone(system: OnlineICA) -> float:
    if system.tau is None:
        raise HdicaError(
            f"nu = {system.nu!r} is not allowed for the exponent of the escape (give tau: the "
            "exponent is that at a fixed tau)"
        )
    return rate(system, LEAST)


def _exponent(system: OnlineICA) -> PointResult:
    pairs = zip(_EXPONENT, astuple(_action(system, _tau_alone(system))), strict=True)
    return PointResult({output.name: np.asarray(value) for output, value in pairs})


def arrival(system: OnlineICA, tau: float) -> tuple[float, float]:
    """Time t at which the ODE reaches the threshold, and its error; infinite if it never does."""
    from scipy.integrate import quad

    begin, end = abs(start(system).overlap(prior(system))), system.threshold
    if begin >= end:
        return 0.0, 0.0
    moved = drift_of(learned(system), source(system))
    states = find_fixed_points(moved, tau)
    between = (states.q > begin - states.error) & (states.q < end + states.error)
    if between.any() or not moved.at(np.array(begin), tau) > 0:
        return math.inf, 0.0
    # In the logarithm of Q, of which the drift near 0 is the rate.
    ends = math.log(begin), math.log(end)

    def slowness(log: float) -> float:
        at = np.array([math.exp(log)])
        return float(at[0] / moved.at(at, tau)[0])

    time, error = quad(slowness, *ends, epsabs=0.0, epsrel=1e-10, limit=500)
    return float(time), float(error)


def _arrival(system: OnlineICA, n: int) -> PointResult:
    check(system, n)
    time, error = arrival(system, rate(system, n))
    values = {
        "mean": time / float(n) ** 2,
        "sd": 0.0,
        # A limit is not random: all of it arrives at its one time. Its hazard is finite, so that
        # between ages it can be drawn.
        "survival": np.where(trials.AGES <= 1, 1.0, np.finfo(float).tiny),
        "error": error / time if 0 < time < math.inf else 0.0,
    }
    return PointResult({name: np.asarray(value, dtype=float) for name, value in values.items()})


_AT_N = method.Scope[OnlineICA](
    refuses=method.refusal(lambda system: check(system, LEAST)), n=method.Size.DIMENSION
)
_LAW = (trials.MEAN, trials.SD, trials.SURVIVAL, trials.ERROR)
ESCAPE = method.Limit[OnlineICA](
    name="escape",
    role=method.Role.ESCAPE,
    rank=1,
    about=method.About(
        text="law of the escape from Q = 0 as n → ∞ at fixed ν",
        accuracy="converged",
        equations=f"{_RATTRAY}, first passages to infinity as n -> infinity",
        engines=_ENGINES,
    ),
    outputs=method.Outputs(
        (
            trials.MEAN,
            trials.SD,
            trials.MEDIAN,
            trials.KRAMERS,
            trials.EXPONENT,
            trials.SURVIVAL,
            trials.ERROR,
        ),
        extras=(trials.NU_OPTIMAL, trials.MEAN_OPTIMAL),
        coords=trials.over_age,
    ),
    cost=method.Cost(seconds=lambda system, n, last: 0.3),
    scope=method.Scope(
        refuses=method.refusal(lambda system: check(system, None, True)),
        ignores=frozenset({"threshold"}),
    ),
    run=lambda system, times, n, seed, save: _limit(system, save),
)
ESCAPE_EXACT = replace(
    ESCAPE,
    name="escape_exact",
    rank=None,
    about=method.About(
        text="law of the escape from Q = 0 at n, from the exact chain",
        accuracy="exact",
        equations=f"{_RULE}: h - E h(Q') = 1 for the chain that is exact in law, by collocation",
        engines=(*_ENGINES, method.PASSAGES),
    ),
    outputs=replace(ESCAPE.outputs, always=_LAW, extras=()),
    cost=method.Cost(seconds=lambda system, n, last: max(2.5, (n or 1) / 70)),
    scope=_AT_N,
    run=lambda system, times, n, seed, save: _exact(system, n or 0),
)
ESCAPE_DIFFUSION = replace(
    ESCAPE,
    name="escape_diffusion",
    rank=None,
    about=method.About(
        text="law of the escape from Q = 0 by the diffusion at n",
        accuracy="approximate",
        equations=(
            "diffusion with the exact mean and variance of one step of (1)-(2) at dimension n"
        ),
        engines=(*_ENGINES, method.PASSAGES),
    ),
    outputs=replace(ESCAPE.outputs, extras=()),
    cost=method.Cost(seconds=lambda system, n, last: 0.4 * max(1.0, (n or 1) / 400)),
    scope=method.Scope(
        refuses=method.refusal(lambda system: check(system, LEAST, True)), n=method.Size.DIMENSION
    ),
    run=lambda system, times, n, seed, save: _diffusion(system, n or 0),
)
ESCAPE_WKB = method.Limit[OnlineICA](
    name="escape_wkb",
    role=method.Role.ESCAPE,
    about=method.About(
        text="mean escape time from Q = 0 at n and fixed τ, n C exp(n S) steps",
        accuracy="approximate",
        equations=f"{_WKB}: n C exp(n S) steps, the leading order in 1/n",
        engines=(*_ENGINES, method.PASSAGES),
    ),
    outputs=method.Outputs(_LAW, coords=trials.over_age),
    cost=method.Cost(seconds=lambda system, n, last: 1.0),
    scope=_AT_N,
    run=lambda system, times, n, seed, save: _wkb(system, n or 0),
)
ESCAPE_EXPONENT = replace(
    ESCAPE_WKB,
    name="escape_exponent",
    role=method.Role.OTHER,
    about=replace(
        ESCAPE_WKB.about,
        text="exponent and prefactor of the escape from Q = 0 at fixed τ",
        accuracy="converged",
        equations=f"{_WKB}: S and C of n C exp(n S)",
        engines=tuple(each for each in ESCAPE_WKB.about.engines if each != method.NEAR_ZERO),
    ),
    outputs=method.Outputs(_EXPONENT, coords=lambda times: {}),
    scope=method.Scope(
        refuses=method.refusal(_tau_alone), ignores=frozenset({"start", "threshold"})
    ),
    run=lambda system, times, n, seed, save: _exponent(system),
)
ESCAPE_ODE = method.Limit[OnlineICA](
    name="escape_ode",
    role=method.Role.ESCAPE,
    about=method.About(
        text="when the limit in t = k/n reaches the threshold from an informative start",
        accuracy="converged",
        equations=(
            "Wang and Lu 2017, dQ/dt below (11): the integral of dQ over it, as n -> infinity"
        ),
        engines=_ENGINES,
    ),
    outputs=method.Outputs(_LAW, coords=trials.over_age),
    cost=method.Cost(seconds=lambda system, n, last: 0.1, prepares=averages("drift")),
    scope=_AT_N,
    run=lambda system, times, n, seed, save: _arrival(system, n or 0),
)
METHODS = (*(ESCAPE, ESCAPE_EXACT, ESCAPE_DIFFUSION), *(ESCAPE_WKB, ESCAPE_ODE, ESCAPE_EXPONENT))
"""Theory of the escape: at n what is exact comes first."""


def escape_exponent(system: OnlineICA) -> xr.Dataset:
    """How the escape of online ICA from Q = 0 grows with n at a fixed step size: n C exp(n S).

    Noise leads from Q = 0 over an unstable overlap to the feature. At nu = n tau fixed that takes
    n^3 steps (:func:`hdica.escape_time`), at tau fixed n C exp(n S), and as tau -> 0 the two are
    one: n S -> 3 P nu/(4 C), the exponent of the trap of Rattray (2002). A diffusion with the same
    drift and variance has another exponent.

    Parameters
    ----------
    system
        Online ICA with phi = 0 and a constant tau below the critical one.

    Returns
    -------
    xarray.Dataset
        ``S``, ``prefactor`` (C), ``S_diffusion``, the exponent that a diffusion has, and
        ``Q_unstable``, the overlap to be reached; of each an absolute error, ``S_error`` and so on,
        from two rules for the averages and from panels of Q that are halved until they agree.

    Raises
    ------
    HdicaError
        If tau is no constant or leaves nothing to learn, if the tails of the source are heavier
        than Gaussian, as of Laplace's: then single large samples escape and there is no exponent;
        or if refinement does not find S to one part in a million and C to one in a thousand.

    Examples
    --------
    >>> import hdica
    >>> found = hdica.escape_exponent(hdica.OnlineICA(tau=0.08, source="rademacher"))
    >>> float(found["S"].round(6)), float(found["prefactor"].round(3))
    (0.186699, 20.841)
    """
    # Records are read by commands that need no labelled data.
    from hdica.systems.labelled import by_method

    return by_method(system, "escape_exponent")
