"""Random cases: what hdica is asked, how it reads as one line, and the pairs behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import hdica
from tests.bars.averages import normal_average
from tests.bars.functions import Function, random_function, random_smooth
from tests.bars.laws import LawOf, random_law
from tests.bars.passages import near_zero
from tests.bars.paths import StepSize
from tests.bars.several import RULES


@dataclass(frozen=True, eq=False)
class Case:
    """A call of hdica: ``verb(system(**fields), **options)``."""

    verb: str
    system: str
    fields: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """The call as one line of Python."""
        fields = ", ".join(f"{k}={v!r}" for k, v in self.fields.items())
        options = "".join(f", {k}={v!r}" for k, v in self.options.items())
        return f"hdica.{self.verb}(hdica.{self.system}({fields}){options})"

    def run(self) -> Any:
        """What hdica answers."""
        system = getattr(hdica, self.system)(**self.fields)
        return getattr(hdica, self.verb)(system, **self.options)


def _number(value: float) -> float:
    return float(f"{value:.4g}")


def typical(f: Function) -> float:
    """Root of <f(z)**2>: a step size is small or large compared to its inverse."""
    (power,), _ = normal_average(lambda z: np.array([f.value(z) ** 2]), f)
    return math.sqrt(power)


def random_step(rng: np.random.Generator, size: float, end: float, kind: str) -> StepSize:
    """A step size that begins near ``size``: ``kind`` is number, formula or steps."""
    a, b, c = _number(size), _number(end / 3), _number(0.3 * size)
    if kind == "number":
        return StepSize(a, lambda t: a)
    if kind == "formula":
        if rng.random() < 0.5:
            return StepSize(f"{a}/(1 + t/{b})", lambda t: a / (1 + t / b))
        return StepSize(f"{a}*exp(-t/{b}) + {c}", lambda t: a * math.exp(-t / b) + c)
    first, second = _number(end / 5), _number(end / 2)
    spec = {"steps": {"times": [first, second], "values": [a, _number(2 * a), c]}}
    values = spec["steps"]["values"]
    return StepSize(spec, lambda t: values[int(t >= first) + int(t >= second)], (first, second))


def random_pair(rng: np.random.Generator, odd: bool = False) -> tuple[Function, LawOf]:
    """A nonlinearity and a source; ``odd`` with a symmetric source."""
    return random_function(rng, odd), random_law(rng, odd)


def limit_case(
    rng: np.random.Generator, f: Function, law: LawOf, method: str, schedule: str
) -> tuple[Case, StepSize, float, np.ndarray]:
    """A limit to solve, its step size, its first overlap and its times."""
    relative = math.exp(rng.uniform(math.log(0.02), math.log(1.0)))
    end = math.exp(rng.uniform(math.log(2.0), math.log(50.0))) / relative
    step = random_step(rng, relative / typical(f), end, schedule)
    q0 = _number(rng.uniform(0.1, 0.95) * (1 if rng.random() < 0.5 else -1))
    times = [_number(end * share) for share in (0.1, 0.4, 1.0)]
    if method == "hebbian":
        fields = {
            "sources": [law.spec], "nonlinearity": f.text, "sigma": [int(rng.choice([-1, 1]))],
            "mu": step.spec, "start": {"overlap": q0},
        }  # fmt: skip
        return (
            Case("limit", "HebbianICA", fields, {"times": times, "method": "ode"}),
            step,
            q0,
            np.array(times),
        )
    fields = {
        "tau": step.spec, "source": law.spec, "nonlinearity": f.text,
        "start": {"overlap": q0, "exact": True},
    }  # fmt: skip
    if method == "pde":
        fields["prior"] = "dense" if rng.random() < 0.5 else {"sparse": 0.3}
    return (
        Case("limit", "OnlineICA", fields, {"times": times, "method": method}),
        step,
        q0,
        np.array(times),
    )


def escape_case(
    rng: np.random.Generator, f: Function, law: LawOf, n: int | None
) -> tuple[Case, float, float, float, float]:
    """An escape time, with nu, P, kappa4 <f'''> and their relative error; R = 0 at first."""
    power, product, error = near_zero(f, law)
    g = math.exp(rng.uniform(math.log(0.025), math.log(0.6)))
    nu = _number(abs(product) / (6 * power * g))
    fields = {
        "sources": [law.spec], "nonlinearity": f.text, "sigma": "escape", "nu": nu, "start": "zero",
    }  # fmt: skip
    options = {} if n is None else {"n": n}
    return Case("escape_time", "HebbianICA", fields, options), nu, power, product, error


def several_case(rng: np.random.Generator) -> tuple[Case, Function, StepSize]:
    """A limit of Hebbian ICA with two sources and one or two projections."""
    f, projections = random_smooth(rng), int(rng.integers(1, 3))
    relative = math.exp(rng.uniform(math.log(0.02), math.log(0.3)))
    end = math.exp(rng.uniform(math.log(2.0), math.log(10.0))) / relative
    kind = ("number", "formula", "steps")[rng.integers(3)]
    step = random_step(rng, relative / typical(f), end, kind)
    rotation = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    r0 = np.round(0.8 * rotation[:projections] * rng.uniform(0.3, 1.0, (projections, 1)), 4)
    fields = {
        "sources": [RULES[i] for i in rng.integers(len(RULES), size=2)],
        "projections": projections,
        "nonlinearity": f.text,
        "sigma": [int(v) for v in rng.choice([-1, 1], projections)],
        "mu": step.spec,
        "start": {"overlap": r0.tolist()},
    }
    times = [_number(end * share) for share in (0.3, 1.0)]
    return Case("limit", "HebbianICA", fields, {"times": times, "method": "ode"}), f, step
