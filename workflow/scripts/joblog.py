"""Where a job's messages go, and how it fails."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from hdica.errors import HdicaError, Stopped


@contextmanager
def logged(path: str) -> Iterator[TextIO | None]:
    """Send everything a job and its children print to a log file.

    A mistake of the user's, or a signal that says to stop, ends the job with one sentence there.
    The body is given the terminal of whoever waits for the job, or None if there is none.

    Parameters
    ----------
    path
        The log file, replaced.

    Raises
    ------
    SystemExit
        If the body raises an :class:`~hdica.errors.HdicaError` or is told to stop.
    """
    with ExitStack() as opened:
        log = opened.enter_context(open(path, "w", buffering=1))
        terminal: TextIO | None = None
        if sys.stderr.isatty():
            terminal = opened.enter_context(open(os.dup(sys.stderr.fileno()), "w", buffering=1))
        # Descriptors, not sys.stderr: the processes of a local cluster inherit only those.
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            yield terminal
        except HdicaError as exc:
            sys.exit(str(exc))
        except Stopped as exc:
            sys.stderr.write(f"{exc}\n")
            sys.exit(exc.status)
