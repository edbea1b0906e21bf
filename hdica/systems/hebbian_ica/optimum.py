"""Hebbian ICA at its fixed points and near the optimal one: states, eigenvalues, annealing.

Near R* = I: eigensystem (36) and annealing (18)-(21), Rattray 2002, section 4.1 and appendix B.
With m = min(K, M) and xi_i = sigma_i <s phi - phi'> for i <= m, the Jacobian (34) couples only R_ij
and R_ji. Rows i > M of more projections than sources decay at xi_j / 2, a case missing in (36).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import features
from hdica.limits.averages.expectations import average, gain_at, power_at
from hdica.limits.averages.expectations import averages as averages_of
from hdica.limits.overlap.nonlinear import folds_of
from hdica.systems import method
from hdica.systems.fields import averages, formula
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.escapes import ENGINES, IGNORED, PAIR, PAPER
from hdica.systems.hebbian_ica.ode import Field, eigenvalues, make_field
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import Array, Output, PointResult, padded
from hdica.systems.projected.learning import odd

_BELOW = 1e-7


@dataclass(frozen=True)
class Rates:
    """What the asymptotic dynamics needs of phi and the sources; m = min(K, M)."""

    # sigma_i <s_i phi(s_i) - phi'(s_i)>, shape (m,); all positive where R* is stable, (14).
    xi: Array
    power: Array  # <phi(s_i)^2>, shape (m,)
    # D(R*) of dR/dt = mu L + mu^2 D, shape (K, M): -<phi^2>/2 on the diagonal. Off it the product
    # of two <phi>, which is zero, and not in the paper, if phi is odd and the sources symmetric.
    loss: Array
    error: Array  # the larger of the relative errors of xi and of <phi^2>, shape (m,)

    @property
    def shape(self) -> tuple[int, int]:
        """Projections K and sources M."""
        return self.loss.shape[0], self.loss.shape[1]


def source_rate(phi: Formula, source: Source) -> tuple[float, float, float]:
    """<s phi(s) - phi'(s)>, <phi(s)^2>, and the larger of their relative errors."""
    blurred = 0.0
    if phi.coefficients is None:
        # Jumps belong to phi': just below one the projection smooths them, and a corner of the
        # law of s at a jump is smoothed by as much as sqrt(1 - R^2).
        steep = features(phi).steep
        at, blurred = (1.0 - _BELOW, math.sqrt(2 * _BELOW)) if steep else (1.0, 0.0)
        (gain, off), (power, other) = gain_at(phi, source, at), power_at(phi, source, at)
    else:
        series = averages_of(phi, source)
        gain, off = float(series.gain(1.0)), series.gain_error
        power, other = float(series.power(1.0)), series.power_error
    # Where phi vanishes on the source, as x^3 - x at +-1, the error of <phi^2> itself.
    of_power = other / power if power > other else other
    return gain, power, max(off / max(abs(gain), 1e-300), of_power) + blurred


def rates(sigma: Sequence[float], phi: Formula, sources: Sequence[Source]) -> Rates:
    """The rates of the optimal fixed point y_i = s_i, R* = I: projection i finds source i."""
    signs = np.asarray(sigma, dtype=float)
    count = min(signs.size, len(sources))
    own = np.array([source_rate(phi, source) for source in sources[:count]])
    level = [average(lambda c, u: phi.value(u), phi, one, 1.0)[0] for one in sources[:count]]
    # A projection beyond the sources is normal, whatever the source it is asked for.
    free = average(lambda c, u: phi.value(u), phi, sources[0], 0.0)[0]
    turned = signs * np.array([*level, *[free] * (signs.size - count)])
    loss = np.zeros((signs.size, len(sources)))
    loss[:, :count] = -0.5 * turned[:, None] * turned[:count]
    loss[range(count), range(count)] = -0.5 * own[:, 1]
    return Rates(signs[:count] * own[:, 0], own[:, 1], loss, own[:, 2])


@dataclass(frozen=True)
class Eigensystem:
    """Eigenvalues and eigenmatrices of (34)."""

    values: Array  # lambda_kl, shape (K, M)
    matrices: Array  # of lambda_kl at [:, :, k, l], shape (K, M, K, M): V_ijkl of (35)


def eigensystem(asymptotic: Rates) -> Eigensystem:
    """(36) with the rows i > M of K > M corrected.

    Where xi_i + xi_j = 0 for two found sources, which is no stable state, the two eigenmatrices
    of that pair coincide: (34) has no complete set there.
    """
    xi, count = asymptotic.xi, asymptotic.xi.size
    matrices = np.zeros((*asymptotic.shape, *asymptotic.shape))
    for i, j in np.ndindex(*asymptotic.shape):
        matrices[i, j, i, j] = 1.0
        if i < j < count:
            matrices[j, i, i, j] = -1.0
        elif j < i < count:
            matrices[i, j, i, j], matrices[j, i, i, j] = xi[i], xi[j]
    return Eigensystem(_eigenvalues(asymptotic), matrices)


