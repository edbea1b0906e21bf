"""The ``hdica`` command: Ctrl-C ends it with one sentence while everything else is loaded, too."""

from __future__ import annotations

import os
import signal
import sys

from hdica.errors import HdicaError, extras


def _end(number: int, frame: object = None) -> None:
    os.write(2, b"hdica: interrupted\n")
    os._exit(128 + number)


def main() -> None:
    """Entry point of the ``hdica`` command."""
    # A shell has what it starts in the background ignore Ctrl-C.
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, _end)
    try:
        with extras():
            from hdica.cli import main as command
    except HdicaError as exc:
        sys.stderr.write(f"hdica: {exc}\n")
        sys.exit(2)

    def begin() -> None:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        command(begin)
    except KeyboardInterrupt:
        _end(signal.SIGINT)
    finally:
        if usual:
            # The end of the interpreter would have a traceback, too.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
