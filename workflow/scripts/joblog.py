"""Where a job's messages go, and how it fails."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from hdica.errors import HdicaError, Stopped


@contextmanager
def logged(path: str) -> Iterator[TextIO]:
    """Send everything a job and its children print to a log file.

    A mistake of the user's, or a signal that says to stop, ends the job with one sentence there.
    The body gets the standard error of before, where somebody may wait for the job.

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
        shown = opened.enter_context(open(os.dup(sys.stderr.fileno()), "w", buffering=1))
        # Descriptors, not sys.stderr: the processes of a local cluster inherit only those.
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            yield shown
        except HdicaError as exc:
            sys.exit(str(exc))
        except Stopped as exc:
            sys.stderr.write(f"{exc}\n")
            sys.exit(exc.status)
