"""Bands of theory in figures of convergence: a caption says of which n they are not drawn."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.convergence.figure import edges, of_theory

SIZES = [100, 200, 400]


def aggregate(from_n: list[float]) -> xr.Dataset:
    """A limit whose theory holds from some n on at each of three times."""
    one = ("time", np.ones(3))
    unknown = ("time", np.full(3, np.nan))
    variables = {"limit": one, "limit_sd": one, "limit_bias": unknown}
    return xr.Dataset(
        {**variables, "limit_from_n": ("time", np.array(from_n))},
        {"time": [0.0, 1.0, 2.0]},
        {"band": 1.0},
    )


@pytest.mark.parametrize(
    ("from_n", "drawn", "words"),
    [
        ([1, 1, 1], 3, "Dotted: limit ± standard deviation by the central limit theorem."),
        ([1, 150, 150], 3, "It ends at <i>n</i> = 100, where three"),
        ([150, 150, 150], 2, "It is missing at <i>n</i> = 100, where three"),
        ([150, 250, 350], 2, "It ends at <i>n</i> = 200 and is missing at <i>n</i> = 100, where"),
        ([1e9, 1e9, 1e9], 0, "No band of theory is drawn"),
    ],
)
def test_a_band_that_is_not_drawn_does_not_end(from_n, drawn, words):
    data = aggregate(from_n)
    lines = edges(data, [{}], dict.fromkeys(SIZES, "#000000"))
    assert len(lines) == 2 * drawn
    text = of_theory(data, [{}], SIZES)
    assert words in text
    assert ("three standard" in text) == (max(from_n) > SIZES[0])