def _eigenvalues(asymptotic: Rates) -> Array:
    i, j = np.indices(asymptotic.shape)
    xi, count = np.zeros(max(asymptotic.shape)), asymptotic.xi.size
    xi[:count] = asymptotic.xi
    of_pairs = -(xi[i] + xi[j]) / np.where(i < j, 2, 1)
    # Of a projection without a source, and of a source without a projection, one of the two is 0.
    values = np.where((i < count) & (j < count), of_pairs, -(xi[i] + xi[j] / 2))
    return np.where(i == j, -2 * xi[i], values)


def critical_mu0(asymptotic: Rates) -> float:
    """Smallest mu0 of mu = mu0/t with which R - R* decays as 1/t: -1/lambda_max."""
    if not np.all(asymptotic.xi > 0):
        raise HdicaError(
            f"xi = {asymptotic.xi.tolist()} is not allowed (all above zero: the optimal fixed "
            "point is unstable else, choose the other sign in sigma)"
        )
    return -1.0 / np.max(_eigenvalues(asymptotic))


def annealed_limit(asymptotic: Rates, mu0: float) -> Array:
    """(21): the limit of t (R - R*) for mu = mu0/t above the critical mu0, shape (K, M).

    On the diagonal -mu0^2 <phi^2> / (4 mu0 xi_i - 2); off it zero if phi is odd and the sources
    are symmetric.
    """
    system = eigensystem(asymptotic)
    modes = mu0**2 * _in_modes(system, asymptotic.loss) / (-mu0 * system.values.ravel() - 1)
    return _from_modes(system, modes[None])[0]


def _in_modes(system: Eigensystem, r: Array) -> Array:
    """Coefficients of a matrix (K, M) in the eigenmatrices, shape (KM,)."""
    basis = system.matrices.reshape(r.size, r.size)
    return np.asarray(np.linalg.solve(basis, r.ravel()))


def _from_modes(system: Eigensystem, modes: Array) -> Array:
    """Matrices, shape (T, K, M), of coefficients of shape (T, KM)."""
    size = system.values.size
    basis = system.matrices.reshape(size, size)
    return np.sum(modes[:, None] * basis, axis=2).reshape(-1, *system.values.shape)


def annealed_decay(asymptotic: Rates, mu0: float, start: float, u0: Array, times: Array) -> Array:
    """(19)-(20): R - R*, (T, K, M), for mu = mu0/t from ``start`` on, to first order in R - R*.

    ``u0`` is R - R* at the time ``start`` > 0; ``mu0`` may be below the critical one.
    """
    from scipy.special import exprel

    system, at = eigensystem(asymptotic), times[:, None]
    power = -mu0 * system.values.ravel()
    log = np.log(at / start)
    # X of (20) is mu0^2 log(t/tau_0)/t where mu0 lambda = -1, the limit of its quotient.
    x = mu0**2 / at * log * exprel(-(power - 1) * log)
    modes = np.exp(-power * log) * _in_modes(system, u0) + x * _in_modes(system, asymptotic.loss)
    return _from_modes(system, modes)


MAX_TRANSITIONS = 12
MAX_STATES = 2048
"""Four projections of four equal sources have more than a thousand, images not counted."""
_PROBES = np.array([0.0, 1.0, 10.0, 1e3, 1e5])


def _law(system: HebbianICA) -> tuple[list[float], Formula, tuple[Source, ...]]:
    """Signs, phi and sources."""
    phi = formula(system, "nonlinearity")
    return hebbian.signs(system).tolist(), phi, hebbian.sources(system)


def field_of(system: HebbianICA) -> Field:
    """Right-hand side of (17)."""
    return make_field(*_law(system))


def limit_refusal(system: HebbianICA) -> str:
    """Empty if (17) is the limit of this system, else the sentence that says why not."""
    if hebbian.unit(system) != "mu":
        return (
            f"the limit on the scale t = k/n needs mu, and {hebbian.unit(system)} is given (mu = n "
            "eta stays finite there; with nu = n^2 eta, R stays of order n^-1/2: hdica.escape_time)"
        )
    if system.alpha >= 1:
        return f"alpha = {system.alpha:g} is not allowed for the limit (0 < alpha < 1)"
    return ""


def steady_refusal(system: HebbianICA) -> str:
    """Empty if the system has steady states, else why not.

    A batch of m at mu moves m times as fast as single samples at mu/m, and so has their states.
    """
    why = limit_refusal(system) or hebbian.plain_refusal(
        system, "a list of fixed points", batches=True
    )
    if not why and hebbian.mu_of(system).constant is None:
        return f"mu = {system.mu!r} is not allowed for fixed points (a constant step size)"
    return why


