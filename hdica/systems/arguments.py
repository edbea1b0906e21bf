"""Checks of what users give to functions and studies: numbers, lists, texts, times and seeds."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from hdica.errors import HdicaError, refused, shown, suggestion
from hdica.ingredients.plain import as_number, is_number, plain
from hdica.ingredients.save import ALL
from hdica.process.machine import available
from hdica.systems.method import Array, Method, Output
from hdica.systems.parameters import Parameters
from hdica.systems.values import expanded, number, parse_axis, size

LARGEST = 1e300  # larger numbers count as infinite: a whole one need not even be a float
MOST_WHOLE = 2**53
"""Up to here every whole number is a float: of dimensions, seeds, steps and times."""
MAX_VALUES = 100_000
"""Most values of a list that is an axis of results: the size of a point refuses far fewer."""
MAX_EXTRA = 100  # most variables on request
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")  # what a functional may be called


def _read(value: object, name: str) -> object:
    """The value without NumPy's types; reading it may run code that is not ours."""
    try:
        return plain(value)
    except Exception as exc:
        kind = type(value).__name__
        raise HdicaError(f"{name}: a {kind} is not allowed (it cannot be read: {exc})") from exc


def whole(value: object, name: str, allowed: str, least: float = -math.inf) -> int:
    """A whole number from ``least`` to 2**53; ``name`` and ``allowed`` are for the sentence."""
    number = as_number(_read(value, name))
    finite = is_number(number) and (isinstance(number, int) or math.isfinite(number))
    if not finite or int(number) != number or number < least:
        raise refused(name, number, allowed)
    if number > MOST_WHOLE:
        raise refused(name, number, "a whole number <= 2**53")
    return int(number)


def finite(value: object, name: str) -> float:
    """A finite number, or a sentence why it is not allowed."""
    number = as_number(_read(value, name))
    if not is_number(number) or not abs(number) < LARGEST:
        raise refused(name, number, "a finite number")
    return float(number)


def check_range(low: float, high: float) -> None:
    """Refuse a range that is empty."""
    if not low < high:
        raise HdicaError(f"low = {low:g} and high = {high:g} are not allowed (low < high)")


def text(value: object, name: str, allowed: str) -> str:
    """A text, or a sentence why it is not allowed."""
    if not isinstance(value, str):
        raise refused(name, value, allowed)
    return value


def check_length(length: float, name: str, most: int) -> None:
    """Refuse a list that is too long."""
    if length > most:
        raise HdicaError(f"{name} has {length} values (at most {most} are allowed)")


def _length(values: object) -> float:
    """How long a list is, as far as it says so without being read."""
    try:
        return max(len(values), getattr(values, "size", 0)) if isinstance(values, Sized) else 0
    except OverflowError:  # of range(10**20)
        return math.inf
    except TypeError:  # of an array without dimensions
        return 0


def entries(values: object, name: str, allowed: str, most: int) -> list[Any]:
    """What a list holds, read no further than it may be long."""
    check_length(_length(values), name, most)
    given = _read(values, name)
    no_list = isinstance(given, bool | str | bytes | bytearray | memoryview | Mapping)
    if no_list or not isinstance(given, Iterable):
        raise refused(name, given, allowed)
    try:
        items = list(itertools.islice(given, most + 1))
    except Exception as exc:  # code that is not ours
        raise HdicaError(f"{name} is not allowed (reading it failed: {exc})") from exc
    if len(items) > most:
        raise HdicaError(f"{name} has more than {most} values (at most so many are allowed)")
    return items if isinstance(given, list | range) else [_read(one, name) for one in items]


def scalar(value: object, name: str) -> int | float | None:
    """A bare number, None for anything else."""
    number = None if _length(value) else _read(value, name)
    return number if is_number(number) else None


def spaced(given: object, name: str, most: int) -> tuple[float, ...]:
    """Canonical numbers: a list, or ``{start, stop, num, spacing}``, refused before expansion."""
    if isinstance(given, list | tuple):
        check_length(len(given), name, most)
    axis = parse_axis(plain(given), name)
    check_length(size(axis), name, most)
    return tuple(number(value, name) for value in expanded(axis))


def listed(values: object, name: str, most: int = MAX_VALUES) -> Array:
    """A list of finite numbers, or ``{start, stop, num}``, as an array of shape (numbers,)."""
    if isinstance(values, Mapping):
        return np.array(spaced(values, name, most))
    given = scalar(values, name)
    if given is not None:
        raise HdicaError(f"{name} = {given!r} is not allowed (a list: write {name}=[{given!r}])")
    numbers = [as_number(one) for one in entries(values, name, "a list of numbers", most)]
    for one in numbers:
        if not is_number(one):
            raise HdicaError(f"{name}: {shown(one)} is not allowed (a list of numbers)")
        if not abs(one) < LARGEST:
            raise HdicaError(f"{name}: {shown(one)} is not allowed (finite numbers)")
    return np.array(numbers, dtype=float)


