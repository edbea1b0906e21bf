"""Random streams, one per point, found by content and never by position."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random import LANES

Stream = Callable[[str], np.random.Generator]
"""``stream(part)``: the generator of one part of a point."""

# Sources are drawn in runs, aligned to the absolute step, so that a trajectory does not depend on
# the times at which it is recorded. Runs double, so that few steps cost few numbers.
FIRST_RUN, RUN = 256, 4096


def run_length(first: int) -> int:
    """Steps of the run of sources that begins with step ``first``: 256, 256, 512, ... 4096."""
    return min(max(first, FIRST_RUN), RUN)


def canonical(value: Any) -> Any:
    """The same content in one form: numbers as floats where they are whole, keys sorted."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | np.integer | np.floating):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if isinstance(value, dict):
        return {str(k): canonical(v) for k, v in sorted(value.items())}
    return [canonical(v) for v in value]


def digest(content: object) -> bytes:
    """SHA-256 of content, the same for equal content on every machine and Python."""
    text = json.dumps(canonical(content), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


def streams_of(content: object, method: str, n: int | None = None) -> Callable[[int], Stream]:
    """Random numbers of points that differ in their seeds: ``streams_of(...)(seed)(part)``.

    A part says what the numbers are for: ``"start"``, ``"source"`` or ``"noise"``. Its generator is
    SFC64 seeded by ``SeedSequence`` with 256 bits of the hash of the system with its parameters, as
    plain data, the method, n (0 for a method without), the seed and the part.
    """
    common = digest({"system": content, "method": method, "n": n or 0})

    def of_seed(seed: int) -> Stream:
        def stream(part: str) -> np.random.Generator:
            key = hashlib.sha256(common + f"{seed} {part}".encode()).digest()
            return np.random.Generator(np.random.SFC64(np.random.SeedSequence(int.from_bytes(key))))

        return stream

    return of_seed


def point_stream(
    content: object, method: str, n: int | None, seed: int, part: str
) -> np.random.Generator:
    """The random numbers of one part of one point: see :func:`streams_of`."""
    return streams_of(content, method, n)(seed)(part)


def normal_numbers(rng: np.random.Generator) -> Callable[[int], NDArray[np.float64]]:
    """A function that draws ``size`` standard normal numbers from lanes of a generator.

    Whole chunks of sixteen are drawn; what is left of the last one is thrown away.
    """
    from hdica.finite.random.gaussian import fill_normal, lanes_of
    from hdica.finite.random.lanes import CHUNK

    state = lanes_of(rng)

    def draw(size: int) -> NDArray[np.float64]:
        numbers = np.empty(size + -size % CHUNK)
        fill_normal(state, numbers)
        return numbers[:size]

    return draw


def side_by_side(generators: Sequence[np.random.Generator]) -> NDArray[np.uint64]:
    """One lane for each of at most eight SFC64 generators; the lanes left over repeat the first."""
    states = [g.bit_generator.state["state"]["state"] for g in generators]
    states += states[:1] * (LANES - len(states))
    return np.array(states, dtype=np.uint64).T.ravel()
