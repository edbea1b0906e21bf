"""Step sizes at which a path diverges, which no user may ask for."""

import math

import pytest

from hdica.ingredients import schedules


@pytest.fixture(autouse=True)
def _unbounded(monkeypatch):
    """Each step restores the norm, so that a path leaves the numbers at 1e200 and not before."""
    monkeypatch.setattr(schedules, "LARGEST", math.inf)
