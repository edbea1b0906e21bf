"""Methods of Hebbian ICA at and near its fixed points: states, folds, eigenvalues, annealing."""

from __future__ import annotations

import math

import numpy as np

from hdica.ingredients.save import Save
from hdica.limits.overlap.nonlinear import folds_of
from hdica.systems.fields import averages, formula
from hdica.systems.hebbian_ica.fields import (
    given_rate,
    mu_of,
    samples,
    signs,
    sources,
    start_overlap,
    turned,
    unit,
)
from hdica.systems.hebbian_ica.limit.asymptotics import (
    Rates,
    annealed_decay,
    annealed_limit,
    critical_mu0,
    eigensystem,
    rates,
)
from hdica.systems.hebbian_ica.limit.equation_17 import Field, make_field
from hdica.systems.hebbian_ica.methods.escape import HOME, IGNORED, PAIR, PAPER
from hdica.systems.hebbian_ica.system import (
    HebbianICA,
    batched_refusal,
    modes_held,
    overlaps_held,
    plain_refusal,
)
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    NUMERICS,
    OVERLAP,
    About,
    Cost,
    Limit,
    Outputs,
    Refuses,
    Role,
    Scope,
    States,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult, padded

MAX_TRANSITIONS = 12
MAX_STATES = 2048
"""Four projections of four equal sources have more than a thousand, images not counted."""
_PROBES = np.array([0.0, 1.0, 10.0, 1e3, 1e5])


def field_of(system: HebbianICA) -> Field:
    """Right-hand side of (17)."""
    return make_field(signs(system).tolist(), formula(system, "nonlinearity"), sources(system))


def limit_refusal(system: HebbianICA) -> str:
    """Empty if (17) is the limit of this system, else the sentence that says why not."""
    if unit(system) != "mu":
        return (
            f"the limit on the scale t = k/n needs mu, and {unit(system)} is given (mu = n eta "
            "stays finite there; with nu = n^2 eta, R stays of order n^-1/2: hdica.escape_time)"
        )
    if system.alpha >= 1:
        return f"alpha = {system.alpha:g} is not allowed for the limit (0 < alpha < 1)"
    return ""


def steady_refusal(system: HebbianICA) -> str:
    """Empty if the system has steady states, else why not.

    A batch of m at mu moves m times as fast as single samples at mu/m, and so has their states.
    """
    why = limit_refusal(system) or batched_refusal(system, "a list of fixed points")
    if not why and mu_of(system).constant is None:
        return f"mu = {system.mu!r} is not allowed for fixed points (a constant step size)"
    return why


def _fixed_points(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    from hdica.systems.hebbian_ica.limit.equation_17 import eigenvalues
    from hdica.systems.hebbian_ica.states.found import states

    field, mu = field_of(system), mu_of(system).constant
    assert mu is not None
    # mu L + (mu^2/m) D = m {(mu/m) L + (mu/m)^2 D}.
    m = samples(system)
    alone = mu / m
    found = states(field, alone)
    slowest = m * np.array([float(eigenvalues(field, r, alone).real.max()) for r in found.r])
    columns = {
        "eigenvalue": slowest,
        "stable": (slowest < 0).astype(float),
        "kind": np.array([0.0 if np.any(one) else 1.0 for one in found.r]),
        "multiplicity": found.multiplicity,
        "hits": found.hits,
    }
    values = padded(columns, MAX_STATES, "fixed points")
    values["R"] = np.full((MAX_STATES, *field.shape), math.nan)
    values["R"][: len(found.r)] = found.r
    values["certified"] = np.asarray(float(found.certified))
    values["starts"] = np.asarray(float(found.starts))
    values["unseen"] = np.asarray(found.unseen)
    return PointResult(values)


def _search_seconds(system: HebbianICA) -> float:
    """Measured with cubic polynomials and tanh, whose averages need quadrature."""
    size = float(system.projections * len(system.sources))
    if formula(system, "nonlinearity").coefficients is None:
        return 0.8 * size**2.2
    return 0.1 * size**2.2


_AT = ("fixed_point",)
FIXED_POINTS = States[HebbianICA](
    name="fixed_points",
    role=Role.STEADY_STATES,
    rank=1,
    about=About(
        text="optimal, mixed and symmetric states with their stability, proved complete for "
        "polynomial f and K·M ≤ 6, else as many as a search finds",
        accuracy="converged",
        equations=f"{PAPER}, zeros of (17), Newton's method from many starts and branch and prune",
        engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, HOME),
    ),
    outputs=Outputs(
        (
            Output("R", (*_AT, *PAIR), "overlap R at the fixed point"),
            Output("eigenvalue", _AT, "largest real part of the Jacobian's eigenvalues"),
            Output("stable", _AT, "1 if stable, 0 if unstable"),
            Output("kind", _AT, "0 informative, 1 uninformative (R = 0)"),
            Output("multiplicity", _AT, "number of images under changes of sign and exchanges"),
            Output("hits", _AT, "starts of the search that ended at it or an image of it"),
            Output("certified", (), "1 if it is proved that there is no other fixed point, else 0"),
            Output("starts", (), "number of starts of the search"),
            Output("unseen", (), "share of further starts expected to end at a state not listed"),
        ),
        coords=lambda times: {"fixed_point": np.arange(MAX_STATES)},
    ),
    cost=Cost(
        seconds=lambda system, n, last: _search_seconds(system),
        prepares=averages("drift", "noise"),
        memory=overlaps_held,
    ),
    scope=Scope(refuses=steady_refusal, ignores=IGNORED | {"start", "alpha"}),
    run=_fixed_points,
)


