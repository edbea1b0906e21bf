"""The lock file, the declared dependencies and what a wheel carries."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points, version
from itertools import chain
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from ruamel.yaml import YAML

import hdica

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
OF_TESTS = (ROOT / "requirements-test.lock").read_text()
OF_SITE = (ROOT / "requirements-docs.lock").read_text()
# Conda's names for the same packages.
CONDA = {"dask": "dask-core", "matplotlib": "matplotlib-base"}


def name_and_bound(requirement: str) -> tuple[str, str]:
    name, bound = re.match(r"([A-Za-z0-9._-]+)(.*)", requirement).groups()
    return re.sub(r"[._-]+", "-", name).lower(), bound


def locked(lock: str = LOCK) -> set[str]:
    """Packages of a lock, but for those that it has on some processors alone."""
    lines = (line for line in lock.splitlines() if "platform_machine" not in line)
    return {name_and_bound(line)[0] for line in lines if re.match(r"\w", line)}


@pytest.mark.parametrize("lock", [LOCK, OF_TESTS, OF_SITE], ids=["run", "test", "docs"])
def test_lock_names_no_address_and_no_index(lock: str) -> None:
    assert not re.search(r"://|http|www\.|\.(org|com|io|net)\b|^-|@", lock, re.MULTILINE)


@pytest.mark.parametrize("lock", [LOCK, OF_TESTS, OF_SITE], ids=["run", "test", "docs"])
def test_every_locked_requirement_is_pinned_and_hashed(lock: str) -> None:
    requirements = lock.replace("\\\n", " ").splitlines()
    assert len(requirements) > 30
    for line in requirements:
        assert re.match(r"[a-z0-9.-]+==\S+ ", line), line[:60]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line[:60]


RUN = ("core", "build", "sweep", "report", "whiten", "images")
"""Groups of which every package is there for `make run`; of the others for `make env`."""


@pytest.mark.parametrize("group", [*RUN, "test", "lint", "tables", "docs"])
def test_lock_covers_the_declared_dependencies(group: str) -> None:
    extras = PROJECT["optional-dependencies"]
    declared = PROJECT["dependencies"] if group == "core" else extras[group]
    also = set() if group in RUN else locked(OF_SITE if group == "docs" else OF_TESTS)
    assert {name_and_bound(d)[0] for d in declared} <= locked() | also
    assert not locked() & locked(OF_TESTS)


def test_the_executor_for_slurm_stays_out_of_the_lock() -> None:
    extra = {name_and_bound(d)[0] for d in PROJECT["optional-dependencies"]["slurm"]}
    # Once installed, it asks for a controller at every start of Snakemake.
    executor = {"snakemake-executor-plugin-slurm", "snakemake-executor-plugin-slurm-jobstep"}
    assert extra & executor
    assert not executor & locked()


def test_networks_stay_out_of_the_lock() -> None:
    extra = {name_and_bound(d)[0] for d in PROJECT["optional-dependencies"]["networks"]}
    assert extra == {"torch"}
    assert not extra & locked()


WITHOUT = """
import importlib.machinery, sys
MISSING = set(sys.argv[1].split())
found = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = staticmethod(
    lambda name, path=None, target=None: (
        None if name.partition(".")[0] in MISSING else found(name, path, target)
    )
)
import numpy as np
import hdica
from hdica.command import main
from hdica.errors import EXTRAS
assert set(EXTRAS) <= MISSING
ica = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.7})
assert hdica.simulate(ica, n=50, times=[0, 1], seeds=2)["Q"].shape == (2, 2)
assert 0 < float(hdica.limit(ica, times=[0, 1])["Q"][-1]) < 1
for call in (
    lambda: hdica.open_results("there.zarr"),
    lambda: hdica.Study.load(sys.argv[2]),
    lambda: hdica.whiten(np.eye(3)),
    lambda: hdica.Study(study="a", system="OnlineICA", parameters={"tau": 0.1}, times=[0],
                        methods={"ode": {}}).run(),
):
    try:
        call()
    except hdica.HdicaError as exc:
        print(exc)