def _fixed_points(system: HebbianICA, *_: object) -> PointResult:
    from hdica.systems.hebbian_ica.certificate import states

    field, mu, m = field_of(system), hebbian.mu_of(system).constant, hebbian.samples(system)
    assert mu is not None
    # mu L + (mu^2/m) D = m {(mu/m) L + (mu/m)^2 D}.
    alone = mu / m
    result = states(field, alone)
    slowest = m * np.array([eigenvalues(field, r, alone).real.max() for r in result.r])
    columns = {
        "eigenvalue": slowest,
        "stable": (slowest < 0).astype(float),
        "kind": np.array([0.0 if np.any(one) else 1.0 for one in result.r]),
        "multiplicity": result.multiplicity,
        "hits": result.hits,
    }
    values = padded(columns, MAX_STATES, "fixed points")
    values["R"] = np.full((MAX_STATES, *field.shape), math.nan)
    values["R"][: len(result.r)] = result.r
    values |= method.arrays(certified=result.certified, starts=result.starts, unseen=result.unseen)
    return PointResult(values)


def _search_seconds(system: HebbianICA) -> float:
    """Measured with cubic polynomials and tanh, whose averages need quadrature."""
    each = 0.8 if formula(system, "nonlinearity").coefficients is None else 0.1
    return each * float(np.prod(system.shape)) ** 2.2