def _critical(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """Folds of projection i and source i alone: at an optimal state of odd phi they decouple."""
    found: list[tuple[float, float, float]] = []
    for sign, source in zip(signs(system).tolist(), sources(system), strict=False):
        known, error = folds_of(turned(system, sign), source)
        found += zip(known.tau.tolist(), known.q.tolist(), error.tolist(), strict=True)
    rows = np.array(sorted(set(found), reverse=True)).reshape(-1, 3).T
    columns = dict(zip(("value", "R", "error"), rows, strict=True))
    columns["kind"] = np.zeros(rows.shape[1])
    return PointResult(padded(columns, MAX_TRANSITIONS, "transitions"))


def _critical_refusal(system: HebbianICA) -> str:
    why = plain_refusal(system, "a critical value")
    if why:
        return why
    phi = formula(system, "nonlinearity")
    odd = np.array([0.3, 1.1, 2.7])
    if not np.allclose(phi.value(odd), -phi.value(-odd), rtol=1e-12, atol=0.0):
        return (
            f"nonlinearity = {system.nonlinearity!r} is not allowed for critical values "
            "(an odd function: only then do the entries of an optimal state decouple)"
        )
    return ""


CRITICAL = States[HebbianICA](
    name="critical",
    role=Role.TRANSITIONS,
    rank=1,
    about=About(
        text="the μ at which states end",
        accuracy="converged",
        equations=f"{PAPER}, fold of (17) for projection i and source i",
        engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, HOME),
    ),
    outputs=Outputs(
        (
            Output("value", ("transition",), "critical value of mu"),
            Output("R", ("transition",), "overlap R_ii of the state that ends there"),
            Output("error", ("transition",), "error of the critical value"),
            Output("kind", ("transition",), "0 fold"),
        ),
        coords=lambda times: {"transition": np.arange(MAX_TRANSITIONS)},
    ),
    cost=Cost(seconds=lambda system, n, last: 2e-2, prepares=averages("drift", "noise")),
    scope=Scope(
        refuses=_critical_refusal, ignores=IGNORED | {"mu", "eta", "nu", "nu2", "start", "alpha"}
    ),
    run=_critical,
    varies="mu",
)


def annealing(system: HebbianICA) -> tuple[float, float] | None:
    """mu0 and t0 of a step size mu = mu0/(t + t0), or None if it is another function of t."""
    if unit(system) != "mu":
        return None
    with np.errstate(divide="ignore"):
        inverse = 1 / given_rate(system).value(_PROBES)
    if not np.all(np.isfinite(inverse)):
        return None
    slope = float((inverse[-1] - inverse[0]) / _PROBES[-1])
    straight = np.allclose(inverse, inverse[0] + slope * _PROBES, rtol=1e-10, atol=1e-10)
    return (1 / slope, float(inverse[0]) / slope) if straight and slope > 0 else None


def rates_of(system: HebbianICA) -> Rates:
    """What the asymptotic dynamics at R* = I needs."""
    return rates(signs(system).tolist(), formula(system, "nonlinearity"), sources(system))


_unstable: Refuses[HebbianICA] = refusal(lambda system: critical_mu0(rates_of(system)))
"""Empty if R* = I is a stable optimal state of a system, else why not."""


