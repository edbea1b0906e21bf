"""Ticks of logarithmic axes, with labels that leave each other room."""

from __future__ import annotations

import numpy as np

from hdica.show.panel import Array
from hdica.show.typeset import power_of_ten
from hdica.show.words import Text, number, words

MOST_TICKS, LEAST_TICKS = 7, 3  # how many labels an axis has, about
GAP = 0.12  # share of an axis that a label takes beside an upright one
LETTER = 0.045
"""Share of a level axis that a letter takes on a telephone, where labels must not be turned."""
MANTISSAS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
"""Ticks in every power of ten, from few to many."""
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
RAISED, SMALLER = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", 0.35  # letters of an exponent, and by how much they are narrower
PLAIN = (1e-3, 1e4)
"""Numbers between these are written in full; an axis with any other has powers of ten."""


def ticks(low: float, high: float, level: bool = False) -> tuple[Array, tuple[Text, ...]]:
    """Places of ticks between two positive ends of an axis, shape (ticks,), and their labels.

    They are at every so many powers of ten on a long axis, at their simple multiples on a shorter
    one, and at even steps where the ends are close. Labels are of one kind: "0.5" and "2000", or
    "10⁵" and "2 × 10⁵". Below a ``level`` axis they stand side by side.
    """
    low, high = min(low, high), max(low, high)
    powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    every = max(1, -(-int(np.log10(high / low) + 1) // MOST_TICKS))
    first = powers[powers % every == 0]
    tried = [10.0**first] + [
        np.sort(np.outer(10.0**powers, some).ravel())
        for some in MANTISSAS[1 if every == 1 else 4 :]
    ]
    tried += [_even(low, high, step) for step in (4, 6)]
    enough = LEAST_TICKS if level else LEAST_TICKS + 1
    places = max(
        (_apart(one, low, high, level) for one in tried),
        key=lambda one: min(one.size, enough),  # the first of those with enough
    )
    return places, labels(places)


def _even(low: float, high: float, count: int) -> Array:
    """Round numbers at even steps, about so many."""
    rough = (high - low) / count
    unit = 10.0 ** np.floor(np.log10(rough)) if rough > 0 else 1.0
    step = next((s * unit for s in STEPS if s * unit >= rough), unit)
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step


def _apart(places: Array, low: float, high: float, level: bool) -> Array:
    """Those inside the ends whose labels leave each other room."""
    slack = 1e-9
    inside = places[(places >= low * (1 - slack)) & (places <= high * (1 + slack)) & (places > 0)]
    length, out = np.log(high / low) or 1.0, list[tuple[float, float]]()
    for one, label in zip(inside, labels(inside), strict=True):
        raised = sum(letter in RAISED for letter in label.plain)
        letters = len(label.plain.replace(" ", "")) - SMALLER * raised
        half = LETTER * (1 + letters) / 2 if level else GAP / 2
        if not out or np.log(one / out[-1][0]) >= max(GAP, half + out[-1][1]) * length:
            out.append((one, half))
    return np.array([one for one, _ in out])


def labels(places: Array) -> tuple[Text, ...]:
    """Labels of places, all in full or all with powers of ten."""
    full = all(PLAIN[0] * (1 - 1e-9) <= one <= PLAIN[1] * (1 + 1e-9) for one in places)
    return tuple(words(number(one, 6)) if full else _power(one) for one in places)


def _power(value: float) -> Text:
    power = int(np.floor(np.log10(value) + 1e-9))
    mantissa = float(f"{value / 10.0**power:.6g}")
    if power in (0, 1):
        return words(number(value, 6))
    html, tex = f"10<sup>{power}</sup>".replace("-", "−"), f"10^{{{power}}}"
    if mantissa == 1:
        return Text(html, f"${tex}$", power_of_ten(power))
    head = number(mantissa, 6)
    return Text(f"{head}×{html}", rf"${head}\times{tex}$", power_of_ten(power, head))
