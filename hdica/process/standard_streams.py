"""The three streams that a process is given, some of which it may lack."""

from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """Lead streams nowhere that this process was started without, as some daemons do.

    The next files that are opened would take their numbers, and libraries would write what they
    have to say into them.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115
