"""What points may be asked for, in Python or by a study: n, seeds, times, and what is kept.

Both are checked by the same functions, so that neither takes what the other refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import as_number
from hdica.ingredients.save import ALL
from hdica.process.machine import available
from hdica.systems.arguments import (
    MOST_WHOLE,
    check_increasing,
    check_length,
    entries,
    listed,
    scalar,
    shown,
    whole,
)
from hdica.systems.method import Method
from hdica.systems.outputs import Array, Output

MAX_TIMES = 100_000
"""Most output times: the whole time axis of a block is one chunk."""
MAX_SEEDS = 10_000_000
"""Most seeds: they are in memory."""
MAX_AXIS = 1_000_000
"""Most values of an axis of a study: it takes a second to read so many."""
MAX_BYTES = 64 * 2**20
"""Most bytes of a point's results, uncompressed: a point lies whole in one chunk."""
RESERVED = frozenset(
    {"n", "seed", "time", "step", "point", "status", "cpu_seconds", "reason", "note"}
)
"""Names that every dataset may use."""
_SEEDS = "how many, as in seeds=8, or a list of whole numbers >= 0, all different"


def check_n(n: Any) -> int:
    """The dimension of a simulation, or a sentence why it is not allowed."""
    return whole(n, "n", "a whole number >= 3", 3)


def check_dimensions(n: Any) -> list[int]:
    """Several dimensions of simulations, or a sentence why they are not allowed."""
    allowed = "a whole number >= 3, or a list of them, all different"
    found = [whole(one, "n", allowed, 3) for one in entries(n, "n", allowed, MAX_TIMES)]
    if not found or len(set(found)) < len(found):
        raise HdicaError(f"n = {shown(found)} is not allowed ({allowed})")
    return found


def refused_n(system: Any, n: int) -> str:
    """Empty if a system can be simulated in n dimensions or does not say; else why it cannot."""
    says = getattr(system, "refuses_n", None)
    return str(says(n)) if says else ""


def check_steps(n: int, last: float, name: str = "n") -> None:
    """Refuse more steps, n times the last time, than are counted; ``name`` is the dimension's."""
    if n * last > MOST_WHOLE:
        raise HdicaError(
            f"{name} = {n} is not allowed with times up to {last:g} (n * time <= 2**53)"
        )


def check_memory(needed: float, what: str, fewer: str) -> None:
    """Refuse what needs more bytes than this process can have, before anything is computed.

    ``what`` needs them, and what to change (``fewer``), are for the sentence.
    """
    there, says = available()
    if needed > there:
        raise HdicaError(
            f"{what} is not allowed (it needs {needed / 1e9:.3g} GB of memory, and {says} "
            f"{there / 1e9:.3g}: {fewer})"
        )


def check_held(method: Method, system: Any, n: int | None) -> None:
    """Refuse a point that this machine cannot hold while it is computed."""
    what, fewer = f"n = {n}", f"a smaller n for method {method.name!r}"
    if n is None:
        what, fewer = f"method {method.name!r}", "a smaller system"
    check_memory(8.0 * method.cost.memory(system, n), what, fewer)


def seed_count(seeds: Any) -> int | None:
    """How many seeds a number stands for, None if seeds are listed."""
    given = scalar(as_number(seeds), "seeds")
    if given is None:
        return None
    return whole(given, "seeds", _SEEDS, 1)


def check_seeds(seeds: Any) -> list[int]:
    """Seeds of the trials: as many as a number says, or those listed."""
    count = seed_count(seeds)
    if count is not None:
        check_length(count, "seeds", MAX_SEEDS)
        return list(range(count))
    found = [
        whole(one, "seeds", "a whole number >= 0", 0)
        for one in entries(seeds, "seeds", _SEEDS, MAX_SEEDS)
    ]
    if not found or len(set(found)) < len(found):
        raise HdicaError(f"seeds = {shown(found)} is not allowed ({_SEEDS})")
    return found


def check_time_axis(values: Sequence[float]) -> None:
    """Refuse numbers that are no output times."""
    check_increasing(values, "times", "time", MAX_TIMES)
    if values[-1] > MOST_WHOLE:
        raise HdicaError(f"times = {values[-1]:g} is not allowed (a time is <= 2**53)")


def check_times(times: Any) -> Array:
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


def refused_until(system: Any, times: Array | Sequence[float] | None) -> str:
    """Empty if a system can be followed until the last time or does not say; else why it cannot."""
    says = getattr(system, "refuses_until", None)
    return "" if says is None or times is None or not len(times) else str(says(float(times[-1])))


def check_until(system: Any, times: Array | Sequence[float] | None) -> None:
    """Refuse a system that cannot be followed until the last time."""
    refusal = refused_until(system, times)
    if refusal:
        raise HdicaError(refusal, ["times"])


def check_points(x: Sequence[float]) -> None:
    """Refuse points of densities of which there is one alone: a bin has two neighbours."""
    if len(x) == 1:
        raise HdicaError(f"x = {list(x)} is not allowed (at least two points are needed)")


def how_many_entries(given: Any) -> int:
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
    """Refuse variables that nobody gives on request.

    ``where`` they are asked for and ``whose`` they would be, such as ``"method 'vector'"``, are for
    the sentence.
    """
    known = list(dict.fromkeys(allowed))
    for name in names:
        if name not in known:
            raise HdicaError(
                f"{where} = {name!r} is no variable that {whose} gives on request "
                f"({suggestion(name, known)})"
            )


def check_functionals(names: Iterable[str], outputs: Iterable[Output], where: str) -> None:
    """Refuse functionals that would be mistaken for something else.

    ``outputs`` are the variables of the dataset without them, ``where`` is what they belong to, for
    the sentence: ``"functionals"``.
    """
    known = list(names)
    own = {f"{name}_{kind}" for name in known for kind in ("error", "control")}
    for name in known:
        if name in own | taken_names(outputs):
            raise HdicaError(f"{where}.{name} is not allowed (datasets use the name {name!r})")
