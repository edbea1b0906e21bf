import pytest
import xarray as xr

from tests.analysis import bifurcation, laws, toy


@pytest.fixture(scope="session")
def store() -> xr.DataTree:
    return toy.store()


@pytest.fixture(scope="session")
def law_store() -> xr.DataTree:
    return laws.store()


@pytest.fixture(scope="session")
def bifurcation_store() -> xr.DataTree:
    return bifurcation.store()
