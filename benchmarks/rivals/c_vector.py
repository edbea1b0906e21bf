"""Full-vector steps by the kernel in ``kernel.c``, compiled here and called through ctypes."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Noise = Literal["float64", "float32"]

SOURCE = Path(__file__).with_name("kernel.c")
# What -ffast-math allows, spelled out: the switch itself would link code that turns subnormal
# numbers off in the whole process, the other contestants included.
FLAGS = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-ffinite-math-only",
    "-fassociative-math",
)
LANES, BLOCK = 16, 512
_KEEP: list[tempfile.TemporaryDirectory[str]] = []


def flags() -> tuple[str, ...]:
    """Flags for this processor; on x86 vectors as wide as there are."""
    x86 = platform.machine() in ("x86_64", "AMD64")
    return (*FLAGS, "-mprefer-vector-width=512") if x86 else FLAGS


@lru_cache
def library(noise: Noise = "float64") -> ctypes.CDLL:
    """The compiled kernel, kept for the life of the process."""
    folder = tempfile.TemporaryDirectory()
    _KEEP.append(folder)
    out = Path(folder.name) / f"kernel_{noise}.so"
    choice = ["-DFLOAT_NOISE"] if noise == "float32" else []
    command = ["gcc", *flags(), *choice, "-shared", "-fPIC", str(SOURCE), "-o", str(out), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(out))


def aligned(size: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Room for ``size`` numbers from the beginning of a cache line."""
    width = np.dtype(dtype).itemsize
    room = np.empty(size * width + 64, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + size * width].view(dtype)


def _pointer(values: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)


def _lanes(rng: np.random.Generator) -> NDArray[np.uint64]:
    state = aligned(4 * LANES, np.uint64)
    state[:] = rng.integers(0, 2**64, state.size, dtype=np.uint64)
    return state


def _run(
    function: Callable[..., None],
    x: Array,
    xi: Array,
    source: Array,
    numbers: tuple[float, ...],
    noise: Noise,
    rng: np.random.Generator,
) -> Array:
    estimate, feature, state = aligned(x.size), aligned(x.size), _lanes(rng)
    estimate[:], feature[:] = x, xi
    room = aligned(x.size, noise)
    function(
        _pointer(estimate),
        _pointer(feature),
        _pointer(room),
        ctypes.c_int64(x.size),
        _pointer(source),
        ctypes.c_int64(source.size),
        *(ctypes.c_double(number) for number in numbers),
        _pointer(state),
    )
    return np.asarray(estimate)


def ica(
    x: Array,
    xi: Array,
    source: Array,
    *,
    tau: float,
    beta: float,
    rng: np.random.Generator,
    noise: Noise = "float64",
) -> Array:
    """Steps of online ICA with f = x**3 and phi = beta x; ``rng`` seeds the lanes."""
    return _run(library(noise).ica, x, xi, source, (tau, beta), noise, rng)


def oist(
    x: Array,
    xi: Array,
    source: Array,
    *,
    tau: float,
    omega: float,
    beta: float,
    rng: np.random.Generator,
    noise: Noise = "float64",
) -> Array:
    """Steps of online sparse PCA with phi = beta sign(x)."""
    return _run(library(noise).oist, x, xi, source, (tau, omega, beta), noise, rng)


def normals(blocks: int, rng: np.random.Generator, noise: Noise = "float64") -> NDArray[Any]:
    """The kernel's noise, ``blocks`` times 512 numbers."""
    z, state = aligned(blocks * BLOCK, noise), _lanes(rng)
    library(noise).noise(_pointer(z), ctypes.c_int64(blocks), _pointer(state))
    return z
