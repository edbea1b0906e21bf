"""Keys of points one by one: the reference of those of a segment."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from hdica.study.schema import canonical_json, json_digest


def point_key(
    content: dict[str, Any],
    *,
    system: str,
    method: str,
    kernel: str,
    times: Sequence[float],
    n: int | None = None,
    seed: int | None = None,
    save: str = "",
) -> bytes:
    """Key of one point: sha256 of the canonical JSON of everything that it depends on.

    Parameters
    ----------
    content
        Canonical content of the system, without the fields that the method ignores.
    system, method, kernel
        Names of the system and the method, and the version of its numerical code.
    times
        Output times.
    n, seed
        Dimension and seed, None for a method without.
    save
        Digest of what is kept beyond the method's outputs, empty if nothing is.

    Returns
    -------
    bytes
        32 bytes.
    """
    point = {
        "content": content,
        "kernel": kernel,
        "method": method,
        "n": n,
        "seed": seed,
        "system": system,
        "times": json_digest([float(time) for time in times]),
        **({"save": save} if save else {}),
    }
    return hashlib.sha256(canonical_json(point).encode()).digest()
