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

from hdica.sweep.files.disk import sync_folder
from hdica.sweep.files.paths import DamageError, inside, no_link, read_regular, write_text

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
    path = inside(work, f"{FOLDER}/{hashlib.sha256(name.encode()).hexdigest()[:16]}")
    if not is_noted(path):
        path.parent.mkdir(exist_ok=True)
        sync_folder(work)
        write_text(path, name + "\n")


def notes(work: Path) -> list[Path]:
    """Files of the notes in a working store."""
    return sorted(no_link(work / FOLDER).glob("[0-9a-f]" * 16))


def is_noted(file: Path) -> bool:
    """Whether a note is as it was written: its name is the digest of what it says."""
    try:
        text = (read_regular(file) or b"").decode()
    except (DamageError, ValueError):
        return False
    name = text.removesuffix("\n")
    return text.endswith("\n") and hashlib.sha256(name.encode()).hexdigest()[:16] == file.name


def noted(work: Path) -> list[str]:
    """Every processor that computed for a working store, sorted; a damaged note is left out."""
    return sorted(f.read_text(encoding="utf-8").strip() for f in notes(work) if is_noted(f))
