"""A selection at single values is what xarray's own is, without what xarray loads for it."""

from __future__ import annotations

import pytest
import xarray as xr

from hdica.errors import HdicaError
from hdica.store.query import select
from tests.sweep.test_mean_table import selection

CHOSEN = [
    ({"tau": "0.05"}, {"tau": 1}),
    ({"word": "cubic"}, {"word": 1}),
    ({"n": "400", "seed": "2"}, {"n": 0, "seed": 2}),
    ({"time": "0.25", "n": "100,200"}, {"time": 1, "n": [1, 2]}),
    (
        {"tau": "0.1", "word": "relu", "n": "200", "seed": "0", "time": "1"},
        {"tau": 0, "word": 0, "n": 2, "seed": 0, "time": 4},
    ),
]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("asked", "places"), CHOSEN, ids=lambda one: ",".join(map(str, one)))
def test_a_single_value_is_selected_as_xarray_does(asked, places, lazy, tmp_path) -> None:
    data = selection()
    data["tau"].attrs["units"] = "1"
    if lazy:
        data.to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
        data = xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf")
    xr.testing.assert_identical(select(data, asked).load(), data.isel(places).load())


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        ("0.3", [0.1 + 0.2]),
        ("0.3:0.4", [0.1 + 0.2, 1 / 3, 0.4]),
        (":0.3", [0.0, 1 / 3 - 0.1, 0.1 + 0.2]),
        ("0.333333333333", [1 / 3]),
        ("0.333333333333:", [1 / 3, 0.4]),
        (":", [0.0, 1 / 3 - 0.1, 0.1 + 0.2, 1 / 3, 0.4]),
        ("0", [0.0]),
    ],
)
def test_a_number_is_compared_by_the_digits_that_are_shown(asked: str, values: list) -> None:
    every = [0.0, 1 / 3 - 0.1, 0.1 + 0.2, 1 / 3, 0.4]
    data = xr.Dataset({"Q": ("tau", every)}, coords={"tau": every})
    assert select(data, {"tau": asked}).tau.values.ravel().tolist() == values
    with pytest.raises(HdicaError, match="is not there"):
        select(data, {"tau": "0.33333333333"})


def test_values_that_are_there_and_not_together_are_named() -> None:
    coords = {"tau": ("case", [0.1, 0.2]), "Q0": ("case", [0.3, 0.7])}
    cases = xr.Dataset({"Q": ("case", [0.0, 1.0])}, coords=coords)
    assert select(cases, {"tau": "0.1", "Q0": "0.3"}).sizes["case"] == 1
    with pytest.raises(HdicaError, match="no point has tau = 0.1 and Q0 = 0.7"):
        select(cases, {"tau": "0.1", "Q0": "0.7"})
    with pytest.raises(HdicaError, match="Q0=0.5 is not there \\(values: 0.3, 0.7"):
        select(cases, {"tau": "0.1", "Q0": "0.5"})


def test_a_value_is_not_another() -> None:
    data = selection()
    assert not select(data, {"tau": "0.05"}).identical(data.isel(tau=0))
