"""The example of a system of one's own: installed beside hdica, and run everywhere."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import types
import venv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

import hdica
from hdica.process.compile_cache import PLACE, set_cache_folder
from hdica.systems.system import systems
from tests.workflow.conftest import ROOT

OWN = ROOT / "examples/own_system"
PERCEPTRON = ROOT / "examples/perceptron"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a program of a fresh environment that has hdica, what it needs, and the example."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home / "venv")
    python = home / "venv/bin/python"
    # Everything but the example is taken from the environment of the tests, not downloaded.
    packages = Path(
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    others = sysconfig.get_path("purelib")
    (packages / "beside.pth").write_text(f"import site; site.addsitedir({others!r})\n{ROOT}\n")
    shutil.copytree(OWN, home / "own_system", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    environment = {"PATH": f"{home}/venv/bin:{os.defpath}", "HOME": str(home)}
    environment[PLACE] = str(set_cache_folder())  # or kernels would be compiled again

    def program(*arguments: str, cwd: Path | None = None, code: int = 0) -> str:
        done = subprocess.run(
            [str(python), *arguments],
            cwd=cwd or home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    program(*pip, str(home / "own_system"))
    return program


@pytest.mark.parametrize(
    ("path", "most"),
    [(OWN / "own_system", 120), (OWN / "own_system/crossing.py", 60), (PERCEPTRON, 120)],
    ids=["own_system", "crossing", "perceptron"],
)
def test_it_is_short(path: Path, most: int) -> None:
    files = [path] if path.is_file() else path.glob("*.py")
    assert sum(len(file.read_text().splitlines()) for file in files) <= most


@pytest.mark.parametrize("example", [OWN, PERCEPTRON], ids=lambda path: path.name)
def test_what_has_to_be_learned_is_little(example: Path) -> None:
    text = (example / "README.md").read_text()
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 6 <= len(numbers) <= 12
    if example == PERCEPTRON:  # all that it uses of hdica is in the list
        used = set(re.findall(r"\bhd\.(\w+)", (example / "perceptron.py").read_text()))
        assert used <= set(re.findall(r"\w+", text))


@pytest.fixture
def perceptron(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """The rule of no family, registered in this process."""
    monkeypatch.syspath_prepend(PERCEPTRON)
    module = importlib.import_module("perceptron")
    hdica.register(module.SYSTEM)
    yield module
    systems().pop("Perceptron")


def test_a_rule_of_no_family_meets_its_limit(perceptron: types.ModuleType) -> None:
    student, times = perceptron.Perceptron(tau=1.0), [0, 1, 5]
    runs = hdica.simulate(student, n=200, times=times, seeds=24)
    limit = hdica.limit(student, times=times)
    for name in ("cosine", "P"):
        error = runs[name].std("seed", ddof=1) / 24**0.5
        assert np.all(np.abs(runs[name].mean("seed") - limit[name]) <= 4 * error + 5 / 200)
    assert limit.cosine_error.max() < 1e-7 < abs(limit.cosine_control - limit.cosine)[1]
    same = hdica.simulate(student, n=200, times=times, seeds=[3])
    assert same.cosine.values[0].tobytes() == runs.cosine.values[3].tobytes()


def test_a_rule_of_no_family_refuses_in_one_sentence(perceptron: types.ModuleType) -> None:
    with pytest.raises(hdica.HdicaError, match=r"^Perceptron: tau = -1 is not allowed"):
        perceptron.Perceptron(tau=-1)
    with pytest.raises(hdica.HdicaError, match=r"'pde' is not known .*allowed: auto, ode"):
        hdica.limit(perceptron.Perceptron(tau=1), times=[0], method="pde")
    with pytest.raises(hdica.HdicaError, match=r"register: a Limit is not allowed"):
        hdica.register(perceptron.ODE)
    with pytest.raises(hdica.HdicaError, match="register: parameters = BaseModel is not allowed"):
        hdica.register(replace(perceptron.SYSTEM, parameters=BaseModel))


def test_a_study_of_a_rule_of_no_family_is_swept_and_judged(
    perceptron: types.ModuleType, tmp_path: Path
) -> None:
    study = hdica.Study.load(PERCEPTRON / "perceptron.yaml")
    tree = study.run(out=tmp_path / "perceptron.zarr")
    assert tree["vector"].cosine.dims == ("tau", "n", "seed", "time")
    assert tree["ode"].attrs["kernel"] == "4, perceptron 1"


@pytest.mark.deep
def test_a_study_of_it_is_swept_by_two_processes(run: Run, tmp_path: Path) -> None:
    study, out = str(OWN / "robust.yaml"), tmp_path / "robust.zarr"
    command = ("-m", "hdica.cli", "run", study, "--out", str(out), "--quiet")
    local = tmp_path / "local.yaml"
    local.write_text(json.dumps({"cluster": {"mode": "local", "workers": 2}}))
    run(*command, "--config", str(local))
    run("-m", "hdica.cli", "verify", str(out))
    tree = hdica.open_results(out)  # by a process that does not know the system
    assert tree["chain"].Q.dims == ("tau", "n", "seed", "time")
    gap = tree["chain"].Q.sel(n=400).mean("seed") - tree["ode"].Q
    assert 0 < abs(gap).max() < 0.1


@pytest.mark.deep
def test_its_first_study_comes_with_it_and_runs(run: Run, tmp_path: Path) -> None:
    run("-m", "hdica.cli", "new", "--system", "RobustRegression", cwd=tmp_path)
    for command in ("validate", "plan", "run"):
        run("-m", "hdica.cli", command, "robust_regression.yaml", cwd=tmp_path)
    assert hdica.open_results(tmp_path / "results/robust_regression.zarr").children
    study = (tmp_path / "robust_regression.yaml").read_text()
    assert study == (OWN / "own_system/first.yaml").read_text().replace(
        "first.yaml", "robust_regression.yaml"
    ).replace("results/first", "results/robust_regression").replace(
        "study: first", "study: robust_regression"
    )


@pytest.mark.deep
def test_the_workflow_builds_it(run: Run, tmp_path: Path) -> None:
    for name in ("Snakefile", "workflow", "config"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    shutil.copy(OWN / "robust.yaml", tmp_path / "config/studies/robust.yaml")
    (tmp_path / "config/config.yaml").write_text("studies: robust\n")
    run("-m", "snakemake", "--cores", "1", cwd=tmp_path)
    page = (tmp_path / "results/robust/report.html").read_text()
    assert "Crossing times" in page
    assert "the mean time at which runs cross 0.5" in page


@pytest.mark.deep
def test_a_system_of_this_process_alone_is_refused_elsewhere(tmp_path: Path) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(OWN)!r})\n"
        "import hdica\n"
        "from own_system import crossing, regression\n"
        "hdica.register(regression.SYSTEM), hdica.register(crossing.ANALYSIS)\n"
        f"study = hdica.Study.load({str(OWN / 'robust.yaml')!r})\n"
        "print(dict(study.run().chain.sizes))\n"
        "try:\n"
        f"    study.run(out={str(tmp_path / 'robust.zarr')!r}, workers=2)\n"
        "except hdica.HdicaError as exc:\n"
        "    print(exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    sizes, said = done.stdout.splitlines()
    assert "'seed': 16" in sizes
    assert "RobustRegression is registered in this process alone" in said
    assert not (tmp_path / "robust.zarr").exists()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study as the examples ask for it, published."""
    out = tmp_path_factory.mktemp("small") / "small.zarr"
    hdica.Study(
        study="small",
        system="OnlineICA",
        grid={"tau": [0.02, 0.08]},
        parameters={"start": {"overlap": 0.6}},
        times={"stop": 10, "num": 6},
        methods={"chain": {"n": [50, 100], "seeds": 8}, "ode": {}},
    ).run(out=out)
    return out


