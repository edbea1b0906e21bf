"""Which points lie at some places of a segment, for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hdica.sweep.files.store import Working

WRONG = "its checksum is wrong"
UNREADABLE = (ValueError, RuntimeError, OSError, TypeError, KeyError)
"""What Zarr and its codecs raise where files are not as they were written."""


SHOWN = 3
"""Points that a sentence names."""


def describe(working: Working, block: int) -> str:
    """Which points a block holds: their parameters and seeds."""
    return described(working, working.span(block))


def described(working: Working, places: slice) -> str:
    """Which points lie at some places; their numbers if those are damaged too."""
    numbers = f"places {places.start} to {places.stop - 1}"
    try:
        contents, seeds = working.raw("parameters", places), working.raw("seed", places)
        texts = [json.loads(text) if text else None for text in contents]
    except UNREADABLE:
        return numbers
    n = working.attrs["n"]
    size = [] if n is None else [f"n={n}"]
    named = []
    for content, seed in zip(texts, seeds, strict=True):
        if isinstance(content, dict):
            fields = [f"{k}={v}" for k, v in content.items()]
            fields += size + ([] if seed < 0 else [f"seed={seed}"])
            named.append(" ".join(fields) or "default parameters")
    if not named:
        return numbers
    shown = "; ".join(named[:SHOWN])
    more = f"; and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return f"{len(named)} points: {shown}{more}"
