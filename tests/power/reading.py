"""What stores hold, point by point, in the product's own words."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tests.sweep.conftest import values

Stored = dict[str, tuple[str, str]]
"""Status and digest of the values of points, by their keys."""


def stored(study: Any, out: Path) -> Stored:
    """Every point of a study that a working store has and that is not pending."""
    from hdica.status import PENDING, STATUS_NAMES
    from hdica.store.working import place

    found: Stored = {}
    for placed in place(study, out):
        ended = np.flatnonzero(placed.statuses != PENDING)
        outputs = [output.name for output in placed.segment.outputs]
        arrays = [placed.read(name, ended, np.nan, "f8") for name in outputs]
        arrays.append(placed.read("reason", ended, "", object))
        for row, point in enumerate(ended.tolist()):
            name = STATUS_NAMES[placed.statuses[point]]
            found[_key(placed.keys[point])] = name, _digest([array[row] for array in arrays])
    return found


def _key(key: bytes) -> str:
    return bytes(key).ljust(32, b"\0").hex()


def _digest(parts: list[Any]) -> str:
    total = hashlib.sha256()
    for part in parts:
        array = np.asarray(part)
        total.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return total.hexdigest()


def published(out: Path) -> str:
    """Digest of every published number but the processor time."""
    total = hashlib.sha256()
    for name, raw in sorted(values(out).items()):
        total.update(f"{name}\0{len(raw)}\0".encode())
        total.update(raw)
    return total.hexdigest()


def computed(calls: Path) -> list[str]:
    """What was computed, a line a point, in processes that were told the file."""
    return calls.read_text().splitlines() if calls.exists() else []


def named(study: Any, out: Path) -> dict[str, str]:
    """Keys of all points, by the line that computing them leaves."""
    from hdica.run.block import block_of
    from hdica.store.working import place

    found = {}
    for placed in place(study, out):
        block = block_of(placed, np.arange(placed.segment.size))
        for key, cell, seed in zip(block.keys, block.cells, block.seeds.tolist(), strict=True):
            system = json.dumps(json.loads(block.contents[cell]), sort_keys=True)
            name = f"{block.method} {system} {block.n} {seed if placed.segment.seeds else None}"
            found[name] = _key(key)
    return found


def noting(calls: Path) -> None:
    """From now on this process leaves a line for every point that it computes."""
    os.environ["TOY_CALLS"] = str(calls)
