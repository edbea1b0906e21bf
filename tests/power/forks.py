"""Work in a fork of this process, which has everything loaded and no thread."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

LOADED = (
    "hdica.cli",
    "hdica.run.runner",
    "hdica.store.publish",
    "hdica.store.results",
    "hdica.store.verify",
)
LONGEST = 120
"""Seconds that the work of a fork may take."""


def load(work: Callable[[], Any]) -> None:
    """Import what some work imports, and find out once what it asks; no thread may start.

    Parameters
    ----------
    work
        Done once, in a fork, to see what it imports.
    """
    for name in LOADED:
        import_module(name)
    before = set(sys.modules)

    def imported() -> list[str]:
        work()
        return sorted(set(sys.modules) - before)

    code, found = forked(imported)
    assert code == 0, code
    for name in found:
        import_module(name)
    from hdica.store import provenance

    provenance.this_processor()
    provenance.git_commit()
    provenance.package_versions()
    assert threading.active_count() == 1
    # A fork that counts references to them would copy them.
    gc.freeze()


def forked(work: Callable[[], Any], said: Path | None = None) -> tuple[int, Any]:
    """Do some work in a fork: its exit status, and what it returned as plain data.

    Parameters
    ----------
    work
        The work.
    said
        File for all that it prints; None to print it here.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _work(work, writer, said)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(answer) if answer else None


def _work(work: Callable[[], Any], writer: int, said: Path | None) -> None:
    code = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LONGEST)
        if said is not None:
            file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(file, 1)
            os.dup2(file, 2)
        answer = json.dumps(work()).encode()
        with os.fdopen(writer, "wb") as stream:
            stream.write(answer)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
