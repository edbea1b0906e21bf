"""What a plan says of a method is what the method does, by the work that it does and no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.ingredients.save import NOTHING
from hdica.systems.system import methods_of

SECONDS_A_CALL = 1.2e-6
"""On the processor of the cost models, in methods whose work is in small steps of Python."""
FACTOR = 5
TIMES = np.linspace(0, 20, 21)
TANH: dict[str, Any] = {"nonlinearity": "tanh(x)", "source": "laplace", "start": {"overlap": 0.5}}
SPARSE: dict[str, Any] = {"prior": {"sparse": 0.3}, "start": {"overlap": 0.5}}
PROBLEMS = [
    ("tanh", hdica.OnlineICA(tau=0.1, **TANH), hdica.OnlineICA(tau=0.104, **TANH)),
    (
        "signal",
        hdica.SparsePCA(tau=0.3, omega="1 + t/20", **SPARSE),
        hdica.SparsePCA(tau=0.31, omega="1 + t/20", **SPARSE),
    ),
    (
        "schedule",
        hdica.SparsePCA(tau="0.3/(1 + t/20)", **SPARSE),
        hdica.SparsePCA(tau="0.31/(1 + t/20)", **SPARSE),
    ),
]
CASES = [
    pytest.param(method, before, system, id=f"{name}-{method}")
    for name, before, system in PROBLEMS
    for method in ("ode", "ornstein_uhlenbeck", "particles", "fixed_points")
    if not methods_of(type(system).__name__)[method].scope.refuses(system)
]


def calls(compute: Callable[[], object]) -> int:
    """How many functions were called, of Python and of its extensions."""
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        compute()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(("name", "before", "system"), CASES)
def test_a_plan_says_what_a_method_does(name: str, before: Any, system: Any) -> None:
    """Averages of f and modules are there after the first point, as in a study."""
    method = methods_of(type(system).__name__)[name]
    n, seed = (500 if method.takes_n else None), (0 if method.stochastic else None)
    method.run(before, TIMES, n, seed, NOTHING)
    work = SECONDS_A_CALL * calls(lambda: method.run(system, TIMES, n, seed, NOTHING))
    assert work / FACTOR < method.cost.seconds(system, n, TIMES[-1]) < work * FACTOR
