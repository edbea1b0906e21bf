"""Hebbian ICA where R is of order n^-1/2: first passages of chains, and the diffusion (24)-(25).

A passage is when a projection first comes near a source, in units of n^3 steps, or of n^2 for
skewed sources. The entries of r = sqrt(n) R are independent in the diffusion; its own clock is
s = t/n^2 with t = k/n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hdica.finite.projected.chain import address
from hdica.finite.projected.passage import Draw, Passage, race
from hdica.finite.random import LANES
from hdica.finite.random.streams import RUN, Stream
from hdica.finite.record import Values, not_finite
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import Schedule
from hdica.limits.escape import begin, safe_exp, scaled
from hdica.limits.numerics.densities import density, paths, survival
from hdica.systems import method, trials
from hdica.systems.hebbian_ica import escapes
from hdica.systems.hebbian_ica import rule as rules
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.system import HebbianICA, signs, start_overlap
from hdica.systems.method import Array, Output, PointResult


class _Overlaps:
    """Chains of R and Q, each watched until the fewer of rows and columns have passed a level."""

    def __init__(self, rule: rules.HebbianRule, n: int, level: float) -> None:
        self.rule, self.n, self.level, self.why = rule, n, level, not_finite
        self.chains, self.watch = rules.ChainState.idle([rule]), rules.unwatched(rule.shape)
        self.generators = np.zeros(4 * LANES, dtype=np.uint64)
        # The kernel takes as many step sizes as sources, and reads the first.
        self.source, self.rates = np.zeros((2, RUN, rule.shape[1], LANES))
        self.sizes = self.rates[:, 0]

    def put(self, lane: int, stream: Stream) -> tuple[Draw, Schedule]:
        self.chains.put(lane, self.rule, self.n, stream)
        state = stream("noise").bit_generator.state["state"]["state"]
        self.generators[lane::LANES] = state
        levels, first, reached, _ = self.watch
        k, m = self.rule.shape
        r = self.chains.seen(lane)["R"]
        size = np.abs(r).max(axis=1 if k <= m else 0)
        # A start may be there already.
        there = np.array([size.max(), size.min()]) >= self.level
        first[:, lane] = np.where(there, 0, -1)
        levels[:, lane] = np.where(there, np.inf, self.level)
        reached[:, lane] = r.ravel()
        each, sizes = rules.draws(self.rule, stream), self.rule.step_size(self.n)
        return lambda count: np.stack([one(count) for one in each], axis=1), sizes

    def idle(self, lane: int) -> None:
        self.watch[0][:, lane] = np.inf

    def passed(self, lane: int) -> tuple[int, int]:
        return int(self.watch[1][0, lane]), int(self.watch[1][1, lane])

    def overlaps(self, lane: int) -> Array:
        if self.watch[1][1, lane] < 0:
            return self.chains.seen(lane)["R"].copy()
        return self.watch[2][:, lane].reshape(self.rule.shape).copy()

    def advance(self, begun: NDArray[np.int64], width: int, made: NDArray[np.int64]) -> None:
        from hdica.systems.hebbian_ica.chain_kernels import hebbian_chain_steps

        k, m = self.rule.shape
        self.watch[3][:] = begun
        source, eta = (room[:width].reshape(width, -1) for room in (self.source, self.rates))
        hebbian_chain_steps(
            *(self.generators, self.chains.state, (k, m, self.n - m - k), source, eta),
            *(self.chains.law, address(self.rule.nonlinearity), self.watch, made),
        )


def passages(
    rule: rules.HebbianRule, n: int, streams: Sequence[Stream], threshold: float, most_steps: int
) -> list[Passage]:
    """First passages of chains, exact in law, eight at a time, given up after ``most_steps``.

    ``first`` is when some abs(R_ij) reaches the threshold, ``last`` when each of the fewer of
    projections and sources has such an R_ij. Paths are those of ``run_chains`` on the same streams.
    """
    rules.check_dimension(rule, n, "chain")
    return race(_Overlaps(rule, n, threshold), streams, most_steps)


PASSAGES = (
    replace(trials.FIRST, long_name="time of the first passage of any abs(R_ij), or of the end"),
    *(trials.FIRST_SEEN, trials.LAST, trials.LAST_SEEN),
)


def passages_in(power: int) -> method.RunAll:
    """First passages in n^power steps."""
    return trials.races(
        "chain",
        lambda system, n: hebbian.rule(system),
        lambda system: trials.content_of(system, escapes.IGNORED),
        lambda system, rule, n, streams, most: passages(rule, n, streams, system.threshold, most),
        power,
        last=True,
    )


_PASSAGES = passages_in(3)


def seconds_of(system: HebbianICA, steps: float) -> float:
    """Cost model of so many steps of a chain; one costs more with more entries."""
    entries = 1 + system.projections * (system.projections + len(system.sources))
    return 5e-4 + steps * 1.5e-9 * entries


def _passage_seconds(system: HebbianICA, n: int | None, last: float) -> float:
    """Steps until the escape or the end."""
    dimension = n or 1
    steps = last * dimension
    # Skewed sources that the nonlinearity sees have no time of this kind: the end bounds them.
    if not escapes.trap_refusal(system, n=True) and not method.refusal(escapes.traps)(system):
        nu = escapes.constant_nu(system, dimension)
        kramers = min(trap.log_kramers(nu) for trap in escapes.traps(system))
        steps = min(steps, 2 * safe_exp(kramers) * float(dimension) ** 3)
    return seconds_of(system, steps)


ESCAPE_TIMES = method.Simulation[HebbianICA](
    name="escape_times",
    role=method.Role.ESCAPE,
    about=method.About(
        text="when chains first find a source, and when min(K, M) are found",
        accuracy="exact in law",
        equations=f"{escapes.PAPER}, eq. (13), first passages of the chain that is exact in law",
        bits=method.Bits.EVERY_KIND,
        engines=(*method.PROJECTED, *escapes.ENGINES),
    ),
    outputs=method.Outputs(PASSAGES),
    cost=method.Cost(
        seconds=_passage_seconds,
        memory=lambda system, n, last: LANES * hebbian.numbers_of_overlaps(system),
        fused=True,
    ),
    scope=method.Scope(
        refuses=lambda system: hebbian.plain_refusal(system, "a first passage of the chain")
    ),
    run=trials.alone(_PASSAGES),
    together=method.Together(_PASSAGES),
)


_STEP = 0.02
"""Step of the paths relative to the shortest time of the drift."""
_CUT = 6.0
"""Beyond so many distances of the barrier the drift carries r away in no time."""


def _scales(system: HebbianICA, n: int) -> tuple[Array, float]:
    """G = sigma kappa_4 <phi'''>/(6 P nu) of every entry, below 0 if it confines, and P nu^2."""
    nu, columns = escapes.constant_nu(system, n), escapes.traps(system)
    depth = [[sign * t.product / (6 * t.power * nu) for t in columns] for sign in signs(system)]
    return np.array(depth), columns[0].power * nu**2


def _paths(system: HebbianICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    """R by the stochastic differential equation, at rest from the threshold on."""
    (g, rate), high = _scales(system, n), system.threshold * math.sqrt(n)
    escaping, steepest, r0 = g[g > 0], 3 * np.abs(g).max(), start_overlap(system)
    # Where paths have arrived: at the threshold, or far beyond every barrier.
    edge = high
    if escaping.size:
        edge = min(high, max(_CUT / math.sqrt(2 * escaping.min()), _CUT))
    first = stream("start").standard_normal(g.shape) if r0 is None else r0 * math.sqrt(n)

    def step(r: Array) -> float:
        return _STEP / (0.5 + steepest * np.abs(r).max() ** 2)

    r = paths(scaled(g), first, rate * times / float(n) ** 2, step, stream("noise"), bound=edge)
    arrived = np.where(np.abs(r) >= edge, np.sign(r) * high, r)
    return {"R": arrived / math.sqrt(n)}, ""


def _path_seconds(system: HebbianICA, n: int | None, last: float) -> float:
    g, rate = _scales(system, n or 1)
    # The longest steps are those of |r| about 2, where a path is most of its time.
    steps = rate * last / float(n or 1) ** 2 * (0.5 + 12 * np.abs(g).max())
    return 1e-3 + 4e-5 * steps / _STEP


_AT_N = method.Scope[HebbianICA](
    refuses=lambda system: escapes.trap_refusal(system, n=True), ignores=frozenset({"alpha"})
)
DIFFUSION = method.Simulation[HebbianICA](
    name="diffusion",
    role=method.Role.SIMULATION,
    about=method.About(
        text="paths of √n R by its stochastic differential equation",
        accuracy="approximate",
        equations=f"{escapes.PAPER}, (24)-(25), explicit scheme of weak order 2",
        engines=escapes.ON_STREAMS,
    ),
    outputs=method.Outputs(
        (Output("R", ("time", *escapes.PAIR), "overlap R, at rest once it reaches the threshold"),)
    ),
    cost=method.Cost(seconds=_path_seconds),
    scope=_AT_N,
    run=trials.seeded("diffusion", _paths, _AT_N.ignores),
)


def _density(system: HebbianICA, times: Array, n: int | None, *_: object) -> PointResult:
    """Densities of r, one an entry; equal entries are computed once."""
    n = n or 0
    (g, rate), high, r0 = _scales(system, n), system.threshold * math.sqrt(n), start_overlap(system)
    inside, later = np.abs(escapes.POSITIONS) < high, times > 0
    clock = rate * times[later] / float(n) ** 2
    heights = np.zeros((times.size, *g.shape, escapes.POSITIONS.size))
    alive = np.ones((times.size, *g.shape))
    # A start at given places has no density at t = 0.
    begun = np.exp(-(escapes.POSITIONS**2) / 2) / math.sqrt(2 * math.pi) * inside
    heights[~later] = begun if r0 is None else math.nan

    @cache
    def solved(depth: float, start: float | None) -> tuple[Array, Array]:
        law = scaled(depth), high, begin("random") if start is None else start, clock
        scale = min(1 / math.sqrt(2 * abs(depth)), high)
        height = density(*law, escapes.POSITIONS[inside], scale=scale)[0]
        return height, survival(*law, scale=scale)[0]

    for i, j in np.ndindex(*g.shape):
        start = None if r0 is None else abs(float(r0[i, j])) * math.sqrt(n)
        p, alive[later, i, j] = solved(float(g[i, j]), start)
        heights[np.ix_(later, [i], [j], inside)] = p[:, None, None, :]
    return PointResult({"density": heights, "alive": alive})


FOKKER_PLANCK = method.Limit[HebbianICA](
    name="fokker_planck",
    role=method.Role.OTHER,
    about=method.About(
        text="densities of √n R",
        accuracy="converged",
        equations=(
            f"{escapes.PAPER}, Fokker-Planck equation of (24)-(25), absorbed at the threshold"
        ),
        engines=escapes.ENGINES,
    ),
    outputs=method.Outputs(
        (
            Output(
                "density",
                ("time", *escapes.PAIR, "r"),
                "density of r = sqrt(n) R, of either sign, below the threshold",
            ),
            Output(
                "alive",
                ("time", *escapes.PAIR),
                "probability that abs(R) has not reached the threshold",
            ),
        ),
        coords=lambda times: {"time": times, "r": escapes.POSITIONS},
    ),
    cost=method.Cost(seconds=lambda system, n, last: 0.3),
    scope=replace(_AT_N, n=method.Size.DIMENSION),
    run=_density,
)

METHODS = (ESCAPE_TIMES, DIFFUSION, FOKKER_PLANCK)
