"""The real workflow in a folder of its own, with small studies."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hdica.process.compile_cache import PLACE, set_cache_folder

ROOT = Path(__file__).parents[2]

STUDY = """\
study: {name}
title: {title}
description: a small study
system: OnlineICA
parameters: {{source: uniform, nonlinearity: x**3}}
grid:
  tau: {tau}
  Q0: [0.5, 0.8]
times: [0, 1, 2]
methods:
  chain: {{n: {n}, seeds: {seeds}}}
  ode: {{}}
analysis:
  convergence: {{simulation: chain, limit: ode, variable: Q, level: 0.01}}
"""


@dataclass(frozen=True)
class Checkout:
    """A copy of the workflow in a folder."""

    folder: Path

    def study(
        self,
        name: str,
        *,
        title: str = "small",
        tau: str = "[0.02, 0.05]",
        n: str = "[50, 100]",
        seeds: int = 4,
    ) -> Path:
        """Write a study file."""
        path = self.folder / "config/studies" / f"{name}.yaml"
        path.write_text(STUDY.format(name=name, title=title, tau=tau, n=n, seeds=seeds))
        return path

    def config(self, text: str) -> None:
        """Replace config.yaml."""
        (self.folder / "config/config.yaml").write_text(text)

    def command(self, *arguments: str) -> list[str]:
        """The command line of Snakemake."""
        # One core: a study runs in the process of its job, without a cluster to wait for.
        cores = () if "--cores" in arguments else ("--cores", "1")
        return [str(Path(sys.executable).parent / "snakemake"), *cores, *arguments]

    def environment(self) -> dict[str, str]:
        """An environment without the virtual environment on its path, and an empty home.

        Functions that are compiled already are not compiled again.
        """
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": os.defpath, "HOME": str(home), PLACE: str(set_cache_folder())}

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end, everything it says in ``stdout``."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
        )

    def jobs(self, *arguments: str) -> dict[str, set[str]]:
        """Run Snakemake, and say which rules ran for which study."""
        done = self.snakemake(*arguments)
        assert done.returncode == 0, done.stdout
        return rules(done.stdout)


MESSAGES = {
    "Computing study ": "shard",
    "Publishing study ": "publish",
    "Writing the report of study ": "report",
}


def rules(output: str) -> dict[str, set[str]]:
    """Rules that Snakemake names as run or to be run, with their studies."""
    found: dict[str, set[str]] = {}
    for line in output.splitlines():
        for message, rule in MESSAGES.items():
            if message in line:
                study = line.split(message)[1].replace(",", " ").split()[0]
                found.setdefault(rule, set()).add(study)
    return found


def copy_workflow(folder: Path) -> Checkout:
    """Copy what a user has, without the shipped studies."""
    for name in ("workflow", "profiles"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy2(ROOT / "Snakefile", folder)
    (folder / "config/studies").mkdir(parents=True)
    return Checkout(folder)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh copy with one study in its configuration, nothing built."""
    fresh = copy_workflow(tmp_path)
    fresh.study("first")
    fresh.config("studies: [first]\n")
    return fresh


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Two studies, built once through a local cluster of two processes; not to be changed."""
    made = copy_workflow(tmp_path_factory.mktemp("built"))
    made.study("first")
    made.study("second", tau="[0.03]")
    made.config("studies: [first, second]\n")
    ran = made.jobs("--cores", "2")
    both = {"first", "second"}
    assert ran == {"shard": both, "publish": both, "report": both}
    return made


@pytest.fixture
def built(pristine: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the built folder, to be changed; its files keep their times."""
    shutil.copytree(pristine.folder, tmp_path / "copy")
    return Checkout(tmp_path / "copy")
