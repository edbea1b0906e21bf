"""What a recorded command says of itself while it works, to a file outside of the recorded folder.

A point counts as committed when the call that computes its block has returned, and a store as
published when the call that publishes it has. The product knows nothing of this.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

FILE = "POWER_MARKS"
"""Names the file."""


def say(**said: Any) -> None:
    """Say something, in one line and by one call."""
    path = os.environ[FILE]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, json.dumps(said).encode() + b"\n")
    finally:
        os.close(file)


def committed(path: Path, block: int) -> dict[str, list[str]]:
    """Keys of the points of a block that are not pending, by their status, as they are stored."""
    from hdica.sweep.files import store

    working = store.open_segment(path)
    span = working.span(block)
    keys, status = working.read("key", span), working.read("status", span)
    found: dict[str, list[str]] = {}
    for key, one in zip(keys, status.tolist(), strict=True):
        if key.any() and one != store.PENDING:
            found.setdefault(store.STATUS_NAMES[one], []).append(key.tobytes().hex())
    return found


def told_of_blocks() -> None:
    """From now on this process says which points it has committed."""
    from hdica.sweep.run import block as module

    compute = module.compute_block

    @functools.wraps(compute)
    def compute_block(path: Path, block: int, *arguments: Any, **settings: Any) -> Any:
        summary = compute(path, block, *arguments, **settings)
        say(committed=committed(path, block), segment=path.name)
        return summary

    # Who imports it from here on gets this one.
    assert "hdica.sweep.run.runner" not in sys.modules
    module.compute_block = compute_block


def told_of_publications() -> None:
    """From now on this process says when it publishes."""
    from hdica.sweep.outcome import publish as module

    publish = module.publish

    @functools.wraps(publish)
    def told(*arguments: Any, **settings: Any) -> Any:
        say(publishing=True)
        manifest = publish(*arguments, **settings)
        say(published=True)
        return manifest

    module.publish = told
