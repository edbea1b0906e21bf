"""Methods of Hebbian ICA near R = 0: escape times by theory and by chains, and the potential.

The clock there is s = t/n^2: n^3 steps are one unit (Rattray 2002, section 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream, digest
from hdica.finite.random.width import LANES
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.limits.averages.trap import Trap, near_zero, safe_exp
from hdica.limits.diffusion.escape import Begin
from hdica.systems.fields import averages, formula
from hdica.systems.hebbian_ica.escape.times import Escape, escape
from hdica.systems.hebbian_ica.fields import (
    given_rate,
    in_unit,
    signs,
    sources,
    start_overlap,
    unit,
)
from hdica.systems.hebbian_ica.finite.passage import Passage, passages
from hdica.systems.hebbian_ica.finite.rule import HebbianRule
from hdica.systems.hebbian_ica.system import (
    HebbianICA,
    overlaps_held,
    passage_refusal,
    plain_refusal,
    rule,
)
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    DIFFUSIONS,
    NUMERICS,
    PROJECTED,
    About,
    Bits,
    Cost,
    Limit,
    Outputs,
    Role,
    RunAll,
    Scope,
    Simulation,
    Size,
    Together,
    kernel_of,
    refusal,
)
from hdica.systems.outputs import UNIT, Array, Output, PointResult, at_ages, over_age
from hdica.systems.trials import alone, content_of, in_lanes

PAPER = "Rattray (2002)"
HOME = "hdica.systems.hebbian_ica"
PAIR = ("projection", "source")
POSITIONS = np.linspace(-8.0, 8.0, 321)
"""Values of r = sqrt(n) R at which the potential is given."""
IGNORED = frozenset({"threshold"})
"""Fields that matter to escape times alone."""
MOST_RACES = 4096
"""Chains of one system in one call."""
_ANY = 10**6
"""A dimension at which to ask whether a system has escape times: any would do."""

ESCAPES = (
    Output("mean", (), "mean time of the first escape of any entry", UNIT),
    Output("mean_last", (), "mean time after which no further entry escapes", UNIT),
    Output("pair_mean", PAIR, "mean escape time of one entry if it were alone", UNIT),
    Output("pair_sd", PAIR, "standard deviation of that time", UNIT),
    Output("pair_median", PAIR, "median of that time", UNIT),
    Output("kramers", PAIR, "Kramers' formula for that mean, with (27) corrected", UNIT),
    Output("exponent", PAIR, "exponent 3 P nu/(4 C) of Kramers' formula"),
    Output("survival", ("age",), "probability that no entry has escaped until age times the mean"),
    Output("survival_last", ("age",), "probability that one can still escape after age mean_last"),
    Output("error", (), "relative error of the mean times"),
)
BEST = (
    Output("nu_optimal", PAIR, "nu with the least mean as n -> infinity"),
    Output("mean_optimal", PAIR, "least mean escape time over nu as n -> infinity", UNIT),
)
PRINTED = Output("printed", PAIR, "Kramers' formula with the exponent of (27) as printed", UNIT)
PASSAGES = (
    Output("first", (), "time of the first passage of any abs(R_ij), or of the end", UNIT),
    Output("first_seen", (), "1 if that was a passage, 0 if the run ended before one"),
    Output("last", (), "time at which min(K, M) sources are found, or of the end", UNIT),
    Output("last_seen", (), "1 if that was a passage, 0 if the run ended before"),
)


def trap_refusal(system: HebbianICA, n: bool) -> str:
    """Empty if the diffusion near R = 0 applies to this system, else why not.

    With a dimension ``n`` any unit of the step size will do.
    """
    why = plain_refusal(system, "the diffusion near R = 0")
    if why:
        return why
    if not n and unit(system) != "nu":
        return (
            f"the diffusion near R = 0 needs nu as n -> infinity, and {unit(system)} is given "
            "(nu = n^2 eta stays finite there)"
        )
    if given_rate(system).constant is None:
        return (
            f"{unit(system)} = {getattr(system, unit(system))!r} is not allowed for the diffusion "
            "near R = 0 (a constant step size)"
        )
    return ""


def constant_nu(system: HebbianICA, n: int | None) -> float:
    """Nu = n^2 eta of a constant step size."""
    refusal = trap_refusal(system, n is not None)
    if refusal:
        raise HdicaError(refusal)
    fixed = in_unit("nu", system, n).constant
    assert fixed is not None
    return fixed


def beginning(system: HebbianICA, n: int | None) -> Begin:
    """The start in the terms of escape times: ``"zero"``, ``"random"`` or R of K = M = 1."""
    r0 = start_overlap(system)
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
    return [near_zero(phi, source) for source in sources(system)]


def escape_of(system: HebbianICA, n: int | None) -> Escape:
    """Escape times of the system from its start."""
    return escape(
        shared(system),
        formula(system, "nonlinearity"),
        [int(sign) for sign in signs(system)],
        constant_nu(system, n),
        n=n,
        start=beginning(system, n),
        threshold=system.threshold,
    )


def shared(system: HebbianICA) -> list[Source]:
    """Laws of the sources, equal ones as one object: their escape times are computed once."""
    known: dict[bytes, Source] = {}
    pairs = zip(system.sources, sources(system), strict=True)
    return [known.setdefault(digest(spec), law) for spec, law in pairs]


def escapes_at_all(system: HebbianICA, n: int | None) -> None:
    """Refuse a system of which no entry escapes, or whose start has no escape time."""
    constant_nu(system, n)
    beginning(system, n)
    known = [trap.sigma for trap in traps(system)]
    if not set(known) & {int(sign) for sign in signs(system)}:
        raise HdicaError(
            f"sigma = {system.sigma} is not allowed for escape times (no entry escapes from "
            f"R = 0: the signs with which they do are {known})"
        )


def escape_values(found: Escape, save: Save) -> dict[str, Array]:
    """What all methods of escape times give, and of the best nu what is kept."""
    first, last = found.first, found.last
    return {
        "mean": np.asarray(first),
        "mean_last": np.asarray(last),
        "pair_mean": found.mean,
        "pair_sd": found.sd,
        "pair_median": found.median,
        "kramers": found.kramers,
        "exponent": found.exponent,
        "survival": at_ages(found.survival, first),
        "survival_last": at_ages(found.survival_last, last),
        "error": np.asarray(found.error),
        **{o.name: getattr(found, o.name) for o in BEST if o.name in save.extra},
    }


def _result(system: HebbianICA, found: Escape, save: Save) -> PointResult:
    values = escape_values(found, save)
    if found.n is None:
        nu = constant_nu(system, None)
        row = [safe_exp(t.log_kramers(nu) - t.exponent(nu) / 2) for t in traps(system)]
        values["printed"] = np.where(np.isfinite(found.mean), row, math.inf)
    return PointResult(values)


def _escape(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    return _result(system, escape_of(system, n), save)


_ENGINES = (*COMMON, "hdica.finite.random", AVERAGES, DIFFUSIONS, NUMERICS, HOME)
ESCAPE = Limit[HebbianICA](
    name="escape",
    role=Role.ESCAPE,
    rank=1,
    about=About(
        text="laws of the first and the last escape as n → ∞ at fixed ν",
        accuracy="converged",
        equations=f"{PAPER}, (24)-(25), first passages to infinity as n -> infinity",
        engines=_ENGINES,
        # Points from before the law of the last escape lack one of the outputs.
        version=f"{kernel_of(_ENGINES)}, law of the last",
    ),
    outputs=Outputs((*ESCAPES, PRINTED), extras=BEST, coords=over_age),
    cost=Cost(seconds=lambda system, n, last: 0.45),
    scope=Scope(
        refuses=refusal(lambda system: escapes_at_all(system, None)),
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
    cost=Cost(seconds=lambda system, n, last: 0.4, prepares=averages("drift", "noise", "second")),
    scope=Scope(
        refuses=refusal(lambda system: escapes_at_all(system, _ANY)),
        ignores=frozenset({"alpha"}),
        n=Size.DIMENSION,
    ),
)


def _seen(steps: int, end: int, unit: float) -> tuple[float, float]:
    return (steps / unit, 1.0) if steps >= 0 else (end / unit, 0.0)


def _passage_values(passage: Passage, n: int, power: int) -> Values:
    unit = float(n) ** power
    first, first_seen = _seen(passage.first_any, passage.steps, unit)
    last, last_seen = _seen(passage.first_all, passage.steps, unit)
    values = {"first": first, "first_seen": first_seen, "last": last, "last_seen": last_seen}
    lost = bool(passage.diverged)
    return {k: np.asarray(math.nan if lost else v) for k, v in values.items()}, passage.diverged


def passages_in(power: int) -> RunAll:
    """First passages in n^power steps, all seeds of a system in one race of eight lanes."""

    def race(
        systems: Sequence[HebbianICA],
        rules: Sequence[HebbianRule],
        times: Array,
        n: int,
        streams: Sequence[Stream],
    ) -> list[Values]:
        most = math.floor(times[-1] * n)
        found = passages(rules[0], n, streams, systems[0].threshold, most)
        return [_passage_values(passage, n, power) for passage in found]

    # On the streams of the chain: a passage is one of the path that method chain gives.
    return in_lanes(
        "chain",
        lambda system, n: rule(system),
        lambda system: content_of(system, IGNORED),
        lambda system, one: id(system),
        MOST_RACES,
        race,
    )


_PASSAGES = passages_in(3)


def _passage_seconds(system: HebbianICA, n: int | None, last: float) -> float:
    """Steps until the escape or the end; a step costs more with more entries."""
    dimension = n or 1
    steps = last * dimension
    # Skewed sources that the nonlinearity sees have no time of this kind: the end bounds them.
    if not trap_refusal(system, n=True) and not refusal(traps)(system):
        nu = constant_nu(system, dimension)
        kramers = min(trap.log_kramers(nu) for trap in traps(system))
        steps = min(steps, 2 * safe_exp(kramers) * float(dimension) ** 3)
    k, m = system.projections, len(system.sources)
    return 5e-4 + steps * 1.5e-9 * (1 + k * (k + m))


ESCAPE_TIMES = Simulation[HebbianICA](
    name="escape_times",
    role=Role.ESCAPE,
    about=About(
        text="when chains first find a source, and when min(K, M) are found",
        accuracy="exact in law",
        equations=f"{PAPER}, eq. (13), first passages of the chain that is exact in law",
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, AVERAGES, HOME),
    ),
    outputs=Outputs(PASSAGES),
    cost=Cost(
        seconds=_passage_seconds, memory=lambda system, n: LANES * overlaps_held(system), fused=True
    ),
    scope=Scope(refuses=passage_refusal),
    run=alone(_PASSAGES),
    together=Together(_PASSAGES),
)


def _trapping(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    nu, found = constant_nu(system, None), traps(system)
    sigma, noise = signs(system), found[0].power * nu**2
    shape = (sigma.size, len(found))
    turned = [[trap.sigma * s for trap in found] for s in sigma]
    # With the other sign both terms of (26) confine.
    u = [
        [t.potential(nu, POSITIONS, escaping=sign > 0) for t, sign in zip(found, row, strict=True)]
        for row in turned
    ]
    escaping = np.array(turned) > 0
    heights = [t.barrier(nu) / noise for t in found]
    ends = {"barrier": heights, "summit": [t.summit(nu) for t in found]}
    tables = {
        k: np.where(escaping, np.broadcast_to(np.array(v, dtype=float), shape), math.inf)
        for k, v in ends.items()
    }
    return PointResult({"U": np.array(u, dtype=float) / noise, **tables})


TRAPPING = Limit[HebbianICA](
    name="trapping",
    role=Role.OTHER,
    about=About(
        text="the potential of √n R",
        accuracy="exact",
        equations=f"{PAPER}, (26) over the D of (25)",
        engines=(*COMMON, AVERAGES, HOME),
    ),
    outputs=Outputs(
        (
            Output("U", (*PAIR, "r"), "potential U/D of r = sqrt(n) R, D = P nu^2 of its noise"),
            Output("barrier", PAIR, "height of the barrier of U/D, infinite where there is none"),
            Output("summit", PAIR, "r at the top of the barrier"),
        ),
        coords=lambda times: {"r": POSITIONS},
    ),
    cost=Cost(seconds=lambda system, n, last: 1e-2),
    scope=Scope(
        refuses=refusal(lambda system: constant_nu(system, None) and traps(system)),
        ignores=frozenset({"alpha", "threshold", "start"}),
    ),
    run=_trapping,
)

METHODS = (ESCAPE_TIMES, ESCAPE, ESCAPE_DIFFUSION, TRAPPING)
