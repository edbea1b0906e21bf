"""What does a step of Hebbian ICA cost, for K projections of M sources?

Uniform sources, φ = x³ or tanh x, from R = 0.5 I. Ours is the public
``hdica.simulate(..., method="chain")``, per step and seed. Rivals: our own full vector by
``method="vector"`` (the ratio is what the exact reduction buys), and the same reduction as a loop
in NumPy over all seeds at once and in Numba with ``np.random.Generator``. Then the first passages
of figure 3(c) of Rattray (2002), n = 100 and ν = 4: chains that are watched for up to 10⁷ steps.

Run: python -m benchmarks hebbian   (about a minute)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

import hdica
from benchmarks.harness import Contestant, Row, present, race
from benchmarks.vector import spoken
from hdica.finite.random.streams import Stream, point_stream
from hdica.systems.hebbian_ica.passage import Passage, passages
from hdica.systems.hebbian_ica.system import rule

NAME = "hebbian"
RIVALS = (
    ("NumPy loop", "numpy_hebbian", ()),
    ("Numba loop with Generator", "numba_hebbian", ("numba",)),
)
START, MU, ALPHA = 0.5, 0.02, 0.5
# The signs that find a uniform source.
FORMULA = {"cubic": ("x**3", -1), "tanh": ("tanh(x)", 1)}
LEVEL, FIGURE_N, FIGURE_NU = 0.8, 100, 4.0


@dataclass(frozen=True)
class Case:
    """K projections of K sources.

    Parameters
    ----------
    size
        K = M.
    phi
        ``"cubic"`` or ``"tanh"``.
    n, seeds, steps
        Dimension, seeds and steps of each.
    mu
        n eta.
    """

    size: int
    phi: Literal["cubic", "tanh"]
    n: int
    seeds: int
    steps: int
    mu: float = MU

    @property
    def label(self) -> str:
        """Name in the table."""
        shown = "x³" if self.phi == "cubic" else "tanh x"
        return f"K = M = {self.size}, φ = {shown}, n = {spoken(self.n)}"

    @property
    def system(self) -> hdica.HebbianICA:
        """For ``hdica.simulate``."""
        formula, sign = FORMULA[self.phi]
        return hdica.HebbianICA(
            sources=["uniform"] * self.size,
            projections=self.size,
            nonlinearity=formula,
            sigma=[sign] * self.size,
            mu=self.mu,
            alpha=ALPHA,
            start={"overlap": (START * np.eye(self.size)).tolist()},
        )


def cases(small: bool) -> list[Case]:
    """What is raced."""
    if small:
        return [Case(1, "cubic", 100, 8, 100), Case(2, "tanh", 100, 8, 100)]
    return [
        *(Case(size, "cubic", 100, 64, 200_000 // size**2) for size in (1, 2)),
        *(Case(size, "cubic", 10**4, 64, 200_000 // size**2) for size in (1, 2, 4)),
        *(Case(size, "tanh", 10**4, 64, 100_000 // size**2) for size in (1, 2)),
    ]


def chains(case: Case) -> Contestant:
    """Our chains."""
    call = partial(
        hdica.simulate,
        case.system,
        n=case.n,
        times=[0, case.steps / case.n],
        seeds=range(case.seeds),
        method="chain",
    )
    return Contestant("hdica", call, case.seeds * case.steps, note=f"{case.seeds} seeds")


def full(case: Case, seconds: float) -> Contestant:
    """Our full vector, for as many steps as take about ``seconds``."""
    steps = max(1, round(seconds * 1e9 / case.n / case.size))
    times = [0, steps / case.n]
    call = partial(hdica.simulate, case.system, n=case.n, times=times, seeds=[0], method="vector")
    return Contestant("hdica, full vector", call, steps)


def theirs(name: str, module: str, case: Case) -> Contestant:
    """A rival's chains."""
    advance = import_module(f"benchmarks.rivals.{module}").hebbian
    rng = np.random.Generator(np.random.SFC64(0))
    r = np.tile(START * np.eye(case.size), (64, 1, 1))
    steps = min(case.steps, 5_000)
    law = {"phi": case.phi, "sigma": FORMULA[case.phi][1], "mu": case.mu, "alpha": ALPHA}
    return Contestant(name, partial(advance, r, case.n, steps, **law, rng=rng), 64 * steps)


def watched(seeds: int, n: int, nu: float, most: int) -> Callable[[], list[Passage]]:
    """Our first passages of one uniform source."""
    system = hdica.HebbianICA(sigma=[-1], nu=nu, alpha=ALPHA, start="random")

    def stream(seed: int) -> Stream:
        return lambda part: point_stream({"benchmark": NAME}, "chain", n, seed, part)

    streams = [stream(seed) for seed in range(seeds)]
    return partial(passages, rule(system), n, streams, LEVEL, most)


def escapes(small: bool) -> list[Contestant]:
    """First passages of figure 3(c): nearly all chains are still trapped at the end."""
    seeds, most = (8, 1000) if small else (8, 10**7)
    ours = watched(seeds, FIGURE_N, FIGURE_NU, most)
    found = [Contestant("hdica", ours, seeds * most, note=f"{seeds} seeds")]
    if present("Numba loop with Generator", "numba"):
        advance = import_module("benchmarks.rivals.numba_hebbian").first_passages
        rng = np.random.Generator(np.random.SFC64(0))
        steps = most if small else most // 10
        call = partial(advance, seeds, FIGURE_N, steps, nu=FIGURE_NU, level=LEVEL, rng=rng)
        found.append(Contestant("Numba loop with Generator", call, seeds * steps))
    return found


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    rivals = [(name, module) for name, module, needs in RIVALS if present(name, *needs)]
    seconds, found = 1e-4 if small else 0.5, []
    with threadpool_limits(1):
        for case in cases(small):
            contestants = [chains(case), full(case, seconds)]
            contestants += [theirs(name, module, case) for name, module in rivals]
            found += race(
                NAME, case.label, contestants, unit="ns per step", scale=1e9, repeats=repeats
            )
        unit, most = "s per 10⁷ steps", "10³" if small else "10⁷"
        case = f"first passages of at most {most} steps, n = {FIGURE_N}, ν = {FIGURE_NU:g}"
        found += race(NAME, case, escapes(small), unit=unit, scale=1e7, repeats=repeats)
    return found
