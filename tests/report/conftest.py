from pathlib import Path

import pytest
import xarray as xr

from hdica.analysis import aggregate
from hdica.report.write import write_aggregate
from tests.analysis import toy

HOSTILE = '</title><script>document.body.id="stolen"</script><img src=x onerror="alert(1)">'


@pytest.fixture(scope="session")
def aggregated() -> xr.DataTree:
    """The toy study's aggregate, under a title and a description that try to run code."""
    return aggregate(toy.store(title=HOSTILE, description=HOSTILE))


@pytest.fixture(scope="session")
def written(aggregated: xr.DataTree, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of its report."""
    return write_aggregate(aggregated, tmp_path_factory.mktemp("report"))
