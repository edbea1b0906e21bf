from pathlib import Path

import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.report.drawn import write_aggregate
from tests.analysis import bifurcation, laws, toy

HOSTILE = '</title><script>document.body.id="stolen"</script><img src=x onerror="alert(1)">'


@pytest.fixture(scope="session")
def aggregated() -> xr.DataTree:
    """The toy study's aggregate, under a title and a description that try to run code."""
    return aggregate(toy.store(title=HOSTILE, description=HOSTILE))


@pytest.fixture(scope="session")
def written(aggregated: xr.DataTree, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of its report."""
    return write_aggregate(aggregated, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def aggregated_laws() -> xr.DataTree:
    """Aggregate of the toy study of laws, with a comparison of the overlap."""
    store = laws.store()
    compared = {"convergence": {**laws.METHODS, "band": 2.0}}
    groups = {name: node.to_dataset() for name, node in store.children.items()}
    return aggregate(toy.tree(groups, {**laws.ANALYSES, **compared}))


@pytest.fixture(scope="session")
def aggregated_steady() -> xr.DataTree:
    """Aggregate of the toy bifurcation."""
    return aggregate(bifurcation.store())
