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
    from hdica.sweep.files import store
    from hdica.sweep.run.plan import place

    found: Stored = {}
    for placed in place(study, out):
        if not placed.path.exists():
            continue
        status, keys = placed.statuses(), placed.segment.keys()
        working = store.open_segment(placed.path)
        ended = np.flatnonzero(status != store.PENDING)
        for block in np.unique(placed.rows[ended] // working.block).tolist():
            span = working.span(block)
            arrays = [working.read(name, span) for name in (*working.outputs, "reason")]
            for point in ended[placed.rows[ended] // working.block == block].tolist():
                place_in = placed.rows[point] - span.start
                name = store.STATUS_NAMES[status[point]]
                found[_key(keys[point])] = name, _digest([array[place_in] for array in arrays])
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
    from hdica.sweep.files import store
    from hdica.sweep.run.plan import place

    found = {}
    for placed in place(study, out):
        working = store.open_segment(placed.path)
        everything = slice(0, working.size)
        texts, seeds = working.read("parameters", everything), working.read("seed", everything)
        for key, row in zip(placed.segment.keys(), placed.rows.tolist(), strict=True):
            system = json.dumps(json.loads(texts[row]), sort_keys=True)
            seed = int(seeds[row]) if placed.segment.seeds else None
            method = placed.segment.method.name
            found[f"{method} {system} {placed.segment.n} {seed}"] = _key(key)
    return found


def noting(calls: Path) -> None:
    """From now on this process leaves a line for every point that it computes."""
    os.environ["TOY_CALLS"] = str(calls)
