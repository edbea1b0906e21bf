"""What does a step of the full vector cost, in ns a coordinate?

Online ICA (uniform source, f = x³, τ = 0.02, dense prior) and online sparse PCA (l1, ω = 1,
τ = 0.5, a twentieth of the entries non-zero), float64, one thread. Ours is the public
``hdica.simulate(..., method="vector")``, with its start and its bookkeeping. Rivals make the same
steps: a loop in NumPy, the loop in Numba with ``np.random.Generator``, a kernel in C as the
stand-in for what the machine can do (with noise in float64, and in float32), and ``lax.scan`` in
JAX.

Run: python -m benchmarks vector   (one to two minutes; rivals that are not installed are left out)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import hdica
from benchmarks.harness import Contestant, Row, present, race
from hdica.ingredients.priors import make_prior
from hdica.ingredients.starts import make_start

Array = NDArray[np.float64]
Steps = Callable[..., Array]

NAME = "vector"
UNIT = "ns per coordinate-step"


@dataclass(frozen=True)
class Problem:
    """One system at its parameters, for us and for the rivals.

    Parameters
    ----------
    label
        Name in the table.
    system
        For ``hdica.simulate``.
    rule
        Name of the function in the rivals' modules: ``"ica"`` or ``"oist"``.
    numbers
        Its keyword arguments.
    source
        ``source(rng, steps)``: the draws of c.
    """

    label: str
    system: Any
    rule: str
    numbers: Mapping[str, float]
    source: Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Rival:
    """A module of ``benchmarks.rivals`` with functions ``ica`` and ``oist``.

    Parameters
    ----------
    name, module
        In the table, and where its code is.
    needs
        What has to be installed.
    nanoseconds
        Roughly what a coordinate-step costs, which fixes the number of steps of a timed call.
    options
        Further keyword arguments.
    note
        As in :class:`benchmarks.harness.Contestant`.
    """

    name: str
    module: str
    needs: tuple[str, ...] = ()
    nanoseconds: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def steps(self, problem: Problem) -> Steps:
        """``steps(x, xi, source, rng=rng)``: the estimate after as many steps as sources."""
        function = getattr(import_module(f"benchmarks.rivals.{self.module}"), problem.rule)
        return partial(function, **problem.numbers, **self.options)


RIVALS = (
    Rival("NumPy loop", "numpy_vector", nanoseconds=13),
    Rival("Numba loop with Generator", "numba_vector", ("numba",), 3),
    Rival("C kernel", "c_vector", ("gcc",), 0.6),
    Rival("C kernel, noise in float32", "c_vector", ("gcc",), 0.4, {"noise": "float32"}),
    Rival("JAX lax.scan", "jax_vector", ("jax",), 20),
)


def ica(beta: float = 0.0, tau: float = 0.02) -> Problem:
    """Online ICA without a regularizer, or with beta x."""
    regularizer = {"regularizer": f"{beta}*x"} if beta else {}
    system = hdica.OnlineICA(
        tau=tau,
        source="uniform",
        nonlinearity="x**3",
        prior="dense",
        start={"overlap": 0.7},
        **regularizer,
    )
    return Problem(
        f"online ICA, φ = {f'{beta:g}x' if beta else '0'}",
        system,
        "ica",
        {"tau": tau, "beta": beta},
        lambda rng, steps: rng.uniform(-math.sqrt(3), math.sqrt(3), steps),
    )


def sparse_pca() -> Problem:
    """OIST with a sparse feature."""
    system = hdica.SparsePCA(
        tau=0.5,
        omega=1.0,
        regularizer="0.27*sign(x)",
        prior={"sparse": 0.05},
        start={"overlap": 0.7},
    )
    return Problem(
        "sparse PCA, φ = 0.27 sign x",
        system,
        "oist",
        {"tau": 0.5, "omega": 1.0, "beta": 0.27},
        lambda rng, steps: rng.standard_normal(steps),
    )


def begin(problem: Problem, n: int, seed: int) -> tuple[Array, Array, np.random.Generator]:
    """Estimate, feature and generator of a rival's run, from the laws that ours begins with."""
    rng = np.random.Generator(np.random.SFC64(seed))
    xi = make_prior(problem.system.prior).feature(rng, n)
    return make_start(problem.system.start).estimate(rng, xi), xi, rng


def ours(problem: Problem, n: int, seconds: float) -> Contestant:
    """The public call, for as many steps as take about ``seconds``."""
    steps = max(1, round(seconds * 1e9 / n))
    call = partial(
        hdica.simulate,
        problem.system,
        n=n,
        times=[0, steps / n],
        seeds=[0],
        method="vector",
    )
    return Contestant("hdica", call, n * steps)


def theirs(rival: Rival, problem: Problem, n: int, seconds: float) -> Contestant:
    """The rival's steps, drawing of the sources included."""
    steps = max(1, round(seconds * 1e9 / rival.nanoseconds / n))
    advance = rival.steps(problem)
    x, xi, rng = begin(problem, n, 0)

    def run() -> Array:
        return advance(x, xi, problem.source(rng, steps), rng=rng)

    return Contestant(rival.name, run, n * steps, note=rival.note)


def cases(small: bool) -> list[tuple[Problem, int]]:
    """Problems and dimensions."""
    if small:
        return [(ica(), 100), (ica(0.5), 100), (sparse_pca(), 100)]
    return [
        *((ica(), n) for n in (10**3, 10**4, 10**6)),
        (ica(0.5), 10**4),
        *((sparse_pca(), n) for n in (10**3, 10**4, 10**6)),
    ]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    rivals = [rival for rival in RIVALS if present(rival.name, *rival.needs)]
    found = []
    with threadpool_limits(1):
        for problem, n in cases(small):
            # At n = 10^6 the start of our call costs as much as tens of steps.
            seconds = 1e-4 if small else 1.0 if n >= 10**6 else 0.25
            contestants = [ours(problem, n, seconds)]
            contestants += [theirs(rival, problem, n, min(seconds, 0.25)) for rival in rivals]
            case = f"{problem.label}, n = {spoken(n)}"
            found += race(NAME, case, contestants, unit=UNIT, scale=1e9, repeats=repeats)
    return found


def spoken(n: int) -> str:
    """A dimension as it is written in text: powers of ten as such."""
    power = round(math.log10(n))
    if power < 3 or n != 10**power:
        return str(n)
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(power))
