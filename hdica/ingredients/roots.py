"""Real roots of polynomials: isolated exactly, then narrowed down to one number each."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from hdica.errors import HdicaError

DIGITS = 60
"""Digits in which coefficients such as pi are taken."""
MOST_BITS = 120_000
"""Length of the longest coefficient times the degree, beyond which isolation takes too long."""
_SMALLEST = 1e-300


def real_zeros(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Where a polynomial vanishes: every real root, once, increasing, each the nearest number.

    Coefficients that are not rational are taken in so many digits, so that roots that only just
    touch may part or vanish.
    """
    if isinstance(expression, sp.Mul):
        parts = [real_zeros(one, symbol) for one in expression.args]
        return sorted({zero for zeros in parts for zero in zeros})
    if isinstance(expression, sp.Pow):
        return real_zeros(expression.base, symbol)
    if not expression.has(symbol):
        return []
    whole = _whole(sp.Poly(expression, symbol))
    if whole.degree() < 1:
        return []
    # Of multiple roots, too, one is left, with a change of sign at it.
    coefficients = [int(c) for c in whole.sqf_part().all_coeffs()]
    return sorted({_narrowed(coefficients, *ends) for ends in _isolated(coefficients, symbol)})


def _whole(polynomial: sp.Poly) -> sp.Poly:
    """The polynomial times a number, its coefficients whole."""
    if not is_exact(polynomial):
        near = [sp.Rational(str(c.evalf(DIGITS))) for c in polynomial.all_coeffs()]
        polynomial = sp.Poly(near, *polynomial.gens)
    whole = polynomial.clear_denoms(convert=True)[1]
    bits = max(int(c).bit_length() for c in whole.all_coeffs()) * whole.degree()
    if bits > MOST_BITS:
        raise HdicaError("the numbers of a polynomial in it are of too different sizes")
    return whole


def is_exact(polynomial: sp.Poly) -> bool:
    """Whether all coefficients are rational."""
    return polynomial.domain in (sp.ZZ, sp.QQ)


def _isolated(coefficients: list[int], symbol: sp.Symbol) -> list[tuple[Fraction, Fraction]]:
    """Intervals that hold one root each; both ends are the root where it is rational and found.

    Isolation moves from integer to integer: it is given the roots on the scale of the largest.
    """
    degree, first = len(coefficients) - 1, coefficients[0].bit_length()
    sizes = [
        -(-(c.bit_length() - first + 1) // power)
        for power, c in enumerate(coefficients[1:], start=1)
        if c
    ]
    scale = max(sizes, default=0) + 1
    shifts = [scale * (degree - power if scale > 0 else -power) for power in range(degree + 1)]
    near = [c << shift for c, shift in zip(coefficients, shifts, strict=True)]
    unit = Fraction(2) ** scale
    found = [ends for ends, _ in sp.Poly(near, symbol).intervals()]
    return [
        (unit * Fraction(int(a.p), int(a.q)), unit * Fraction(int(b.p), int(b.q))) for a, b in found
    ]


def _sign(coefficients: list[int], at: Fraction) -> int:
    """Sign at a rational number, without rounding."""
    total, scale = 0, 1
    for c in coefficients:
        total = total * at.numerator + c * scale
        scale *= at.denominator
    return (total > 0) - (total < 0)


def _beside(coefficients: list[int], at: Fraction, side: int) -> int:
    """Sign just above (side 1) or below (-1) a number, which may be a root."""
    slope = [c * (len(coefficients) - 1 - place) for place, c in enumerate(coefficients[:-1])]
    return _sign(coefficients, at) or side * _sign(slope, at)


def _narrowed(coefficients: list[int], low: Fraction, high: Fraction) -> float:
    """The number nearest to the one root between two others."""
    first, last = float(low), float(high)
    below = _beside(coefficients, low, 1)
    while low < high and last - first > _SMALLEST:
        middle = first + (last - first) / 2
        if not first < middle < last:
            break
        side = _sign(coefficients, Fraction(middle))
        if side == 0:
            return middle
        first, last = (middle, last) if side == below else (first, middle)
    half = (Fraction(first) + Fraction(last)) / 2
    return last if low < high and _sign(coefficients, half) == below else first
