"""Online tensorial ICA by the kernel in ``tensorial.c``, compiled here and called by ctypes."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.c_vector import aligned, flags

Array = NDArray[np.float64]

SOURCE = Path(__file__).with_name("tensorial.c")
LANES = 8
_KEEP: list[tempfile.TemporaryDirectory[str]] = []


@lru_cache
def library() -> ctypes.CDLL:
    """The compiled kernel, kept for the life of the process."""
    folder = tempfile.TemporaryDirectory()
    _KEEP.append(folder)
    out = Path(folder.name) / "tensorial.so"
    # Vectors are handed to functions that are inlined, so no ABI is concerned.
    command = ["gcc", *flags(), "-Wno-psabi", "-shared", "-fPIC", str(SOURCE), "-o", str(out)]
    subprocess.run([*command, "-lm"], check=True)
    return ctypes.CDLL(str(out))


def _pointer(values: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)


def _zeros(size: int) -> Array:
    room = aligned(size)
    room[:] = 0.0
    return np.asarray(room)


def tensorial(
    v: Array,
    steps: int,
    *,
    source: Literal["rademacher", "uniform"],
    eta: float,
    rng: np.random.Generator,
) -> Array:
    """As :func:`benchmarks.rivals.numpy_tensorial.tensorial`; seeds are a multiple of eight."""
    seeds, d = v.shape
    function = library().signs if source == "rademacher" else library().uniforms
    found, lanes, state = np.empty_like(v), _zeros(d * LANES), aligned(4 * LANES, np.uint64)
    for first in range(0, seeds, LANES):
        lanes.reshape(d, LANES)[:] = v[first : first + LANES].T
        state[:] = rng.integers(0, 2**64, state.size, dtype=np.uint64)
        room = _zeros(d * LANES)
        numbers = (ctypes.c_int64(d), ctypes.c_int64(steps), ctypes.c_double(eta))
        function(_pointer(lanes), _pointer(state), _pointer(room), *numbers)
        found[first : first + LANES] = lanes.reshape(d, LANES).T
    return found
