import json
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
from filelock import FileLock

from hdica.analysis.aggregate import aggregate
from hdica.report.drawn import write_aggregate
from tests.analysis import bifurcation, laws, toy

HOSTILE = '</title><script>document.body.id="stolen"</script><img src=x onerror="alert(1)">'


@pytest.fixture(scope="session")
def aggregated() -> xr.DataTree:
    """The toy study's aggregate, under a title and a description that try to run code."""
    return aggregate(toy.store(title=HOSTILE, description=HOSTILE))


@pytest.fixture(scope="session")
def written(shared: Path, request: pytest.FixtureRequest) -> list[Path]:
    """Files of its report, written once for all processes and not to be changed."""
    return once(shared / "toy", lambda: request.getfixturevalue("aggregated"), one_file=True)


def once(shelf: Path, aggregate: Callable[[], xr.DataTree], one_file: bool = False) -> list[Path]:
    """Files of a report on a shelf, written by the first of all processes that asks for them."""
    made = shelf / "files.json"
    shelf.mkdir(exist_ok=True)
    with FileLock(made.with_suffix(".making")):
        if not made.exists():
            files = write_aggregate(aggregate(), shelf / "report", one_file=one_file)
            made.write_text(json.dumps([str(file) for file in files]))
    return [Path(file) for file in json.loads(made.read_text())]


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
