"""Random streams, one per point, found by content and never by position."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

Stream = Callable[[str], np.random.Generator]
"""``stream(part)``: the generator of one part of a point."""

# Sources are drawn in runs of this many steps, aligned to the absolute step, so that a
# trajectory does not depend on the times at which it is recorded.
RUN = 4096


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


def digest(content: Any) -> bytes:
    """SHA-256 of content, the same for equal content on every machine and Python."""
    text = json.dumps(canonical(content), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


def point_stream(content: Any, method: str, n: int, seed: int, part: str) -> np.random.Generator:
    """The random numbers of one part of one point.

    Parameters
    ----------
    content
        The system with its parameters, as plain data.
    method, n, seed
        The rest of the point.
    part
        What the numbers are for: ``"start"``, ``"source"`` or ``"noise"``.

    Returns
    -------
    numpy.random.Generator
        SFC64 seeded by ``SeedSequence`` with 256 bits of the content's hash.
    """
    key = digest({"system": content, "method": method, "n": n, "seed": seed, "part": part})
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(int.from_bytes(key))))
