"""Arguments of the functions that compute: each as it is used, or refused in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import plain

Array = NDArray[np.float64]
MOST = 1e300
"""Larger numbers are not told from infinity: a whole one need not even be a float."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(plain(value))
    return text if len(text) <= 80 else text[:77] + "..."


def whole(value: Any, name: str, allowed: str, least: float = -math.inf) -> int:
    """A whole number.

    Parameters
    ----------
    value
        What was given; 100.0 is the number 100.
    name, allowed
        Of the argument, and what it may be, for the sentence.
    least
        The smallest number that is allowed.

    Raises
    ------
    HdicaError
        If it is anything else.
    """
    found = plain(value)
    if not _is_number(found) or not math.isfinite(found) or int(found) != found or found < least:
        raise HdicaError(f"{name} = {_shown(value)} is not allowed ({allowed})")
    return int(found)


def finite(value: Any, name: str) -> float:
    """A finite number, or a sentence why it is not allowed."""
    found = plain(value)
    if not _is_number(found) or not abs(found) < MOST:
        raise HdicaError(f"{name} = {_shown(value)} is not allowed (a finite number)")
    return float(found)


def check_n(n: Any) -> int:
    """The dimension of a simulation, or a sentence why it is not allowed."""
    allowed = "a whole number >= 3"
    if isinstance(n, list | tuple | range | np.ndarray) and np.size(n) != 1:
        allowed += "; several dimensions: one call for each, or a study"
    return whole(n, "n", allowed, 3)


def check_seeds(seeds: Any) -> list[int]:
    """Seeds of the trials: as many as a number says, or those listed."""
    allowed = "how many, as in seeds=8, or a list of whole numbers >= 0, all different"
    given = plain(seeds)
    if _is_number(given):
        return list(range(whole(given, "seeds", allowed, 1)))
    if isinstance(given, bool | str | Mapping) or not isinstance(given, Iterable):
        raise HdicaError(f"seeds = {_shown(seeds)} is not allowed ({allowed})")
    found = [whole(one, "one of seeds", "a whole number >= 0", 0) for one in given]
    if not found or len(set(found)) < len(found):
        raise HdicaError(f"seeds = {_shown(found)} is not allowed ({allowed})")
    return found


def listed(values: Any, name: str) -> Array:
    """A list of numbers as an array of shape (numbers,).

    Raises
    ------
    HdicaError
        If it is a bare number, or anything in it is no number.
    """
    given = plain(values)
    if _is_number(given):
        raise HdicaError(f"{name} = {given!r} is not allowed (a list: write {name}=[{given!r}])")
    if isinstance(given, bool | str | Mapping) or not isinstance(given, Iterable):
        raise HdicaError(f"{name} = {_shown(values)} is not allowed (a list of numbers)")
    found = [plain(one) for one in given]
    bad = [one for one in found if not _is_number(one)]
    if bad:
        raise HdicaError(f"{name}: {_shown(bad[0])} is not allowed (a list of numbers)")
    try:
        return np.array([float(one) for one in found])
    except OverflowError:
        raise HdicaError(f"{name} = {_shown(found)} is not allowed (finite numbers)") from None


def check_times(times: Any) -> Array:
    """Times as an array of shape (T,), or a sentence why they are not allowed."""
    values = listed(times, "times")
    good = values.size > 0 and np.all(np.isfinite(values)) and values[0] >= 0
    if not good or np.any(np.diff(values) <= 0):
        raise HdicaError(
            f"times = {_shown(values)} is not allowed (at least one, finite, >= 0, increasing)"
        )
    return values


def increasing(values: Any, name: str) -> tuple[float, ...]:
    """Increasing numbers, none if nothing is given, or a sentence why they are not allowed."""
    found = np.empty(0) if values is None else listed(values, name)
    if found.size and (not np.all(np.isfinite(found)) or np.any(np.diff(found) <= 0)):
        raise HdicaError(f"{name} = {_shown(found)} is not allowed (finite and increasing)")
    return tuple(found.tolist())


def formulas(given: Any) -> dict[str, str]:
    """Formulas by name, none if nothing is given, or a sentence why they are not allowed."""
    if given is None:
        return {}
    names = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
    if not names or not all(isinstance(text, str) for text in given.values()):
        raise HdicaError(
            f"functionals = {_shown(given)} is not allowed (names with formulas in x and xi, such "
            "as {'error': '(x - xi)**2'})"
        )
    return dict(given)
