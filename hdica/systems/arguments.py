"""Arguments of what computes: numbers, lists and texts, each as it is used, or refused."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import as_number, plain
from hdica.systems.axes import expanded, is_number, number, parse_axis, size

Array = NDArray[np.float64]
LARGEST = 1e300
"""Larger numbers are not told from infinity: a whole one need not even be a float."""
MOST_WHOLE = 2**53
"""Up to here every whole number is a float: of dimensions, seeds, steps and times."""
MAX_VALUES = 100_000
"""Most values of a list that is an axis of results: the size of a point refuses far fewer."""
MAX_EXTRA = 100
"""Most variables that are asked for by name."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""What a functional may be called."""


def _is_finite(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or math.isfinite(value))


def _read(value: Any, name: str) -> Any:
    """The value without NumPy's types; reading it may run code that is not ours."""
    try:
        return plain(value)
    except Exception as exc:
        kind = type(value).__name__
        raise HdicaError(f"{name}: a {kind} is not allowed (it cannot be read: {exc})") from exc


def shown(value: Any) -> str:
    """A value for a sentence, not too long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def whole(value: Any, name: str, allowed: str, least: float = -math.inf) -> int:
    """A whole number from ``least`` to 2**53; 100.0 is the number 100.

    ``name`` of the argument and what is ``allowed`` are for the sentence.
    """
    found = as_number(_read(value, name))
    if not _is_finite(found) or int(found) != found or found < least:
        raise HdicaError(f"{name} = {shown(found)} is not allowed ({allowed})")
    if found > MOST_WHOLE:
        raise HdicaError(f"{name} = {shown(found)} is not allowed (a whole number <= 2**53)")
    return int(found)


def finite(value: Any, name: str) -> float:
    """A finite number, or a sentence why it is not allowed."""
    found = as_number(_read(value, name))
    if not is_number(found) or not abs(found) < LARGEST:
        raise HdicaError(f"{name} = {shown(found)} is not allowed (a finite number)")
    return float(found)


def check_range(low: float, high: float) -> None:
    """Refuse a range that is empty."""
    if not low < high:
        raise HdicaError(f"low = {low:g} and high = {high:g} are not allowed (low < high)")


def text(value: Any, name: str, allowed: str) -> str:
    """A text, or a sentence why it is not allowed."""
    if not isinstance(value, str):
        raise HdicaError(f"{name} = {shown(value)} is not allowed ({allowed})")
    return value


def check_length(length: float, name: str, most: int) -> None:
    """Refuse a list that is too long."""
    if length > most:
        raise HdicaError(f"{name} has {length} values (at most {most} are allowed)")


def _length(values: Any) -> float:
    """How long a list is, as far as it says so without being read."""
    try:
        return max(len(values), getattr(values, "size", 0))
    except OverflowError:  # of range(10**20)
        return math.inf
    except TypeError:
        return 0


def entries(values: Any, name: str, allowed: str, most: int) -> list[Any]:
    """What a list holds, read no further than it may be long."""
    check_length(_length(values), name, most)
    given = _read(values, name)
    no_list = isinstance(given, bool | str | bytes | bytearray | memoryview | Mapping)
    if no_list or not isinstance(given, Iterable):
        raise HdicaError(f"{name} = {shown(given)} is not allowed ({allowed})")
    try:
        found = list(itertools.islice(given, most + 1))
    except Exception as exc:  # code that is not ours
        raise HdicaError(f"{name} is not allowed (reading it failed: {exc})") from exc
    if len(found) > most:
        raise HdicaError(f"{name} has more than {most} values (at most so many are allowed)")
    return found if isinstance(given, list | range) else [_read(one, name) for one in found]


def scalar(value: Any, name: str) -> int | float | None:
    """A bare number, None for anything else."""
    found = None if _length(value) else _read(value, name)
    return found if is_number(found) else None


def spaced(given: Any, name: str, most: int) -> tuple[float, ...]:
    """Numbers as a study writes them: a list, or ``{start, stop, num, spacing}``; canonical.

    More than ``most`` are refused before a range is expanded.
    """
    if isinstance(given, list | tuple):
        check_length(len(given), name, most)
    axis = parse_axis(plain(given), name)
    check_length(size(axis), name, most)
    return tuple(number(value, name) for value in expanded(axis))


def listed(values: Any, name: str, most: int = MAX_VALUES) -> Array:
    """A list of finite numbers, or ``{start, stop, num}``, as an array of shape (numbers,)."""
    if isinstance(values, Mapping):
        return np.array(spaced(values, name, most))
    given = scalar(values, name)
    if given is not None:
        raise HdicaError(f"{name} = {given!r} is not allowed (a list: write {name}=[{given!r}])")
    found = [as_number(one) for one in entries(values, name, "a list of numbers", most)]
    for one in found:
        if not is_number(one):
            raise HdicaError(f"{name}: {shown(one)} is not allowed (a list of numbers)")
        if not abs(one) < LARGEST:
            raise HdicaError(f"{name}: {shown(one)} is not allowed (finite numbers)")
    return np.array(found, dtype=float)


def check_increasing(
    values: Sequence[float], name: str, what: str, most: int = MAX_VALUES, positive: bool = True
) -> None:
    """Refuse numbers along an axis of a result that do not increase, or are < 0 if ``positive``.

    The numbers are finite; ``what`` one of them is, such as ``"time"``, is for the sentence.
    """
    if not len(values):
        raise HdicaError(f"{name} is an empty list (at least one {what} is needed)")
    check_length(len(values), name, most)
    if positive and values[0] < 0:
        raise HdicaError(f"{name} = {values[0]:g} is not allowed (a {what} is >= 0)")
    for before, after in itertools.pairwise(values):
        if after <= before:
            raise HdicaError(f"{name}: {after:g} comes after {before:g} ({what}s must increase)")


def increasing(values: Any, name: str, what: str, positive: bool = True) -> tuple[float, ...]:
    """Increasing numbers, none if nothing is given, or a sentence why they are not allowed."""
    if values is None:
        return ()
    found = listed(values, name).tolist()
    check_increasing(found, name, what, positive=positive)
    return tuple(found)


def formulas(given: Any) -> dict[str, str]:
    """Formulas by name, none if nothing is given, or a sentence why they are not allowed."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise HdicaError(
            f"functionals = {shown(given)} is not allowed (names with formulas in x and xi, such "
            "as {'error': '(x - xi)**2'})"
        )
    for name, formula in given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise HdicaError(
                f"functionals: name {name!r} is not allowed (a letter, then letters, digits and _; "
                "at most 64)"
            )
        if not isinstance(formula, str):
            raise HdicaError(
                f"functionals.{name} = {shown(formula)} is not allowed (a formula in x and xi)"
            )
    return dict(given)


def extra_names(given: Any, field: str = "extra") -> tuple[str, ...]:
    """Names of variables, sorted, none if nothing is given; or a sentence why they are not allowed.

    One name will do in place of a list.
    """
    if given is None:
        return ()
    allowed = "names of variables, each once"
    found = [given] if isinstance(given, str) else entries(given, field, allowed, MAX_EXTRA)
    named = all(isinstance(one, str) and NAME.fullmatch(one) for one in found)
    if not named or len(set(found)) < len(found):
        raise HdicaError(f"{field} = {shown(found)} is not allowed ({allowed})")
    return tuple(sorted(found))


def check_constants(given: Any) -> dict[str, float]:
    """Numbers by name, none if nothing is given, or a sentence why they are not allowed."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise HdicaError(f"constants = {shown(given)} is not allowed (names with numbers)")
    return {name: finite(value, f"constants: {name}") for name, value in given.items()}