def check_increasing(
    values: Sequence[float], name: str, what: str, most: int = MAX_VALUES, positive: bool = True
) -> None:
    """Refuse numbers, each a ``what``, that do not increase, or are < 0 if ``positive``."""
    if not len(values):
        raise HdicaError(f"{name} is an empty list (at least one {what} is needed)")
    check_length(len(values), name, most)
    if positive and values[0] < 0:
        raise HdicaError(f"{name} = {values[0]:g} is not allowed (a {what} is >= 0)")
    for before, after in itertools.pairwise(values):
        if after <= before:
            raise HdicaError(f"{name}: {after:g} comes after {before:g} ({what}s must increase)")


def increasing(values: object, name: str, what: str, positive: bool = True) -> tuple[float, ...]:
    """Increasing numbers, none if nothing is given, or a sentence why they are not allowed."""
    if values is None:
        return ()
    numbers = listed(values, name).tolist()
    check_increasing(numbers, name, what, positive=positive)
    return tuple(numbers)


def formulas(given: object) -> dict[str, str]:
    """Formulas by name, none if nothing is given, or a sentence why they are not allowed."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        allowed = "names with formulas in x and xi, such as {'error': '(x - xi)**2'}"
        raise refused("functionals", given, allowed)
    for name, formula in given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise HdicaError(
                f"functionals: name {name!r} is not allowed (a letter, then letters, digits and _; "
                "at most 64)"
            )
        if not isinstance(formula, str):
            raise refused(f"functionals.{name}", formula, "a formula in x and xi")
    return dict(given)


def extra_names(given: object) -> tuple[str, ...]:
    """Names of variables, or one name, sorted; none if nothing is given."""
    if given is None:
        return ()
    allowed = "names of variables, each once"
    names = [given] if isinstance(given, str) else entries(given, "extra", allowed, MAX_EXTRA)
    named = all(isinstance(one, str) and NAME.fullmatch(one) for one in names)
    if not named or len(set(names)) < len(names):
        raise refused("extra", names, allowed)
    return tuple(sorted(names))


def check_constants(given: object) -> dict[str, float]:
    """Numbers by name, none if nothing is given, or a sentence why they are not allowed."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise refused("constants", given, "names with numbers")
    return {name: finite(value, f"constants: {name}") for name, value in given.items()}


MAX_TIMES = 100_000  # most output times: the whole time axis of a block is one chunk
MAX_SEEDS = 10_000_000  # most seeds: they are in memory
MAX_AXIS = 1_000_000  # most values of an axis of a study: it takes a second to read so many
MAX_BYTES = 64 * 2**20
"""Most bytes of a point's results, uncompressed: a point lies whole in one chunk."""
RESERVED = frozenset(
    {"n", "seed", "time", "step", "point", "status", "cpu_seconds", "reason", "note"}
)
"""Names that every dataset may use."""
_SEEDS = "how many, as in seeds=8, or a list of whole numbers >= 0, all different"


def check_n(n: object) -> int:
    """The dimension of a simulation, or a sentence why it is not allowed."""
    return whole(n, "n", "a whole number >= 3", 3)


def check_dimensions(n: object) -> list[int]:
    """Several dimensions of simulations, or a sentence why they are not allowed."""
    allowed = "a whole number >= 3, or a list of them, all different"
    return _different(n, "n", allowed, allowed, 3, MAX_TIMES)


def _different(
    values: object, name: str, allowed: str, each: str, least: int, most: int
) -> list[int]:
    """A list of whole numbers, at least one, all different; ``each`` says what one may be."""
    numbers = [whole(one, name, each, least) for one in entries(values, name, allowed, most)]
    if not numbers or len(set(numbers)) < len(numbers):
        raise refused(name, numbers, allowed)
    return numbers


def check_steps(n: int, last: float, name: str = "n") -> None:
    """Refuse more steps, n times the last time, than are counted; ``name`` is the dimension's."""
    if n * last > MOST_WHOLE:
        raise HdicaError(
            f"{name} = {n} is not allowed with times up to {last:g} (n * time <= 2**53)"
        )


def check_memory(needed: float, what: str, fewer: str) -> None:
    """Refuse, before the computation, what needs more bytes than this process can have."""
    there, says = available()
    if needed > there:
        raise HdicaError(
            f"{what} is not allowed (it needs {needed / 1e9:.3g} GB of memory, and {says} "
            f"{there / 1e9:.3g}: {fewer})"
        )


