"""Content keys of points: what a point is, never where it stands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.bytes_]
"""One 32-byte digest a point, dtype ``S32``; an unused place of a store is empty."""


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and without spaces: one text for one content."""
    return _ENCODER.encode(value)


def times_digest(times: Sequence[float]) -> str:
    """Digest of the output times, so that a key need not hash all of them."""
    return hashlib.sha256(canonical_json([float(t) for t in times]).encode()).hexdigest()


def segment_keys(
    contents: Iterable[str],
    seeds: Sequence[int | None],
    *,
    system: str,
    method: str,
    kernel: str,
    times: Sequence[float],
    n: int | None,
    save: str = "",
) -> Keys:
    """Key of every (content, seed), seed fastest: sha256 of canonical JSON of all it depends on.

    ``contents`` is the canonical JSON of each cell's content. The digest of what the seeds of a
    cell (``[None]`` for none) share is computed once and copied.
    """
    kept = f',"save":{canonical_json(save)}' if save else ""
    middle = (
        f',"kernel":{canonical_json(kernel)},"method":{canonical_json(method)}'
        f',"n":{canonical_json(n)}{kept},"seed":'
    ).encode()
    end = f',"system":{canonical_json(system)},"times":"{times_digest(times)}"}}'
    tails = [(canonical_json(seed) + end).encode() for seed in seeds]
    digests = bytearray()
    for content in contents:
        shared = hashlib.sha256(b'{"content":' + content.encode() + middle)
        for tail in tails:
            one = shared.copy()
            one.update(tail)
            digests += one.digest()
    return np.frombuffer(digests, dtype="S32")


def find_rows(stored: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Row of each wanted key among the stored ones, -1 where it is absent.

    Empty stored keys are unused places and match nothing.
    """
    if stored.size == 0 or wanted.size == 0:
        return np.full(wanted.shape, -1, dtype=np.int64)
    if stored.size >= wanted.size and np.array_equal(stored[: wanted.size], wanted):
        return np.arange(wanted.size, dtype=np.int64)
    order = np.argsort(stored, kind="stable")
    place = np.searchsorted(stored, wanted, sorter=order).clip(max=stored.size - 1)
    rows = order[place].astype(np.int64)
    rows[stored[rows] != wanted] = -1
    return rows