def annealing_refusal(system: HebbianICA) -> str:
    """Empty if (19)-(20) apply to this system from its start, else why not."""
    why = limit_refusal(system) or plain_refusal(system, "annealing")
    if why:
        return why
    found, begin = annealing(system), start_overlap(system)
    if found is None or not found[1] > 0:
        return f"mu = {system.mu!r} is not allowed for annealing (mu0/(t + t0) with t0 > 0)"
    near = np.eye(system.projections, len(system.sources))
    if begin is None or float(np.abs(begin - near).max()) >= 1:
        return f"start = {system.start} is not allowed for annealing (an overlap near R* = I)"
    return _unstable(system)


def _annealed(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    found, begin = annealing(system), start_overlap(system)
    assert found is not None
    assert begin is not None
    best = np.eye(*begin.shape)
    u = annealed_decay(rates_of(system), found[0], found[1], begin - best, times + found[1])
    return PointResult({"R": best + u})


ANNEALED = Limit[HebbianICA](
    name="annealed",
    role=Role.LIMIT,
    about=About(
        text="learning curves for μ₀/(t + t₀), to first order",
        accuracy="approximate",
        equations=f"{PAPER}, (19)-(20), to first order in R - R*",
        engines=(*COMMON, AVERAGES, NUMERICS, HOME),
    ),
    outputs=Outputs(
        (Output("R", ("time", *PAIR), "overlap R = R* + u near the optimal state R* = I"),)
    ),
    cost=Cost(seconds=lambda system, n, last: 5e-3, memory=modes_held),
    scope=Scope(refuses=annealing_refusal, ignores=IGNORED | {"alpha"}),
    run=_annealed,
)


def _asymptotics(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    known = rates_of(system)
    found, shape = known.xi.size, known.shape
    annealed, critical = annealing(system), critical_mu0(known)
    columns = np.full((5, shape[1]), math.nan)
    # The minimum of (21) over mu0, source by source: -<phi^2>/(2 xi_i^2) with mu0 = 1/xi_i.
    best = 1 / known.xi, -known.power / (2 * known.xi**2)
    columns[:, :found] = known.xi, known.power, *best, known.error
    decay = np.full(shape, math.nan)
    if annealed is not None and annealed[0] > critical:
        decay = annealed_limit(known, annealed[0])
    names = ("xi", "power", "mu0_optimal", "decay_optimal", "error")
    values = dict(zip(names, columns, strict=True))
    modes = eigensystem(known)
    values |= {"eigenvalue": modes.values, "decay": decay}
    if EIGENMATRICES.name in save.extra:
        values[EIGENMATRICES.name] = modes.matrices
    return PointResult(values | {"mu0_critical": np.asarray(critical)})


_SOURCE = ("source",)
EIGENMATRICES = Output("V", ("row", "column", *PAIR), "eigenmatrices V of (35), one an eigenvalue")
ASYMPTOTICS = Limit[HebbianICA](
    name="asymptotics",
    role=Role.OTHER,
    about=About(
        text="eigenvalues and eigenmatrices at the optimal state",
        accuracy="converged",
        equations=f"{PAPER}, (21), (35) and (36) with the rows i > M of K > M corrected",
        engines=(*COMMON, AVERAGES, NUMERICS, HOME),
    ),
    outputs=Outputs(
        (
            Output(
                "xi", _SOURCE, "xi_i = sigma_i <s phi(s) - phi'(s)> of projection i on source i"
            ),
            Output("power", _SOURCE, "<phi(s)^2>"),
            Output("eigenvalue", PAIR, "eigenvalue over mu of the Jacobian at R* = I, (36)"),
            Output("mu0_critical", (), "least mu0 of mu = mu0/t with a decay as 1/t"),
            Output("mu0_optimal", _SOURCE, "mu0 with the fastest decay of R_ii - 1, 1/xi_i"),
            Output("decay_optimal", _SOURCE, "limit of t (R_ii - 1) with it"),
            Output("decay", PAIR, "limit of t (R - R*) with the mu0 of this system, (21)"),
            Output("error", _SOURCE, "larger of the relative errors of xi and of <phi(s)^2>"),
        ),
        extras=(EIGENMATRICES,),
    ),
    cost=Cost(seconds=lambda system, n, last: 5e-3, memory=modes_held),
    scope=Scope(
        refuses=lambda system: plain_refusal(system, "the optimal state") or _unstable(system),
        ignores=IGNORED | {"alpha", "start"},
    ),
    run=_asymptotics,
)

METHODS = (FIXED_POINTS, CRITICAL, ANNEALED, ASYMPTOTICS)
