"""Error bars of the limit of rules, over random rules: what refinement changes lies within."""

from __future__ import annotations

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.solvers import integrate
from hdica.limits.rules.averages import Averages
from hdica.limits.rules.equations import follow
from hdica.systems.rules.system import limit_of, start_of

PIECES = [
    "(v - u)",
    "tanh(v - u)",
    "sign(v - u)",
    "clip(v - u, -1, 1)",
    "v*(u*v < 0)",
    "-u**3",
    "-tanh(2*u)",
    "erf(v) - erf(u)",
    "(v**2 - u**2)*tanh(u)",
    "abs(v) - abs(u)",
    "where(v > 0.3, 1, -1)*exp(-u**2)",
    "sin(v) - sin(u)",
    "relu(v) - relu(u)",
]
SOURCES = ["gaussian", "uniform", "laplace", "rademacher", {"chi2": 4}, {"bernoulli_gaussian": 0.3}]
TIMES = np.array([0.0, 0.5, 2.0])


def random_rule(rng: np.random.Generator):
    one, other = rng.choice(len(PIECES), 2, replace=False)
    first, second = (round(float(x), 2) for x in rng.uniform(0.05, 0.5, 2))
    update = f"{first}*({PIECES[one]}) + {second}*({PIECES[other]})"
    noisy = rng.random() < 0.05
    return hdica.OnlineRule(
        update=update + (" + 0.1*z*(v - u)" if noisy else ""),
        noise={"z": "uniform"} if noisy else {},
        source=SOURCES[rng.integers(len(SOURCES))],
        normalise=str(rng.choice(["none", "norm"])),
        entrywise=str(rng.choice(["0", "-0.3*x"])),
        start={"overlap": round(float(rng.uniform(-0.6, 0.6)), 2)},
    )


def held(seed: int, rules: int) -> tuple[int, int]:
    """Numbers within their error bar, and all numbers."""
    rng, within, total = np.random.default_rng(seed), 0, 0
    while rules:
        rule = random_rule(rng)
        equations, (r, p) = limit_of(rule), start_of(rule)
        if equations.sample.refusal(r, p):
            continue
        rules -= 1
        try:
            path = follow(equations, r, p, TIMES)
        except HdicaError:
            continue
        finest = Averages(equations.sample, 6 if len(equations.sample.variables) == 2 else 4)
        clock = Schedule(np.asarray, None)
        truth, _ = integrate(
            lambda state, t, e=equations, a=finest: e.rate(a, state, t),
            clock,
            equations.joined(r, p),
            TIMES,
            1e-12,
        )
        within += int(np.sum(np.abs(path.state - truth)[1:] <= path.error[1:]))
        total += path.state[1:].size
    return within, total


def test_the_truth_lies_within_the_bars_of_a_few_rules() -> None:
    within, total = held(1, 3)
    assert within >= total - 1


@pytest.mark.deep
@pytest.mark.parametrize("seed", [3, 5])
def test_the_truth_lies_within_the_bars(seed: int) -> None:
    within, total = held(seed, 4)
    assert total >= 12
    assert within >= total - 1


@pytest.mark.deep
@pytest.mark.parametrize("seed", [3])
def test_densities_have_the_overlap_of_the_limit_within_their_bars(seed: int) -> None:
    """Of a linear psi the limit of Q and P alone is the truth."""
    rng, within, total, refused = np.random.default_rng(seed), 0, 0, 0
    while total < 4:
        rule = random_rule(rng)
        try:
            closed = hdica.limit(rule, times=TIMES, method="ode", timeout=None)
            density = hdica.limit(rule, times=TIMES, method="pde", timeout=None)
        except HdicaError:
            refused += 1
            assert refused < 20
            continue
        for name in ("Q", "P"):
            error = density[f"{name}_error"] + closed[f"{name}_error"]
            inside = np.abs(density[name] - closed[name])[1:] <= error[1:] + 1e-12
            within, total = within + int(inside.sum()), total + int(inside.size)
    assert within >= total - 1
