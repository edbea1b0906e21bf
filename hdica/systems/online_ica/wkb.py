"""Escape of online ICA from Q = 0 at a fixed tau: n C exp(n S) steps, and S and C themselves."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits.averages.trap import safe_exp
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.limits.overlap.nonlinear import drift_of
from hdica.limits.passage.action import Action, action, check_tails
from hdica.systems.fields import source
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    NUMERICS,
    OVERLAP,
    PASSAGES,
    About,
    Cost,
    Limit,
    Method,
    Outputs,
    Role,
    Scope,
    Size,
    refusal,
)
from hdica.systems.online_ica.system import OnlineICA, learned
from hdica.systems.online_ica.trap import ERROR, LAW, LEAST, MEAN, check, check_even, rate
from hdica.systems.outputs import AGES, Array, Output, PointResult, over_age
from hdica.systems.projected.simulation import OWN
from hdica.systems.system import System

if TYPE_CHECKING:
    import xarray as xr

_ABOUT = "Wang and Lu 2017, eq. (1)-(2), large deviations of the chain that is exact in law"
_ENGINES = (*COMMON, AVERAGES, NUMERICS, OVERLAP, OWN, PASSAGES, __package__)
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


def _wkb(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    check(system, n)
    escape = _action(system, rate(system, n))
    if system.threshold <= escape.unstable:
        raise HdicaError(
            f"threshold = {system.threshold} is not allowed for escapes by WKB (beyond the "
            f"unstable overlap {escape.unstable:.4g}, from which on the way is short)"
        )
    mean = np.asarray(safe_exp(escape.log_steps(n)) / float(n) ** 3)
    # From a deep trap it escapes at a constant rate.
    values = {"mean": mean, "sd": mean, "survival": np.exp(-AGES)}
    return PointResult({**values, "error": np.asarray(escape.error(n))})


def _tau_alone(system: OnlineICA) -> float:
    if system.tau is None:
        raise HdicaError(
            f"nu = {system.nu!r} is not allowed for the exponent of the escape (give tau: the "
            "exponent is that at a fixed tau)"
        )
    return rate(system, LEAST)


def _exponent(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    pairs = zip(_EXPONENT, astuple(_action(system, _tau_alone(system))), strict=True)
    return PointResult({output.name: np.asarray(value) for output, value in pairs})


ESCAPE_WKB = Limit[OnlineICA](
    name="escape_wkb",
    role=Role.ESCAPE,
    about=About(
        text="mean escape time from Q = 0 at n and fixed τ, n C exp(n S) steps",
        accuracy="approximate",
        equations=f"{_ABOUT}: n C exp(n S) steps, the leading order in 1/n",
        engines=_ENGINES,
    ),
    outputs=Outputs((*MEAN, LAW, ERROR), coords=over_age),
    cost=Cost(seconds=lambda system, n, last: 1.0),
    scope=Scope(refuses=refusal(lambda system: check(system, LEAST)), n=Size.DIMENSION),
    run=_wkb,
)
ESCAPE_EXPONENT = replace(
    ESCAPE_WKB,
    name="escape_exponent",
    role=Role.OTHER,
    about=replace(
        ESCAPE_WKB.about,
        text="exponent and prefactor of the escape from Q = 0 at fixed τ",
        accuracy="converged",
        equations=f"{_ABOUT}: S and C of n C exp(n S)",
    ),
    outputs=Outputs(_EXPONENT, coords=lambda times: {}),
    scope=Scope(refuses=refusal(_tau_alone), ignores=frozenset({"start", "threshold"})),
    run=_exponent,
)


def _own(record: System) -> list[Method]:
    return [one for one in record.methods if one.name == ESCAPE_EXPONENT.name]


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
    from hdica.systems.labelled import candidates, computed, first_of

    chosen = first_of(candidates(system, "auto", "escape_exponent", _own, _own), system)
    return computed(system, chosen)
