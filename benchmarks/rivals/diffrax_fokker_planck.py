"""The coupled Fokker-Planck equation by diffrax: finite volumes in JAX, compiled, float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals import jax_vector  # noqa: F401 - one thread, float64
from benchmarks.rivals.example_2 import BETA, OMEGA, TAU, WEIGHTS, XI, faces, start

Array = NDArray[np.float64]
STEPS = 10**7
"""More than any solution takes."""


def _rates(x: Array, dx: float) -> Callable[[Any, Any, Any], Any]:
    """dP/dt of the cells, shape (2, cells), as diffrax calls it."""
    inner = (x[1:] + x[:-1]) / 2
    side = np.where(np.abs(inner) < dx / 4, 0.0, np.sign(inner))

    def rates(t: Any, p: Any, args: Any) -> Any:
        q = dx * jnp.einsum("a,i,ai->", WEIGHTS * XI, x, p)
        r = dx * BETA * jnp.einsum("a,i,ai->", WEIGHTS, np.abs(x), p)
        b, g = TAU * OMEGA * q, TAU * TAU * (1 + OMEGA * q * q) / 2
        w = (b * XI[:, None] - BETA * side - (g + b * q - r) * inner) * dx / g
        near = jnp.abs(w) < 1e-3
        safe = jnp.where(near, 1.0, w)
        upstream = jnp.where(near, 1 + w / 2 + w * w / 12, -safe / jnp.expm1(-safe))
        flux = g / dx * (upstream * p[:, :-1] - (upstream - w) * p[:, 1:])
        return -jnp.diff(flux, axis=1, prepend=0.0, append=0.0) / dx

    return rates


def prepared(
    times: Array, solver: str, tolerance: float, low: int, high: int, per_unit: int
) -> Callable[[], Array]:
    """A function that solves the equation and returns Q at the times.

    Parameters
    ----------
    times
        Shape (T,), the first 0.
    solver
        Name of one of diffrax.
    tolerance
        Relative; the absolute one is a hundredth of it.
    low, high, per_unit
        Domain, and cells per unit of length.
    """
    ends = faces(low, high, per_unit)
    x, dx = (ends[1:] + ends[:-1]) / 2, 1 / per_unit
    begin = jnp.asarray(np.tile(start(ends), (XI.size, 1)))
    term = diffrax.ODETerm(_rates(x, dx))
    method = getattr(diffrax, solver)()
    steps = diffrax.PIDController(rtol=tolerance, atol=tolerance / 100)
    saved = diffrax.SaveAt(ts=jnp.asarray(times))

    @jax.jit
    def solved(begin: Any) -> Any:
        found = diffrax.diffeqsolve(
            term,
            method,
            times[0],
            times[-1],
            None,
            begin,
            saveat=saved,
            stepsize_controller=steps,
            max_steps=STEPS,
            adjoint=diffrax.ForwardMode(),
        )
        return jnp.einsum("a,i,tai->t", WEIGHTS * XI, x * dx, found.ys)

    return lambda: np.asarray(solved(begin))
