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

Array = NDArray[np.float64]
Sources = Callable[[np.random.Generator], Callable[[int], Array]]


def width_of(batch: int) -> int:
    """Numbers that a step takes from its source: c, or c and e of every sample of a batch."""
    return 1 if batch == 1 else 2 * batch


def samples(sources: Sources, batch: int, stream: Stream) -> Callable[[int], Array]:
    """A function that continues the stream of samples.

    Of some steps it gives c, shape (steps,); or with a batch, shape (steps, 2 batch), the c of all
    samples of a step and then their e, which have a stream of their own.
    """
    draw = sources(stream("source"))
    if batch == 1:
        return draw
    normal = normal_numbers(stream("across"))

    def drawn(steps: int) -> Array:
        c, e = (one(steps * batch).reshape(steps, batch) for one in (draw, normal))
        return np.concatenate([c, e], axis=1)

    return drawn
