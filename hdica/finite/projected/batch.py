"""Mini-batches: the numbers that a step takes of several samples at the same estimate.

A sample matters by its component c along the feature, by its component e along the part of the
estimate across the feature, and by the rest, of which a step needs one normal vector for all of
its samples together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream, normal_numbers
from hdica.ingredients.schedules import Schedule

Array = NDArray[np.float64]
Sources = Callable[[np.random.Generator], Callable[[int], Array]]


def width_of(batch: int) -> int:
    """Numbers that a step takes from its source: c, or c and e of every sample of a batch."""
    return 1 if batch == 1 else 2 * batch


def samples(
    sources: Sources, batch: int, stream: Stream, amplitude: Schedule | None = None, n: int = 1
) -> Callable[[int], Array]:
    """A function that continues the stream of samples.

    Of some steps it gives c, shape (steps,); or with a batch, shape (steps, 2 batch), the c of all
    samples of a step and then their e, which have a stream of their own. An ``amplitude``
    multiplies the c of step k by its value at k/n.
    """
    draw = sources(stream("source"))
    if amplitude is not None:
        draw = _multiplied(draw, amplitude, batch, n)
    if batch == 1:
        return draw
    normal = normal_numbers(stream("across"))

    def drawn(steps: int) -> Array:
        c, e = (one(steps * batch).reshape(steps, batch) for one in (draw, normal))
        return np.concatenate([c, e], axis=1)

    return drawn


def _multiplied(
    draw: Callable[[int], Array], amplitude: Schedule, batch: int, n: int
) -> Callable[[int], Array]:
    """Sources of steps in their order, ``batch`` a step, times what changes from step to step."""
    done = 0

    def drawn(size: int) -> Array:
        nonlocal done
        steps = done + np.arange(size // batch)
        done += size // batch
        return np.asarray(draw(size) * np.repeat(amplitude.value(steps / n), batch))

    return drawn
