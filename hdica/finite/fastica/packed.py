"""What the compiled passes need of samples and of a contrast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.fastica.found import checked_samples
from hdica.finite.random.streams import LANES
from hdica.finite.record import aligned_zeros
from hdica.ingredients.contrasts import Contrast

Array = NDArray[np.float64]
KEPT = 2**24
"""Most numbers of samples that are rearranged once; more are, block by block, in every pass."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Samples, shape (n, d), and panels for all of them or for one block."""

    y: Array
    panels: Array
    whole: bool

    @property
    def samples(self) -> tuple[Array, Array, bool]:
        """What the kernels take."""
        return self.y, self.panels, self.whole


def packed(y: Array) -> Packed:
    """Samples as the kernels read them.

    Raises
    ------
    HdicaError
        If they have not two dimensions, or there is no sample or no coordinate.
    """
    from hdica.finite.fastica.kernels import block_of, pack

    y = checked_samples(y)
    n, d = y.shape
    whole = y.size <= KEPT
    panels = -(-n // LANES)
    kept = aligned_zeros(panels if whole else block_of(d), d | 1, LANES)
    if whole:
        pack(y, 0, panels, kept, 0)
    return Packed(y, kept, whole)


def scratch(starts: int, d: int) -> tuple[Array, Array]:
    """Room for the projections of one block, with rows of no power of two for the cache's sake."""
    from hdica.finite.fastica.kernels import block_of

    rows = LANES * (block_of(d) | 1)
    both = aligned_zeros(starts + 1, rows)
    return both[:starts], both[starts]


def code_of(contrast: Contrast) -> tuple[int, int, int, int]:
    """Kind of a contrast, and addresses of G, g and g' of a formula."""
    from hdica.finite.fastica.functions import FORMULA, KINDS

    kind = KINDS.get(contrast.name, FORMULA)
    if kind != FORMULA:
        return kind, 0, 0, 0
    slope = contrast.formula.derivative
    each = (contrast.formula, slope, slope.derivative)
    height, g, curvature = (int(one.compiled_block.address) for one in each)
    return kind, height, g, curvature
