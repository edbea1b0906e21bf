"""What commands load: nothing that they do not use, so that they answer at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hdica.study.study import study_from
from hdica.systems.built_in import BUILT_IN
from hdica.systems.system import lookup
from tests.sweep import toy
from tests.sweep.conftest import made

ROOT = Path(__file__).parents[1]
NEVER = {"distributed", "snakemake", "matplotlib", "plotly", "sklearn", "cryptography", "torch"}
"""What only a run on a cluster, a report or a system of its own needs."""
NUMERICAL = {"scipy", "sympy", "numba", "llvmlite", "h5py", "h5netcdf"}
"""What computes, or writes another format than is asked for."""
SYSTEMS = set(BUILT_IN.values())
"""Their records, of which a study needs its own."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toy.register()
    out = tmp_path_factory.mktemp("imports") / "toy.zarr"
    made(study_from(toy.study()), out)
    toy.forget()
    return out


def loaded(*arguments: str, code: int = 0) -> set[str]:
    """Modules in a process that has run a command, which ends with an exit status."""
    code = f"""
import json, sys
from hdica.cli import call
assert call({list(arguments)!r}) == {code}
print()
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("to", "selected"),
    [("-", ("seed=0:1",)), ("csv", ()), ("csv", ("seed=0", "time=0")), ("json", ("seed=0",))],
)
def test_a_query_loads_what_reads_and_nothing_that_computes(
    results: Path, to: str, selected: tuple[str, ...]
) -> None:
    chosen = [word for one in selected for word in ("--sel", one)]
    found = loaded("query", str(results), "--to", to, *chosen)
    # Arithmetic of xarray would load this, and SciPy with it.
    assert not found & (NEVER | NUMERICAL | SYSTEMS | {"dask.array"})


def test_means_load_nothing_that_computes_either(results: Path) -> None:
    found = loaded("query", str(results), "--to", "csv", "--mean", "seed", "--mean", "time")
    assert not found & (NEVER | NUMERICAL | SYSTEMS | {"dask.array"})


@pytest.mark.parametrize("command", ["--help", "--version"])
def test_help_loads_neither_numbers_nor_stores(command: str) -> None:
    assert not loaded(command) & (NEVER | NUMERICAL | SYSTEMS | {"numpy", "zarr", "xarray"})


def test_importing_hdica_loads_no_library() -> None:
    code = "import hdica, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "pydantic", "xarray", "rich", "typer"}


def test_a_study_loads_its_own_system_alone() -> None:
    found = loaded("validate", str(ROOT / "config/studies/tiny.yaml"))
    records = {name for name in found if re.fullmatch(r"hdica\.systems\.\w+\.record", name)}
    assert records == {"hdica.systems.online_ica.record"}


def test_systems_are_listed_in_one_order_whichever_was_asked_for_first() -> None:
    code = """
from hdica.systems.system import check_installed, system_named, systems
first = system_named("HebbianICA")
check_installed("HebbianICA")
print(*systems())
assert systems()["HebbianICA"] is first
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(BUILT_IN)


@pytest.mark.parametrize("name", ["Kernel", "axes", "", ".", "OnlineIca"])
def test_a_name_beside_the_systems_is_none_of_them(name: str) -> None:
    assert lookup(name) is None


@pytest.mark.deep
def test_a_study_is_checked_planned_cited_and_begun_without_stores_or_pages(
    tmp_path: Path,
) -> None:
    tiny = str(ROOT / "config" / "studies" / "tiny.yaml")
    pages = {*NEVER, "h5py", "h5netcdf", "pyarrow"}
    assert not loaded("validate", tiny) & pages
    assert not loaded("plan", tiny, "--out", str(tmp_path / "tiny.zarr")) & pages
    file = str(tmp_path / "probe.yaml")
    found = loaded("new", file, "--system", "OnlineICA")
    assert not found & pages


def test_a_report_of_nothing_is_refused_before_what_draws_is_loaded(tmp_path: Path) -> None:
    found = loaded("report", str(tmp_path / "none.zarr"), code=2)
    assert not found & (NEVER | NUMERICAL | SYSTEMS | {"xarray"})


def test_a_store_is_refused_before_what_draws_is_loaded(results: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    found = loaded("report", str(results), "--out", str(tmp_path / "out"), code=2)
    assert not found & (NEVER | NUMERICAL | SYSTEMS)
