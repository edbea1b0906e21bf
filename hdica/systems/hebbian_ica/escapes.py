"""Escape of Hebbian ICA from R = 0 by theory: its law as n grows and at n, and the potential.

The clock there is s = t/n^2: n^3 steps are one unit (Rattray 2002, section 4.2). Exactly at n it is
that of one projection and one source.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import digest
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.limits.escape import Begin, Trap, near_zero, safe_exp
from hdica.limits.passage.chain import FreeChain, exact_passage
from hdica.systems import method, trials
from hdica.systems.fields import averages, formula
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.escape_times import Escape, escape
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import Array, Output, PointResult

PAPER = "Rattray (2002)"
HOME = "hdica.systems.hebbian_ica"
ENGINES = (*method.COMMON, method.AVERAGES, method.NEAR_ZERO, method.NUMERICS, HOME)
ON_STREAMS = (*ENGINES, "hdica.finite.random")
PAIR = ("projection", "source")
POSITIONS = np.linspace(-8.0, 8.0, 321)
"""Values of r = sqrt(n) R at which the potential is given."""
IGNORED = frozenset({"threshold"})
"""Fields that matter to escape times alone."""
_ANY = 10**6
"""A dimension at which to ask whether a system has escape times: any would do."""

ESCAPES = (
    replace(trials.MEAN, long_name="mean time of the first escape of any entry"),
    replace(
        trials.MEAN, name="mean_last", long_name="mean time after which no further entry escapes"
    ),
    replace(
        trials.MEAN,
        name="pair_mean",
        dims=PAIR,
        long_name="mean escape time of one entry if it were alone",
    ),
    replace(trials.SD, name="pair_sd", dims=PAIR),
    replace(trials.MEDIAN, name="pair_median", dims=PAIR),
    replace(
        trials.KRAMERS, dims=PAIR, long_name="Kramers' formula for that mean, with (27) corrected"
    ),
    replace(trials.EXPONENT, dims=PAIR),
    replace(
        trials.SURVIVAL, long_name="probability that no entry has escaped until age times the mean"
    ),
    replace(
        trials.SURVIVAL,
        name="survival_last",
        long_name="probability that one can still escape after age mean_last",
    ),
    replace(trials.ERROR, long_name="relative error of the mean times"),
)
BEST = tuple(replace(output, dims=PAIR) for output in (trials.NU_OPTIMAL, trials.MEAN_OPTIMAL))
PRINTED = Output(
    "printed", PAIR, "Kramers' formula with the exponent of (27) as printed", trials.UNIT
)


def trap_refusal(system: HebbianICA, n: bool) -> str:
    """Empty if the diffusion near R = 0 applies, at an ``n`` to any unit, else why not."""
    why, unit = hebbian.plain_refusal(system, "the diffusion near R = 0"), hebbian.unit(system)
    if not why and not n and unit != "nu":
        why = (
            f"the diffusion near R = 0 needs nu as n -> infinity, and {unit} is given "
            "(nu = n^2 eta stays finite there)"
        )
    if not why and hebbian.own_rate(system).constant is None:
        why = (
            f"{unit} = {getattr(system, unit)!r} is not allowed for the diffusion near R = 0 (a "
            "constant step size)"
        )
    return why


def constant_nu(system: HebbianICA, n: int | None) -> float:
    """Nu = n^2 eta of a constant step size."""
    why = trap_refusal(system, n is not None)
    if why:
        raise HdicaError(why)
    fixed = hebbian.in_unit("nu", system, n).constant
    assert fixed is not None
    return fixed


def beginning(system: HebbianICA, n: int | None) -> Begin:
    """The start in the terms of escape times: ``"zero"``, ``"random"`` or R of K = M = 1."""
    r0 = hebbian.start_overlap(system)
    if r0 is None:
        return "random"
    if not np.any(r0):
        return "zero"
    if n is None:
        raise HdicaError(
            f"start = {system.start} is not allowed for escape times as n -> infinity "
            "(R is of order n^-1/2 there: 'zero' or 'random')"
        )
    if r0.size > 1:
        raise HdicaError(
            f"start = {system.start} is not allowed for escape times of several entries of R "
            "('zero' or 'random')"
        )
    return float(r0[0, 0])


def traps(system: HebbianICA) -> list[Trap]:
    """P, kappa_4 and <phi'''(z)> of every source."""
    phi = formula(system, "nonlinearity")
    return [near_zero(phi, source) for source in hebbian.sources(system)]


def shared(system: HebbianICA) -> list[Source]:
    """Laws of the sources, equal ones as one object: their escape times are computed once."""
    by_spec: dict[bytes, Source] = {}
    pairs = zip(system.sources, hebbian.sources(system), strict=True)
    return [by_spec.setdefault(digest(spec), law) for spec, law in pairs]


def escapes_at_all(system: HebbianICA, n: int | None) -> None:
    """Refuse a system of which no entry escapes, or whose start has no escape time."""
    constant_nu(system, n)
    beginning(system, n)
    allowed = [trap.sigma for trap in traps(system)]
    if not set(allowed) & {int(sign) for sign in hebbian.signs(system)}:
        raise HdicaError(
            f"sigma = {system.sigma} is not allowed for escape times (no entry escapes from "
            f"R = 0: the signs with which they do are {allowed})"
        )


def escape_values(laws: Escape, save: Save) -> dict[str, Array]:
    """What all methods of escape times give, and of the best nu what is kept."""
    first, last = laws.first, laws.last
    return method.arrays(
        mean=first,
        mean_last=last,
        pair_mean=laws.mean,
        pair_sd=laws.sd,
        pair_median=laws.median,
        kramers=laws.kramers,
        exponent=laws.exponent,
        survival=trials.at_ages(laws.survival, first),
        survival_last=trials.at_ages(laws.survival_last, last),
        error=laws.error,
        **{o.name: getattr(laws, o.name) for o in BEST if o.name in save.extra},
    )


def _escape(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    nu, phi = constant_nu(system, n), formula(system, "nonlinearity")
    sigma, start = [int(sign) for sign in hebbian.signs(system)], beginning(system, n)
    laws = escape(shared(system), phi, sigma, nu, n, start, system.threshold)
    values = escape_values(laws, save)
    if n is None:
        row = [safe_exp(t.log_kramers(nu) - t.exponent(nu) / 2) for t in traps(system)]
        values["printed"] = np.where(np.isfinite(laws.mean), row, math.inf)
    return PointResult(values)


ESCAPE = method.Limit[HebbianICA](
    name="escape",
    role=method.Role.ESCAPE,
    rank=1,
    about=method.About(
        text="laws of the first and the last escape as n → ∞ at fixed ν",
        accuracy="converged",
        equations=f"{PAPER}, (24)-(25), first passages to infinity as n -> infinity",
        engines=ON_STREAMS,
        # Points from before the law of the last escape lack one of the outputs.
        version=f"{method.kernel_of(ON_STREAMS)}, law of the last",
    ),
    outputs=method.Outputs((*ESCAPES, PRINTED), extras=BEST, coords=trials.over_age),
    cost=method.Cost(seconds=lambda system, n, last: 0.45),
    scope=method.Scope(
        refuses=method.refusal(lambda system: escapes_at_all(system, None)),
        ignores=frozenset({"alpha", "threshold"}),
    ),
    run=_escape,
)
ESCAPE_DIFFUSION = replace(
    ESCAPE,
    name="escape_diffusion",
    rank=None,
    about=replace(
        ESCAPE.about,
        text="the same by the diffusion at n",
        accuracy="approximate",
        equations=f"{PAPER}, diffusion with the moments of one step of (13) at dimension n",
    ),
    outputs=replace(ESCAPE.outputs, always=ESCAPES, extras=()),
    cost=method.Cost(
        seconds=lambda system, n, last: 0.4, prepares=averages("drift", "noise", "second")
    ),
    scope=method.Scope(
        refuses=method.refusal(lambda system: escapes_at_all(system, _ANY)),
        ignores=frozenset({"alpha"}),
        n=method.Size.DIMENSION,
    ),
)


def _trapping(system: HebbianICA, *_: object) -> PointResult:
    nu, columns = constant_nu(system, None), traps(system)
    noise = columns[0].power * nu**2
    escaping = np.array([[trap.sigma * s > 0 for trap in columns] for s in hebbian.signs(system)])
    # With the other sign both terms of (26) confine.
    u = [
        [t.potential(nu, POSITIONS, way) for t, way in zip(columns, row, strict=True)]
        for row in escaping.tolist()
    ]
    ends = {
        "barrier": [t.barrier(nu) / noise for t in columns],
        "summit": [t.summit(nu) for t in columns],
    }
    tables = {name: np.where(escaping, row, math.inf) for name, row in ends.items()}
    return PointResult({"U": np.array(u, dtype=float) / noise, **tables})


TRAPPING = method.Limit[HebbianICA](
    name="trapping",
    role=method.Role.OTHER,
    about=method.About(
        text="the potential of √n R",
        accuracy="exact",
        equations=f"{PAPER}, (26) over the D of (25)",
        engines=ENGINES,
    ),
    outputs=method.Outputs(
        (
            Output("U", (*PAIR, "r"), "potential U/D of r = sqrt(n) R, D = P nu^2 of its noise"),
            Output("barrier", PAIR, "height of the barrier of U/D, infinite where there is none"),
            Output("summit", PAIR, "r at the top of the barrier"),
        ),
        coords=lambda times: {"r": POSITIONS},
    ),
    cost=method.Cost(seconds=lambda system, n, last: 1e-2),
    scope=method.Scope(
        refuses=method.refusal(lambda system: constant_nu(system, None) and traps(system)),
        ignores=frozenset({"alpha", "threshold", "start"}),
    ),
    run=_trapping,
)


_BOTH = ("mean", "mean_last", "pair_mean", "pair_sd", "survival", "survival_last", "error")
OUTPUTS = (
    *(output for output in ESCAPES if output.name in _BOTH),
    replace(trials.SD, long_name="standard deviation of the time of the first escape"),
)
"""One entry is the first that escapes, and the last."""


def check(system: HebbianICA, n: int) -> None:
    """Refuse what has no escape that one equation gives."""
    escapes_at_all(system, n)
    if system.shape != (1, 1):
        k, m = system.shape
        raise HdicaError(
            f"projections and sources: {k} and {m} are not allowed for exact escape times (one of "
            "each: the equation has the overlap and its length alone)"
        )
    if not system.alpha < 1:
        raise HdicaError(
            f"alpha = {system.alpha} is not allowed for exact escape times (alpha < 1: W'W = 1 is "
            "approached evenly there)"
        )


def _exact(system: HebbianICA, times: Array, n: int | None, *_: object) -> PointResult:
    """The law of the number of steps of the chain at n."""
    n = n or 0
    check(system, n)
    if n < 3:
        raise HdicaError(f"n: {n} is not allowed (at least 3)")
    phi, law = formula(system, "nonlinearity"), hebbian.sources(system)[0]
    sigma, eta = float(hebbian.signs(system)[0]), hebbian.in_unit("eta", system, n).constant
    assert eta is not None
    chain = FreeChain(
        lambda y: sigma * phi.value(y),
        law,
        eta,
        system.alpha,
        n,
        system.threshold,
        even=phi.is_odd or law.symmetric,
        odd=phi.is_odd and law.symmetric,
    )
    values = trials.exact_values(exact_passage(chain, beginning(system, n)), n)
    values |= {"mean_last": values["mean"], "survival_last": values["survival"]}
    values |= {f"pair_{name}": values[name][None, None] for name in ("mean", "sd")}
    return PointResult(values)


ESCAPE_EXACT = replace(
    ESCAPE,
    name="escape_exact",
    rank=None,
    about=method.About(
        text="law of the escape from R = 0 at n, from the exact chain (K = M = 1)",
        accuracy="exact",
        equations=(
            f"{PAPER}, eq. (13): h - E h = 1 for the chain that is exact in law, by collocation"
        ),
        engines=(*ENGINES, method.PASSAGES),
    ),
    outputs=replace(ESCAPE.outputs, always=OUTPUTS, extras=()),
    cost=method.Cost(seconds=lambda system, n, last: max(2.5, (n or 1) / 40)),
    scope=method.Scope(
        refuses=method.refusal(lambda system: check(system, _ANY)), n=method.Size.DIMENSION
    ),
    run=_exact,
)

METHODS = (ESCAPE_EXACT, ESCAPE, ESCAPE_DIFFUSION, TRAPPING)
