"""Which points lie at some places of a segment, for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hdica.sweep.files.store import Working

WRONG = "its checksum is wrong"
UNREADABLE = (ValueError, RuntimeError, OSError, TypeError, KeyError)
"""What Zarr and its codecs raise where files are not as they were written."""


def describe(working: Working, block: int, limit: int = 3) -> str:
    """Which points a block holds: their parameters and seeds."""
    return described(working, working.span(block), limit)


def numbered(places: slice) -> str:
    """Some places by their numbers."""
    return f"places {places.start} to {places.stop - 1}"


def described(working: Working, places: slice, limit: int = 3) -> str:
    """Which points lie at some places; their numbers if those are damaged too."""
    try:
        contents, seeds = working.raw("parameters", places), working.raw("seed", places)
        texts = [json.loads(text) if text else None for text in contents]
    except UNREADABLE:
        return numbered(places)
    n = working.attrs["n"]
    named = []
    for content, seed in zip(texts, seeds, strict=True):
        if isinstance(content, dict):
            fields = [f"{k}={v}" for k, v in content.items()]
            fields += [] if n is None else [f"n={n}", f"seed={seed}"]
            named.append(" ".join(fields) or "default parameters")
    if not named:
        return numbered(places)
    shown = "; ".join(named[:limit])
    more = f"; and {len(named) - limit} more" if len(named) > limit else ""
    return f"{len(named)} points: {shown}{more}"
