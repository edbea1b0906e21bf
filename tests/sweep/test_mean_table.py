"""A table of means says what labelled arrays say, without the arithmetic of xarray."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from hdica.errors import HdicaError
from hdica.sweep.outcome.mean_table import mean_table
from hdica.sweep.outcome.query import average, table

DIMS = ("tau", "word", "n", "seed", "time")
OVER = [["seed"], ["time"], ["seed", "time"], ["n", "seed"], ["tau", "word", "n", "seed", "time"]]


def selection(noise: str) -> xr.Dataset:
    """Values of which some are missing, in one place all; one variable has fewer dimensions."""
    rng = np.random.default_rng(7)
    shape = (2, 2, 3, 4, 5)
    values = rng.normal(size=shape)
    values[rng.random(shape) < 0.3] = np.nan
    values[1, 0, 2] = np.nan
    values[0, 1, 0, 1:] = np.nan
    coords = {
        "tau": [0.1, 0.05], "word": ["relu", "cubic"], "n": [400, 100, 200],
        "seed": np.arange(4), "time": np.linspace(0, 1, 5),
        "step": (("n", "time"), np.ones((3, 5))),
    }  # fmt: skip
    more = {"per_n": (("tau", "n"), rng.normal(size=(2, 3))), "Q": (DIMS, values)}
    steps = {"steps": (("tau", "word", "n", "seed"), rng.integers(0, 9, shape[:-1]))}
    return xr.Dataset(more | steps, coords=coords, attrs={"noise": noise})


@pytest.mark.parametrize("noise", ["shared", "independent"])
@pytest.mark.parametrize("over", OVER, ids=lambda dims: ",".join(dims))
def test_means_errors_and_counts_are_those_of_labelled_arrays(noise: str, over: list[str]) -> None:
    data = selection(noise)[["Q"]]
    wanted = table(average(data, over, ["Q"]), DIMS)
    found = mean_table(data, over, DIMS)
    assert list(found.columns) == list(wanted.columns)
    keys = [name for name in DIMS if name not in over]
    if keys:
        wanted = wanted.sort_values(keys, ignore_index=True)
        found = found.sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False, rtol=1e-12)


def test_noise_that_is_shared_makes_the_error_one_over_seeds() -> None:
    over = ["n", "seed"]
    shared, own = (mean_table(selection(n)[["Q"]], over, DIMS) for n in ("shared", "own"))
    assert not np.allclose(shared["Q_se"], own["Q_se"], equal_nan=True)


def test_what_lacks_a_dimension_stays_as_it_is_and_whole_numbers_have_means() -> None:
    data = selection("own")[["per_n", "steps"]]
    found = mean_table(data, ["seed"], DIMS)
    at = found[(found.tau == 0.05) & (found.word == "cubic") & (found.n == 100)].iloc[0]
    point = data.sel(tau=0.05, word="cubic", n=100)
    assert at["per_n"] == float(point["per_n"])
    assert at["steps"] == pytest.approx(float(point["steps"].mean()))
    assert "per_n_se" not in found.columns


def test_rows_stand_in_the_order_of_their_columns() -> None:
    found = mean_table(selection("own")[["per_n"]], ["tau"], DIMS)
    assert found["n"].tolist() == [400, 100, 200]


@pytest.mark.parametrize("over", [["seed", "seed"], ["mu"]])
def test_what_cannot_be_averaged_is_refused(over: list[str]) -> None:
    with pytest.raises(HdicaError, match="--mean"):
        mean_table(selection("own")[["Q"]], over, DIMS)
