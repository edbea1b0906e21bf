"""First-layer filters of a network at snapshots of its training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError


@dataclass(frozen=True, eq=False)
class Series:
    """Filters at snapshots.

    Parameters
    ----------
    steps
        Training steps before each snapshot, shape (T,), increasing.
    filters
        Shape (T, K, channels, h, w).

    Raises
    ------
    HdicaError
        If shapes do not fit, steps do not increase, or a number is not finite.
    """

    steps: NDArray[np.int64]
    filters: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.filters.ndim != 5 or len(self.steps) != len(self.filters) or not len(self.steps):
            raise HdicaError(
                f"filters of shape {self.filters.shape} at {len(self.steps)} steps are not allowed "
                "(snapshots, filters, channels, rows, columns; one step a snapshot)"
            )
        if np.any(np.diff(self.steps) <= 0) or self.steps[0] < 0:
            raise HdicaError(
                "steps of the snapshots are not allowed (>= 0, each larger than the last)"
            )
        if not np.all(np.isfinite(self.filters)):
            raise HdicaError("filters with a number that is not finite are not allowed")

    @property
    def dimension(self) -> int:
        """Entries d of a filter: channels times rows times columns."""
        return int(np.prod(self.filters.shape[2:]))

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for red, green and blue."""
        return int(self.filters.shape[2])

    def vectors(self, snapshot: int) -> NDArray[np.float64]:
        """Filters of a snapshot, shape (K, d), entries as in patches: row, column, channel."""
        moved = np.moveaxis(self.filters[snapshot], 1, -1)
        return moved.reshape(len(moved), -1).astype(np.float64)

    def at(self, time: float) -> int:
        """Number of the last snapshot until a time in steps; -1 before the first."""
        return int(np.searchsorted(self.steps, time, side="right")) - 1
