"""What a recorded command says of itself while it works, to a file outside of the recorded folder.

A point counts as committed when the call that computes its block has returned, and a store as
published when the call that publishes it has. The product knows nothing of this.
"""

from __future__ import annotations

import functools
import json
import os
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


def told_of_blocks() -> None:
    """From now on this process says which points it has committed."""
    from hdica.run import block as module
    from hdica.run import worker
    from hdica.status import PENDING, STATUS_NAMES

    commit = module.commit

    @functools.wraps(commit)
    def told(block: Any, results: Any) -> Any:
        summary = commit(block, results)
        found: dict[str, list[str]] = {}
        for key, status in zip(block.keys, results.status.tolist(), strict=True):
            if status != PENDING:
                found.setdefault(STATUS_NAMES[status], []).append(bytes(key).ljust(32, b"\0").hex())
        say(committed=found, segment=block.folder.name)
        return summary

    module.commit = worker.commit = told


def told_of_publications() -> None:
    """From now on this process says when it publishes."""
    from hdica.store import publish as module

    publish = module.publish

    @functools.wraps(publish)
    def told(*arguments: Any, **settings: Any) -> Any:
        say(publishing=True)
        manifest = publish(*arguments, **settings)
        say(published=True)
        return manifest

    module.publish = told
