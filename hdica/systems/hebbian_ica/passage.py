"""First passages of Hebbian ICA by chains: when a projection first comes near a source.

The methods name the unit of time: n^3 steps, or n^2 for skewed sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.finite.projected.chain import address
from hdica.finite.projected.passage import Draw, Passage, race
from hdica.finite.random import LANES
from hdica.finite.random.streams import RUN, Stream
from hdica.finite.record import not_finite
from hdica.ingredients.schedules import Schedule
from hdica.limits.averages.trap import safe_exp
from hdica.systems.first_passage import FIRST, FIRST_SEEN, LAST, LAST_SEEN, races
from hdica.systems.hebbian_ica.escapes import HOME, IGNORED, PAPER, constant_nu, trap_refusal, traps
from hdica.systems.hebbian_ica.rule import (
    Array,
    ChainState,
    HebbianRule,
    check_dimension,
    draws,
    unwatched,
)
from hdica.systems.hebbian_ica.system import HebbianICA, overlaps_held, passage_refusal, rule
from hdica.systems.method import (
    AVERAGES,
    PROJECTED,
    About,
    Bits,
    Cost,
    Outputs,
    Role,
    RunAll,
    Scope,
    Simulation,
    Together,
    refusal,
)
from hdica.systems.trials import alone, content_of


class _Overlaps:
    """Chains of R and Q, each watched until the fewer of rows and columns have passed a level."""

    def __init__(self, rule: HebbianRule, n: int, level: float) -> None:
        self.rule, self.n, self.level = rule, n, level
        self.chains, self.watch = ChainState.idle([rule]), unwatched(rule.shape)
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
        first[:, lane], levels[:, lane] = (
            np.where(there, 0, -1),
            np.where(there, np.inf, self.level),
        )
        reached[:, lane] = r.ravel()
        each = draws(self.rule, stream)
        return lambda count: np.stack([one(count) for one in each], axis=1), self.rule.step_size(
            self.n
        )

    def idle(self, lane: int) -> None:
        self.watch[0][:, lane] = np.inf

    def passed(self, lane: int) -> tuple[int, int]:
        first, last = self.watch[1][:, lane].tolist()
        return first, last

    def overlaps(self, lane: int) -> Array:
        if self.watch[1][1, lane] < 0:
            return self.chains.seen(lane)["R"].copy()
        return self.watch[2][:, lane].reshape(self.rule.shape).copy()

    def why(self) -> str:
        return not_finite()

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
    rule: HebbianRule, n: int, streams: Sequence[Stream], threshold: float, most_steps: int
) -> list[Passage]:
    """First passages of chains, exact in law, eight at a time.

    ``first`` is when some abs(R_ij) reaches the threshold, ``last`` when each of the fewer of
    projections and sources has such an R_ij. A chain takes the path that
    :func:`hdica.systems.hebbian_ica.rule.run_chains` gives it on the same stream, whatever runs
    beside it. It is given up after ``most_steps``.
    """
    check_dimension(rule, n, "chain")
    return race(_Overlaps(rule, n, threshold), streams, most_steps)


PASSAGES = (
    replace(FIRST, long_name="time of the first passage of any abs(R_ij), or of the end"),
    *(FIRST_SEEN, LAST, LAST_SEEN),
)


def passages_in(power: int) -> RunAll:
    """First passages in n^power steps."""

    def of_rule(
        system: HebbianICA, rule: HebbianRule, n: int, streams: Sequence[Stream], most: int
    ) -> list[Passage]:
        return passages(rule, n, streams, system.threshold, most)

    return races(
        "chain",
        lambda system, n: rule(system),
        lambda system: content_of(system, IGNORED),
        of_rule,
        power,
        last=True,
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