def script(name: str, *arguments: str) -> str:
    """What a script of the examples prints."""
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.deep
def test_results_with_xarray(store: Path, tmp_path: Path) -> None:
    figure = tmp_path / "figure.pdf"
    said = script("with_xarray.py", str(store), str(figure))
    tree = hdica.open_results(store)
    mean = tree["chain"].Q.isel(n=-1, time=-1).mean("seed")
    assert f"{float(mean[0]):.6f}" in said
    assert figure.read_bytes().startswith(b"%PDF")


@pytest.mark.deep
def test_results_with_pandas(store: Path) -> None:
    said = script("with_pandas.py", str(store))
    tree = hdica.open_results(store)
    mean = tree["chain"].Q.sel(n=100, tau=0.08).isel(time=-1).mean("seed")
    assert f"{float(mean):.6f}" in said
    assert "count" in said


@pytest.mark.deep
def test_results_with_duckdb(store: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    out = tmp_path / "means.parquet"
    script("with_duckdb.py", str(store), str(out))
    rows = duckdb.sql(
        f"select * from '{out}' where tau = 0.08 and n = 100 order by time"
    ).fetchall()
    means = hdica.open_results(store).hdica["chain"].mean("Q").sel(tau=0.08, n=100)
    assert [row[3] for row in rows] == pytest.approx(means["Q"].values.tolist(), rel=1e-12)
    assert [row[4] for row in rows] == pytest.approx(means["Q_se"].values.tolist(), rel=1e-9)
