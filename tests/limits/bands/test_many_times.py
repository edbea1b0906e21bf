"""Bands of whole densities at many times: solved at some of them, and interpolated."""

import numpy as np
import pytest
from numpy.typing import NDArray

import hdica
from hdica.systems.projected import density_values as bands
from tests.limits.bands.test_bands import ICA

TIMES = np.linspace(0, 4, 31)
X = np.linspace(-2, 3, 6)
ALWAYS = ("Q_sd", "R_sd", "tpr_sd", "fpr_sd", "misclassified_sd")


def found(most: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, NDArray[np.float64]]:
    monkeypatch.setattr(bands, "MOST_LAWS", most)
    asked = {"snapshots": TIMES, "x": X, "thresholds": [0.5], "bands": True}
    limit = hdica.limit(ICA, times=TIMES, method="pde", **asked)
    return {name: limit[name].values for name in (*ALWAYS, "density_sd", "cdf_sd")}


@pytest.mark.deep
def test_bands_between_the_times_that_are_solved_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a few per cent with what there usually is; fewer times are worse, and seen."""
    few, some, every = (found(most, monkeypatch) for most in (6, bands.MOST_LAWS, len(TIMES)))
    for name in ALWAYS:
        assert np.array_equal(some[name], every[name])
    known = np.isin(TIMES, bands.chosen_times(TIMES, 24))
    assert known.sum() <= 24
    for name in ("density_sd", "cdf_sd"):
        size = every[name].max(axis=-1, keepdims=True)
        off, more = (np.abs(one[name] - every[name]) / size for one in (some, few))
        # As far as blocks of other columns leave the same digits.
        assert off[known].max() < 1e-9
        assert off.max() < 0.03
        assert more.max() > 2 * off.max()
