"""Densities whose feature moves: relaxation to their mixture, between steps of the march.

Entries that change places mix the laws at all xi: at the rate delta, dP(x | xi)/dt gains
delta (mean of P(x | xi') over xi' - P(x | xi)). Alone, that is solved exactly: over dt each law
keeps the share exp(-delta dt) of itself and takes the rest from the mixture, which stays. With half
of it before and half after each step (Strang 1968) the march keeps order two, its errors have the
expansion that is extrapolated, masses stay positive, and neither they nor E[x^2] and R change.
All atoms use the same cells.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.density.grid import Windows
from hdica.limits.mean_field.density.layout import MASS, Q, T
from hdica.limits.mean_field.density.state import State
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
LONGEST = 0.5
"""Step of the coarsest level in units of 1/delta."""


def together(windows: Windows) -> Windows:
    """The cells that any atom uses, for all of them."""
    low, high = np.full_like(windows.low, windows.low.min()), windows.high.max()
    return Windows(low, np.full_like(windows.high, high))


def mix(state: State, share: float) -> None:
    """Each atom's law gives a share of itself for as much of the mixture."""
    weights = state.problem.weights / np.sum(state.problem.weights)
    laws = state.work[MASS].reshape(weights.size, -1)
    # Sums and no product of matrices, whose rounding may follow the number of BLAS threads.
    mixture = np.sum(weights[:, None] * laws, axis=0)
    laws *= 1 - share
    laws += share * mixture
    mean = float(np.sum(weights * state.problem.xi)) * float(np.sum(mixture * centres(state)))
    state.clock[Q] += share * (mean - state.clock[Q])


def centres(state: State) -> Array:
    """Centres of the cells that all atoms use."""
    low, size = int(state.mesh.lows[0]), int(state.mesh.offsets[1])
    return np.asarray(state.mesh.x[low : low + size])


def relax(state: State, dt: float) -> None:
    """What exchanges do to the laws over a time."""
    rate = state.problem.field.motion.rate
    if rate > 0:
        mix(state, -math.expm1(-rate * dt))


def jump(state: State, t: float) -> None:
    """What a jump of the feature at this time does to the laws, if there is one."""
    motion = state.problem.field.motion
    if t > 0 and t in motion.jumps:
        mix(state, motion.share)


def march_mixing(  # type: ignore[no-untyped-def]
    ends: Array, rows, every: int, arrays, state: State
) -> int:
    """As :func:`hdica.limits.mean_field.density.loop.march`, with relaxation around each step."""
    from hdica.limits.mean_field.density.layout import H2
    from hdica.limits.mean_field.density.loop import march, measure

    *inner, integrands, found = arrays
    missed = 0
    for k in range(ends.size):
        check_deadline()
        half = (ends[k] - state.clock[T]) / 2
        relax(state, half)
        missed += march(ends[k : k + 1], rows[k : k + 1], 2, *inner, integrands, found)
        relax(state, half)
        if (k + 1) % every == 0:
            row = found[(k + 1) // every - 1]
            measure(row, state.work[MASS], state.cells, integrands, float(state.clock[H2]))
    return missed