def check_held(method: Method, system: Parameters, n: int | None, last: float = 0.0) -> None:
    """Refuse a point that this machine cannot hold while it is computed."""
    what, fewer = f"n = {n}", f"a smaller n for method {method.name!r}"
    if n is None:
        what, fewer = f"method {method.name!r}", "a smaller system"
    check_memory(8.0 * method.cost.memory(system, n, last), what, fewer)


def seed_count(seeds: object) -> int | None:
    """How many seeds a number stands for, None if seeds are listed."""
    count = scalar(as_number(seeds), "seeds")
    return None if count is None else whole(count, "seeds", _SEEDS, 1)


def check_seeds(seeds: object) -> list[int]:
    """Seeds of the trials: as many as a number says, or those listed."""
    count = seed_count(seeds)
    if count is not None:
        check_length(count, "seeds", MAX_SEEDS)
        return list(range(count))
    return _different(seeds, "seeds", _SEEDS, "a whole number >= 0", 0, MAX_SEEDS)


def check_time_axis(values: Sequence[float]) -> None:
    """Refuse numbers that are no output times."""
    check_increasing(values, "times", "time", MAX_TIMES)
    if values[-1] > MOST_WHOLE:
        raise HdicaError(f"times = {values[-1]:g} is not allowed (a time is <= 2**53)")


def check_times(times: object) -> Array:
    """Times as an array of shape (T,), or a sentence why they are not allowed."""
    values = listed(times, "times", MAX_TIMES)
    check_time_axis(values.tolist())
    return values


def times_for(method: Method, times: Array | None, extra: Iterable[str] = ()) -> Array:
    """The output times of a method, which may be left out where nothing that it gives has any."""
    if times is not None:
        return times
    asked = [output for output in method.outputs.extras if output.name in extra]
    if any("time" in output.dims for output in (*method.outputs.always, *asked)):
        raise HdicaError(
            f"times is missing (method {method.name!r} needs it: a list, or {{start, stop, num}})"
        )
    return np.zeros(1)


def refused_until(system: Parameters, times: Array | Sequence[float] | None) -> str:
    """Empty if a system can be followed until the last time, else why it cannot."""
    return "" if times is None or not len(times) else system.refuses_until(float(times[-1]))


def check_until(system: Parameters, times: Array | Sequence[float] | None) -> None:
    """Refuse a system that cannot be followed until the last time."""
    refusal = refused_until(system, times)
    if refusal:
        raise HdicaError(refusal, ["times"])


def check_points(x: Sequence[float]) -> None:
    """Refuse points of densities of which there is one alone: a bin has two neighbours."""
    if len(x) == 1:
        raise HdicaError(f"x = {list(x)} is not allowed (at least two points are needed)")


def how_many_entries(given: object) -> int:
    """How many entries of the estimate to keep: 0 for none, :data:`ALL` for all of them."""
    if given is None or given is False:
        return 0
    if given is True:
        return ALL
    return whole(given, "estimate", "true, or how many entries: a whole number >= 1", 1)


def check_size(size: int, method: str) -> None:
    """Refuse to keep more of a point than a chunk may hold."""
    if size > MAX_BYTES:
        raise HdicaError(
            f"save keeps {size / 1e6:.0f} MB a point of {method} (at most {MAX_BYTES / 1e6:.0f} MB "
            "are allowed: fewer times, snapshots, x, thresholds or entries)"
        )


def taken_names(outputs: Iterable[Output]) -> frozenset[str]:
    """Names that a dataset of some variables uses."""
    return RESERVED | {name for output in outputs for name in (output.name, *output.dims)}


def check_extra(names: Sequence[str], allowed: Iterable[str], where: str, whose: str) -> None:
    """Refuse variables that nobody gives on request; ``where`` and ``whose`` for the sentence."""
    known = list(dict.fromkeys(allowed))
    for name in names:
        if name not in known:
            raise HdicaError(
                f"{where} = {name!r} is no variable that {whose} gives on request "
                f"({suggestion(name, known)})"
            )


def check_functionals(names: Iterable[str], outputs: Iterable[Output], where: str) -> None:
    """Refuse functionals with the name of a variable in ``outputs``, or of one that they bring."""
    known = list(names)
    own = {f"{name}_{kind}" for name in known for kind in ("error", "control")}
    for name in known:
        if name in own | taken_names(outputs):
            raise HdicaError(f"{where}.{name} is not allowed (datasets use the name {name!r})")
