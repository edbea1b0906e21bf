"""Where a job's messages go, and how it fails."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hdica.errors import HdicaError, Stopped


@contextmanager
def logged(path: str) -> Iterator[None]:
    """Send everything a job and its children print to a log file.

    A mistake of the user's, or a signal that says to stop, ends the job with one sentence there.

    Parameters
    ----------
    path
        The log file, replaced.

    Raises
    ------
    SystemExit
        If the body raises an :class:`~hdica.errors.HdicaError` or is told to stop.
    """
    with open(path, "w", buffering=1) as log:
        # Descriptors, not sys.stderr: the processes of a local cluster inherit only those.
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            yield
        except HdicaError as exc:
            sys.exit(str(exc))
        except Stopped as exc:
            sys.stderr.write(f"{exc}\n")
            sys.exit(exc.status)
