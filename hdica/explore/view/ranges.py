"""Ranges of axes that follow what is drawn, until a visitor zooms in."""

from __future__ import annotations

import numpy as np
from bokeh.models import Range1d
from numpy.typing import NDArray

MARGIN = 0.06
"""Share of what is drawn that is free beyond it on either side."""


class Fitted:
    """A range that covers some values; one that a visitor has changed is left as it is.

    Bokeh's own ranges of data complain to the console where there is nothing to be seen, as at
    points that failed.
    """

    def __init__(self) -> None:
        self.range, self.last = Range1d(0.0, 1.0), (0.0, 1.0)

    def cover(self, values: NDArray[np.float64], low: float | None = None) -> None:
        """Cover all finite values; ``low`` is the lower end if it is given."""
        known = values[np.isfinite(values)]
        first, last = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        free = MARGIN * (last - first) or max(abs(first), 1.0) * MARGIN
        ends = (first - free if low is None else low, last + free)
        if (self.range.start, self.range.end) == self.last:
            self.range.update(start=ends[0], end=ends[1])
            self.last = ends
        self.range.update(reset_start=ends[0], reset_end=ends[1])
