"""Nonlinearities: for hdica a text, for the reference a function and where it is not smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Function:
    """f of the rule.

    ``kinks`` are where f or a derivative of it jumps or is infinite, ``width`` is the length on
    which it changes about ``centre``.
    """

    text: str
    value: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()
    width: float = 1.0
    odd: bool = True


def _number(rng: np.random.Generator, low: float = 0.3, high: float = 10.0) -> float:
    """Log-uniform, of few digits: its text is the same number."""
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.4g}")


def _tanh(a: float, b: float) -> Function:
    return Function(f"tanh({a}*x)", lambda x: np.tanh(a * x), width=1 / a)


def _atan(a: float, b: float) -> Function:
    return Function(f"atan({a}*x)", lambda x: np.arctan(a * x), width=1 / a)


def _erf(a: float, b: float) -> Function:
    return Function(f"erf({a}*x)", lambda x: erf(a * x), width=1 / a)


def _cubic(a: float, b: float) -> Function:
    text = f"(x**3 - {a}*x + {b}*x**2)"
    return Function(text, lambda x: x**3 - a * x + b * x**2, odd=False)


def _hump(a: float, b: float) -> Function:
    return Function(f"x*exp(-{a}*x**2)", lambda x: x * np.exp(-a * x * x), width=a**-0.5)


def _sine(a: float, b: float) -> Function:
    return Function(f"sin({a}*x)", lambda x: np.sin(a * x), width=1 / a)


def _sign(a: float, b: float) -> Function:
    return Function(f"sign(x - {b})", lambda x: np.sign(x - b), (b,), odd=False)


def _square(a: float, b: float) -> Function:
    return Function("x*abs(x)", lambda x: x * np.abs(x), (0.0,))


def _power(a: float, b: float) -> Function:
    p = float(f"{0.3 + 0.2 * a:.4g}")
    return Function(f"sign(x)*abs(x)**{p}", lambda x: np.sign(x) * np.abs(x) ** p, (0.0,))


def _redescending(a: float, b: float) -> Function:
    return Function(f"x/(1 + {a}*x**2)", lambda x: x / (1 + a * x * x), width=a**-0.5)


def _soft(a: float, b: float) -> Function:
    text = f"(sqrt(1 + {a}*(x - {b})**2) - x)"
    return Function(
        text, lambda x: np.sqrt(1 + a * (x - b) ** 2) - x, width=min(a**-0.5, b), odd=False
    )


def _damped(a: float, b: float) -> Function:
    text = f"x**3*exp(-{a}*abs(x))"
    return Function(text, lambda x: x**3 * np.exp(-a * np.abs(x)), (0.0,), 1 / a)


def _clipped(a: float, b: float) -> Function:
    text = f"(abs(x + {b}) - abs(x - {b}))"
    return Function(text, lambda x: np.abs(x + b) - np.abs(x - b), (-b, b))


def _dead(a: float, b: float) -> Function:
    text = f"(x*sign(x**2 - {b}) + x)"
    root = b**0.5
    return Function(text, lambda x: x * np.sign(x * x - b) + x, (-root, root))


FAMILIES = (
    _tanh, _atan, _erf, _cubic, _hump, _sine, _sign,
    _square, _power, _redescending, _soft, _damped, _clipped, _dead,
)  # fmt: skip
ODD = (_tanh, _atan, _erf, _hump, _sine, _square, _power, _redescending, _damped, _clipped, _dead)


def random_function(rng: np.random.Generator, odd: bool = False) -> Function:
    """One of the families with random scales, and a random factor of either sign."""
    family = (ODD if odd else FAMILIES)[rng.integers(len(ODD if odd else FAMILIES))]
    one = family(_number(rng), _number(rng, 0.3, 3.0))
    factor = _number(rng) * (1 if rng.random() < 0.5 else -1)
    value = one.value
    return Function(
        f"{factor}*{one.text}", lambda x: factor * value(x), one.kinks, one.width, one.odd
    )


def random_smooth(rng: np.random.Generator) -> Function:
    """A polynomial, or a function that is smooth on the scale of a normal law."""
    if rng.random() < 0.5:
        return _cubic(_number(rng, 0.3, 3.0), _number(rng, 0.3, 1.0))
    return _tanh(_number(rng, 0.3, 0.9), 1.0)


def opposite(f: Function) -> Function:
    """-f."""
    text = f.text[1:] if f.text.startswith("-") else "-" + f.text
    return replace(f, text=text, value=lambda x: -f.value(x))
