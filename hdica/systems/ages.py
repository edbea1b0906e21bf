"""How methods of escape times give a survival: at ages, multiples of the mean."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hdica.systems.method import Array

AGES = 2.0 ** (np.arange(-64, 25) / 8)
"""Times at which survival is given, in multiples of the mean, of the first escape or the last."""
UNIT = "n^3 steps"


def over_age(times: Array) -> dict[str, Array]:
    """Coordinates of a survival, whatever the times of a study."""
    return {"age": AGES}


def at_ages(survival: Callable[[Array], Array], mean: float) -> Array:
    """A survival at the ages; that of an exponential law where the mean is no number above 0."""
    return survival(AGES * mean) if 0 < mean < math.inf else np.exp(-AGES)