_AT = ("fixed_point",)
FIXED_POINTS = method.States[HebbianICA](
    name="fixed_points",
    role=method.Role.STEADY_STATES,
    rank=1,
    about=method.About(
        text="optimal, mixed and symmetric states with their stability, proved complete for "
        "polynomial f and K·M ≤ 6, else as many as a search finds",
        accuracy="converged",
        equations=f"{PAPER}, zeros of (17), Newton's method from many starts and branch and prune",
        engines=(*ENGINES, method.OVERLAP),
    ),
    outputs=method.Outputs(
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
    cost=method.Cost(
        seconds=lambda system, n, last: _search_seconds(system),
        prepares=averages("drift", "noise"),
        memory=hebbian.numbers_of_overlaps,
    ),
    scope=method.Scope(refuses=steady_refusal, ignores=IGNORED | {"start", "alpha"}),
    run=_fixed_points,
)


def _critical(system: HebbianICA, *_: object) -> PointResult:
    """Folds of projection i and source i alone: at an optimal state of odd phi they decouple."""
    folds: list[tuple[float, float, float]] = []
    for sign, source in zip(hebbian.signs(system).tolist(), hebbian.sources(system), strict=False):
        of_source, error = folds_of(hebbian.turned(system, sign), source)
        folds += zip(of_source.tau.tolist(), of_source.q.tolist(), error.tolist(), strict=True)
    rows = np.array(sorted(set(folds), reverse=True)).reshape(-1, 3).T
    columns = dict(zip(("value", "R", "error"), rows, strict=True))
    columns["kind"] = np.zeros(rows.shape[1])
    return PointResult(padded(columns, MAX_TRANSITIONS, "transitions"))


def _critical_refusal(system: HebbianICA) -> str:
    why = hebbian.plain_refusal(system, "a critical value")
    if not why and not odd(formula(system, "nonlinearity")):
        why = (
            f"nonlinearity = {system.nonlinearity!r} is not allowed for critical values "
            "(an odd function: only then do the entries of an optimal state decouple)"
        )
    return why


CRITICAL = method.States[HebbianICA](
    name="critical",
    role=method.Role.TRANSITIONS,
    rank=1,
    about=method.About(
        text="the μ at which states end",
        accuracy="converged",
        equations=f"{PAPER}, fold of (17) for projection i and source i",
        engines=(*ENGINES, method.OVERLAP),
    ),
    outputs=method.Outputs(
        (
            Output("value", ("transition",), "critical value of mu"),
            Output("R", ("transition",), "overlap R_ii of the state that ends there"),
            Output("error", ("transition",), "error of the critical value"),
            Output("kind", ("transition",), "0 fold"),
        ),
        coords=lambda times: {"transition": np.arange(MAX_TRANSITIONS)},
    ),
    cost=method.Cost(seconds=lambda system, n, last: 2e-2, prepares=averages("drift", "noise")),
    scope=method.Scope(
        refuses=_critical_refusal, ignores=IGNORED | {"mu", "eta", "nu", "nu2", "start", "alpha"}
    ),
    run=_critical,
    varies="mu",
)


def annealing(system: HebbianICA) -> tuple[float, float] | None:
    """mu0 and t0 of a step size mu = mu0/(t + t0), or None if it is another function of t."""
    if hebbian.unit(system) != "mu":
        return None
    with np.errstate(divide="ignore"):
        inverse = 1 / hebbian.own_rate(system).value(_PROBES)
    if not np.all(np.isfinite(inverse)):
        return None
    slope = float((inverse[-1] - inverse[0]) / _PROBES[-1])
    straight = np.allclose(inverse, inverse[0] + slope * _PROBES, rtol=1e-10, atol=1e-10)
    return (1 / slope, float(inverse[0]) / slope) if straight and slope > 0 else None


_unstable: method.Refuses[HebbianICA] = method.refusal(
    lambda system: critical_mu0(rates(*_law(system)))
)
"""Empty if R* = I is a stable optimal state of a system, else why not."""


def annealing_refusal(system: HebbianICA) -> str:
    """Empty if (19)-(20) apply to this system from its start, else why not."""
    why = limit_refusal(system) or hebbian.plain_refusal(system, "annealing")
    if why:
        return why
    anneal, begin = annealing(system), hebbian.start_overlap(system)
    if anneal is None or not anneal[1] > 0:
        return f"mu = {system.mu!r} is not allowed for annealing (mu0/(t + t0) with t0 > 0)"
    if begin is None or np.abs(begin - np.eye(*system.shape)).max() >= 1:
        return f"start = {system.start} is not allowed for annealing (an overlap near R* = I)"
    return _unstable(system)


def _annealed(system: HebbianICA, times: Array, *_: object) -> PointResult:
    anneal, begin = annealing(system), hebbian.start_overlap(system)
    assert anneal is not None
    assert begin is not None
    best = np.eye(*system.shape)
    u = annealed_decay(rates(*_law(system)), *anneal, begin - best, times + anneal[1])
    return PointResult({"R": best + u})


ANNEALED = method.Limit[HebbianICA](
    name="annealed",
    role=method.Role.LIMIT,
    about=method.About(
        text="learning curves for μ₀/(t + t₀), to first order",
        accuracy="approximate",
        equations=f"{PAPER}, (19)-(20), to first order in R - R*",
        engines=ENGINES,
    ),
    outputs=method.Outputs(
        (Output("R", ("time", *PAIR), "overlap R = R* + u near the optimal state R* = I"),)
    ),
    cost=method.Cost(seconds=lambda system, n, last: 5e-3, memory=hebbian.numbers_of_modes),
    scope=method.Scope(refuses=annealing_refusal, ignores=IGNORED | {"alpha"}),
    run=_annealed,
)


def _asymptotics(system: HebbianICA, save: Save) -> PointResult:
    near, annealed = rates(*_law(system)), annealing(system)
    critical, modes, decay = critical_mu0(near), eigensystem(near), np.full(near.shape, math.nan)
    columns = np.full((5, near.shape[1]), math.nan)
    # The minimum of (21) over mu0, source by source: -<phi^2>/(2 xi_i^2) with mu0 = 1/xi_i.
    best = 1 / near.xi, -near.power / (2 * near.xi**2)
    columns[:, : near.xi.size] = near.xi, near.power, *best, near.error
    if annealed is not None and annealed[0] > critical:
        decay = annealed_limit(near, annealed[0])
    names = ("xi", "power", "mu0_optimal", "decay_optimal", "error")
    values = dict(zip(names, columns, strict=True))
    if EIGENMATRICES.name in save.extra:
        values[EIGENMATRICES.name] = modes.matrices
    return PointResult(
        values | {"eigenvalue": modes.values, "decay": decay, "mu0_critical": np.asarray(critical)}
    )


_SOURCE = ("source",)
EIGENMATRICES = Output("V", ("row", "column", *PAIR), "eigenmatrices V of (35), one an eigenvalue")
ASYMPTOTICS = method.Limit[HebbianICA](
    name="asymptotics",
    role=method.Role.OTHER,
    about=method.About(
        text="eigenvalues and eigenmatrices at the optimal state",
        accuracy="converged",
        equations=f"{PAPER}, (21), (35) and (36) with the rows i > M of K > M corrected",
        engines=ENGINES,
    ),
    outputs=method.Outputs(
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
    cost=method.Cost(seconds=lambda system, n, last: 5e-3, memory=hebbian.numbers_of_modes),
    scope=method.Scope(
        refuses=lambda system: (
            hebbian.plain_refusal(system, "the optimal state") or _unstable(system)
        ),
        ignores=IGNORED | {"alpha", "start"},
    ),
    run=lambda system, times, n, seed, save: _asymptotics(system, save),
)

METHODS = (FIXED_POINTS, CRITICAL, ANNEALED, ASYMPTOTICS)
