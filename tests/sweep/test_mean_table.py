"""Means of a query are those of xarray to the last bit, without its arithmetic."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from hdica.errors import HdicaError
from hdica.store.query import average, table

DIMS = ("tau", "word", "n", "seed", "time")
OVER = [["seed"], ["time"], ["seed", "time"], ["n", "seed"], ["tau", "word", "n", "seed", "time"]]


def selection() -> xr.Dataset:
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
    return xr.Dataset(more | steps, coords=coords)


def mean_table(data: xr.Dataset, over: list[str]) -> pd.DataFrame:
    """Means of all variables as rows."""
    return table(average(data, over, [str(name) for name in data.data_vars]), DIMS)


def of_xarray(data: xr.Dataset, over: list[str]) -> xr.Dataset:
    """Mean, count and, over seeds, standard error of Q by the arithmetic of xarray alone."""
    values = data["Q"]
    found = {"Q": values.mean(over)}
    if "seed" in over:
        each = values.mean([dim for dim in over if dim != "seed"])
        found["Q_se"] = each.std("seed", ddof=1) / np.sqrt(each.count("seed"))
    return xr.Dataset(found | {"Q_count": values.count(over)}, coords=data.drop_dims(over).coords)


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("over", OVER, ids=lambda dims: ",".join(dims))
def test_means_errors_and_counts_are_those_of_xarray(over: list[str]) -> None:
    data = selection()[["Q"]]
    xr.testing.assert_equal(average(data, over, ["Q"]), of_xarray(data, over))


def test_a_count_has_no_unit_of_what_is_counted() -> None:
    data = selection()[["Q"]]
    data["Q"].attrs |= {"long_name": "a time", "units": "s"}
    means = average(data, ["seed"], ["Q"])
    assert means["Q"].attrs["units"] == "s"
    assert means["Q_count"].attrs == {"long_name": "number of values of Q", "units": "1"}


@pytest.mark.parametrize("over", OVER, ids=lambda dims: ",".join(dims))
def test_a_table_of_means_has_a_row_where_there_is_a_mean(over: list[str]) -> None:
    data = selection()[["Q"]]
    found, wanted = mean_table(data, over), of_xarray(data, over)
    keys = [name for name in DIMS if name not in over]
    error = ["Q_se"] if "seed" in over else []
    assert list(found.columns) == [*keys, "Q", *error, "Q_count"]
    assert len(found) == int(wanted["Q"].notnull().sum())
    for row in found.to_dict("records"):
        there = wanted.sel({key: row[key] for key in keys})
        assert row["Q"] == float(there["Q"])
        assert row["Q_count"] == int(there["Q_count"])
        for name in error:
            assert row[name] == pytest.approx(float(there[name]), nan_ok=True)


def test_the_error_is_that_of_runs_and_not_of_what_a_parameter_changes() -> None:
    rng, seeds = np.random.default_rng(3), 12
    # Means over tau differ by 1/sqrt(2 seeds) from one experiment to the next, though Q is tau.
    q = np.array([0.0, 100.0])[:, None] + rng.normal(size=(2, seeds))
    coords = {"tau": [0.1, 0.2], "seed": np.arange(seeds)}
    data = xr.Dataset({"Q": (("tau", "seed"), q)}, coords=coords)
    error = float(average(data, ["tau", "seed"], ["Q"])["Q_se"])
    assert 0.5 < error * np.sqrt(2 * seeds) < 1.6
    assert "Q_se" not in average(data, ["tau"], ["Q"])


def test_what_lacks_a_dimension_stays_as_it_is_and_whole_numbers_have_means() -> None:
    data = selection()[["per_n", "steps"]]
    found = mean_table(data, ["seed"])
    at = found[(found.tau == 0.05) & (found.word == "cubic") & (found.n == 100)].iloc[0]
    point = data.sel(tau=0.05, word="cubic", n=100)
    assert at["per_n"] == float(point["per_n"])
    assert at["steps"] == pytest.approx(float(point["steps"].mean()))
    assert "per_n_se" not in found.columns


def test_rows_stand_in_the_order_of_their_columns() -> None:
    found = mean_table(selection()[["per_n"]], ["tau"])
    assert found["n"].tolist() == [400, 100, 200]


@pytest.mark.parametrize("over", [["seed", "seed"], ["mu"]])
def test_what_cannot_be_averaged_is_refused(over: list[str]) -> None:
    with pytest.raises(HdicaError, match="--mean"):
        mean_table(selection()[["Q"]], over)