sys.argv = ["hdica", "--help"]
main()
"""
"""A process that has no package but those that hdica always brings."""


@pytest.mark.deep
def test_simulations_and_limits_need_no_extra_and_the_rest_names_its_own() -> None:
    missing = "cryptography dask distributed h5netcdf h5py jinja2 matplotlib numcodecs PIL plotly "
    missing += "pyarrow ruamel skimage sklearn snakemake torch tornado typer zarr"
    study = ROOT / "config/studies/tiny.yaml"
    command = [sys.executable, "-c", WITHOUT, missing, str(study)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    sentence = re.compile(r"\w+ is not installed \(pip install 'hdica\[(\w+)\]'\)")
    lines = [sentence.fullmatch(line) for line in done.stdout.splitlines()]
    assert [line and line[1] for line in lines] == ["sweep", "sweep", "whiten", "sweep"]
    assert done.stderr == "hdica: typer is not installed (pip install 'hdica[sweep]')\n"


def test_every_dependency_has_a_lower_bound_and_no_upper_one() -> None:
    groups = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][one] for one in RUN[2:])]
    for requirement in chain(*groups):
        assert re.fullmatch(r">=[\d.]+(,!=[\d.]+)*", name_and_bound(requirement)[1]), requirement


@pytest.mark.parametrize(
    ("file", "keys", "extras"),
    [
        ("workflow/envs/hdica.yaml", ("dependencies",), RUN[2:]),
        ("conda/recipe.yaml", ("requirements", "run"), RUN[2:-1]),
    ],
)
def test_conda_installs_the_same_dependencies(
    file: str, keys: tuple[str, ...], extras: tuple[str, ...]
) -> None:
    environment = YAML(typ="safe", pure=True).load(ROOT / file)
    for key in keys:
        environment = environment[key]
    groups = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][one] for one in extras)]
    declared = dict(name_and_bound(d) for d in chain(*groups))
    del declared["snakemake"]  # it is what makes the environment
    expected = {f"{CONDA.get(name, name)}{bound}" for name, bound in declared.items()}
    listed = {"".join(name_and_bound(d.replace(" ", ""))) for d in environment}
    assert listed == expected | {f"python{PROJECT['requires-python']}"}


def test_one_version_everywhere() -> None:
    citation = YAML(typ="safe", pure=True).load(ROOT / "CITATION.cff")
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    recipe = YAML(typ="safe", pure=True).load(ROOT / "conda/recipe.yaml")
    assert {
        hdica.__version__,
        PROJECT["version"],
        citation["version"],
        recipe["context"]["version"],
        newest[1],
        version("hdica"),
    } == {"0.1.0"}


def test_console_script_is_the_documented_one() -> None:
    (script,) = entry_points(group="console_scripts", name="hdica")
    assert script.value == "hdica.command:main"
    assert callable(script.load())


@pytest.mark.deep
def test_a_wheel_of_the_source_archive_has_all_files_and_runs_the_five_lines_of_the_readme(
    tmp_path: Path,
) -> None:
    # Built from a copy: setuptools leaves a build folder behind.
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    copytree(ROOT / "hdica", tmp_path / "hdica")
    environment = {**os.environ, "PIP_NO_INDEX": "1"}

    def call(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("-c", "import setuptools.build_meta as build; build.build_sdist('.')")
    (archive,) = tmp_path.glob("hdica-*.tar.gz")
    rmtree(tmp_path / "hdica")
    call("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", archive.name)
    (wheel,) = tmp_path.glob("hdica-*.whl")
    call("-m", "pip", "install", "--no-deps", "--target", "installed", wheel.name)
    environment["PYTHONPATH"] = str(tmp_path / "installed")
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    home, *numbers = call("-c", f"{example}print(hdica.__file__)").split()[::-1]
    assert Path(home).is_relative_to(tmp_path)
    assert f"{float(numbers[0]):.4f}" == "0.0591"
    carried = set(zipfile.ZipFile(wheel).namelist())
    templates = [p for p in (ROOT / "hdica/report/templates").rglob("*") if p.is_file()]
    assert templates
    needed = {p.relative_to(ROOT).as_posix() for p in templates} | {"hdica/py.typed"}
    needed |= {p.relative_to(ROOT).as_posix() for p in (ROOT / "hdica").rglob("*.py")}
    firsts = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("hdica/systems/*/first.yaml")}
    assert firsts
    needed |= firsts | {"hdica/systems/works.bib"}
    assert needed <= carried
