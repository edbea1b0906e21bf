"""What made a store: versions, commit, time, and which processors.

The bits of most methods depend on the processor. Vectors and fused multiply-adds are written out in
the kernels of simulations, so that they give the same bits on every processor: see
:class:`hdica.systems.method.Bits`. NumPy picks its loops by the processor's instructions, BLAS its
kernels, and functions such as exp and tanh come from the C library: the last bits of all that uses
them are the same only where all three are.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "sympy", "xarray", "zarr", "dask", "pydantic")


@cache
def git_commit() -> str:
    """Commit of the source tree that runs, empty outside a checkout."""
    here = Path(__file__).resolve()
    try:
        # Only a tree that tracks this very file: a checkout around a site-packages is not ours.
        for command in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            done = subprocess.run(
                ["git", "-C", str(here.parent), *command],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@cache
def package_versions() -> str:
    """Versions of Python and of the packages that numbers depend on, as JSON."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        versions[name] = importlib.metadata.version(name)
    return json.dumps(versions, sort_keys=True)


def now() -> str:
    """Time now, ISO 8601, UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


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
