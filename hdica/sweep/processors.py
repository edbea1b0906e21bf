"""Which processors computed a store: the kernels do not depend on it, the C library's may.

Vectors and fused multiply-adds are written out, so that our own kernels give the same bits on every
processor. Functions such as exp and tanh come from the C library, and NumPy picks loops by the
processor's instructions: their last bits are not promised to be the same everywhere.
"""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

FOLDER = "processors"


@cache
def this_processor() -> str:
    """Processor as the compiler knows it, machine type and C library."""
    from llvmlite import binding

    library = " ".join(part for part in platform.libc_ver() if part) or platform.system()
    return f"{binding.get_host_cpu_name()} ({platform.machine()}, {library})"


@cache
def note(work: Path) -> None:
    """Note that this processor computes for a working store, once a process."""
    name = this_processor()
    path = work / FOLDER / hashlib.sha256(name.encode()).hexdigest()[:16]
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(name + "\n", encoding="utf-8")


def noted(work: Path) -> list[str]:
    """Every processor that computed for a working store, sorted."""
    found = (work / FOLDER).glob("*")
    return sorted(path.read_text(encoding="utf-8").strip() for path in found)
