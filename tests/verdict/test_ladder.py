"""Moments and pooled means of what seeds give."""

import numpy as np
import pytest

from hdica.verdict.ladder import pooled


def test_measurements_are_pooled_by_their_errors() -> None:
    mean, error = pooled(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    assert (mean, error) == pytest.approx((1.5, 0.5**0.5))
    assert pooled(np.array([0.0, 10.0]), np.array([1.0, 1.0]))[1] == pytest.approx(5.0)
    assert np.isnan(pooled(np.array([1.0]), np.array([np.nan]))[0])
