import pytest
import xarray as xr

from tests.analysis import toy


@pytest.fixture(scope="session")
def store() -> xr.DataTree:
    return toy.store()
