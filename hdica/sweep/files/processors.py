"""Which processors computed a store: the bits of most methods depend on it.

Vectors and fused multiply-adds are written out in the kernels of simulations, so that they give the
same bits on every processor: see :class:`hdica.systems.method.Bits`. NumPy picks its loops by the
processor's instructions, BLAS its kernels, and functions such as exp and tanh come from the C
library: the last bits of all that uses them are the same only where all three are.
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
    """Processor as the compiler knows it, machine, C library, loops of NumPy, kernels of BLAS."""
    import numpy as np
    from llvmlite import binding
    from threadpoolctl import threadpool_info

    library = " ".join(part for part in platform.libc_ver() if part) or platform.system()
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    loops = (simd.get("found") or simd.get("baseline") or [""])[-1]
    kernels = sorted({one["architecture"] for one in threadpool_info() if "architecture" in one})
    details = [platform.machine(), library, f"NumPy {loops}"]
    details += [f"BLAS {'/'.join(kernels)}"] if kernels else []
    return f"{binding.get_host_cpu_name()} ({', '.join(details)})"


def several(names: str) -> str:
    """What it means that some processors computed, "; " between them; empty of a single kind.

    Earlier versions noted nothing of NumPy and BLAS: such a note says no other kind.
    """
    kinds = names.split("; ")
    kinds = [one for one in kinds if not any(k.startswith(f"{one[:-1]}, ") for k in kinds)]
    if len(kinds) < 2:
        return ""
    return (
        f"{len(kinds)} kinds of processors have computed these results: but for methods with the "
        "same bits on every kind, points of one kind may differ from those of another in their "
        "last digits"
    )


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
