"""How much cheaper is a step of the O(1) chain than a step of the full vector?

Online ICA (uniform source, f = x³, τ = 0.02, φ = 0). Ours is the public
``hdica.simulate(..., method="chain")``, per step and seed, with its starts. Rivals: our own full
vector by ``method="vector"`` (the ratio is what the exact reduction buys), and the same chain as a
loop in NumPy over all seeds at once and in Numba with ``np.random.Generator``. Then a rule that is
written as formulas, a committee of two erf units that learn from two, beside the last of these.

Run: python -m benchmarks chain   (about a minute)
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

import numpy as np
from threadpoolctl import threadpool_limits

import hdica
from benchmarks.harness import Contestant, Row, present, race
from benchmarks.vector import ica, ours, spoken

NAME = "chain"
UNIT = "ns per step"
RIVALS = (
    ("NumPy loop", "numpy_chain", ()),
    ("Numba loop with Generator", "numba_chain", ("numba",)),
)


def chains(n: int, seeds: int, steps: int) -> Contestant:
    """Our chains."""
    call = partial(
        hdica.simulate,
        ica().system,
        n=n,
        times=[0, steps / n],
        seeds=range(seeds),
        method="chain",
    )
    return Contestant("hdica", call, seeds * steps, note=f"{seeds} seeds")


def full(n: int, seconds: float) -> Contestant:
    """Our full vector, with a step as the unit."""
    vector = ours(ica(), n, seconds)
    return Contestant("hdica, full vector", vector.run, vector.work / n)


def theirs(name: str, module: str, n: int, seeds: int, steps: int) -> Contestant:
    """A rival's chains."""
    advance = import_module(f"benchmarks.rivals.{module}").ica
    q, rng = np.full(seeds, 0.7), np.random.Generator(np.random.SFC64(0))
    return Contestant(name, partial(advance, q, n, steps, tau=0.02, rng=rng), seeds * steps)


_UNITS = ("erf(v1/sqrt(2)) + erf(v2/sqrt(2))", "erf(u1/sqrt(2)) + erf(u2/sqrt(2))")
COMMITTEE = hdica.OnlineRule(
    update=[f"tau*({_UNITS[0]} - ({_UNITS[1]}))*sqrt(2/pi)*exp(-u{k}**2/2)" for k in (1, 2)],
    source=["gaussian", "gaussian"],
    start={"overlap": [[0.1, 0.0], [0.0, 0.15]], "products": [[0.3, 0.05], [0.05, 0.25]]},
    constants={"tau": 0.5},
)
"""Two estimates and two features."""


def committees(n: int, seeds: int, steps: int) -> list[Contestant]:
    """Our chains of a committee and those of a rival."""
    times = [0, steps / n]
    call = partial(hdica.simulate, COMMITTEE, n=n, times=times, seeds=range(seeds), method="chain")
    each = [Contestant("hdica", call, seeds * steps, note=f"{seeds} seeds")]
    name, module, needs = RIVALS[-1]
    if present(name, *needs):
        advance = import_module(f"benchmarks.rivals.{module}").committee
        rng, start = np.random.Generator(np.random.SFC64(0)), COMMITTEE.start
        r, p = (np.tile(np.array(start[key]), (seeds, 1, 1)) for key in ("overlap", "products"))
        each.append(
            Contestant(name, partial(advance, r, p, n, steps, tau=0.5, rng=rng), seeds * steps)
        )
    return each


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    # The start of a chain is a draw of all n entries: at n = 10^6 it costs as much as 10^6 steps,
    # so that a run of t = 10 is the shortest that shows the steps.
    cases = [(100, 8, 100)] if small else [(5000, 64, 50_000), (10**6, 16, 10**7)]
    seconds = 1e-4 if small else 1.0
    rivals = [(name, module) for name, module, needs in RIVALS if present(name, *needs)]
    found = []
    with threadpool_limits(1):
        for n, seeds, steps in cases:
            contestants = [chains(n, seeds, steps), full(n, seconds)]
            for name, module in rivals:
                contestants.append(theirs(name, module, n, 64, min(steps, 20_000)))
            case = f"online ICA, φ = 0, n = {spoken(n)}"
            found += race(NAME, case, contestants, unit=UNIT, scale=1e9, repeats=repeats)
        n, seeds, steps = (100, 8, 100) if small else (1000, 64, 20_000)
        case = f"committee of two and two, n = {spoken(n)}"
        contestants = committees(n, seeds, steps)
        found += race(NAME, case, contestants, unit=UNIT, scale=1e9, repeats=repeats)
    return found
