"""A clock that jumps: ``time.time`` is off by the number in a file, in every process.

Python imports this module when it starts, so that whoever imports ``time`` afterwards gets it.
"""

import mmap
import os
import struct
import time

_REAL = time.time


def _jumping(path: str) -> None:
    with open(path, "rb") as file:
        shared = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def now() -> float:
        return _REAL() + float(struct.unpack("d", shared[:8])[0])

    time.time = now


if "CLOCK_FILE" in os.environ:
    _jumping(os.environ["CLOCK_FILE"])
