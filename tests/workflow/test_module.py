"""The workflow as a module of another one, from a folder or a repository, and in the catalog."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.workflow.conftest import ROOT, Checkout

OTHER = """\
rule all:
    input:
        "copy.json",


module hdica:
    snakefile:
        {snakefile}
    config:
        {{"studies": ["first"], "study_folder": "studies", "results": "sweeps"}}


use rule * from hdica{names}


rule copy:
    input:
        "sweeps/first.manifest.json",
    output:
        "copy.json",
    shell:
        "cp {{input}} {{output}}"
"""


@dataclass(frozen=True)
class Importing(Checkout):
    """A workflow of somebody else in a folder of its own."""

    def environment(self) -> dict[str, str]:
        """Git reads a repository of this machine where it is asked for one of the net."""
        config = self.folder / "gitconfig"
        config.write_text(f'[url "file://{self.folder}/{REPOSITORY}"]\n\tinsteadOf = {ADDRESS}\n')
        cache = {"XDG_CACHE_HOME": str(self.folder / "cache"), "GIT_CONFIG_GLOBAL": str(config)}
        return {**super().environment(), **cache}


ADDRESS, REPOSITORY = "https://github.com/somebody/hdica", "hdica.git"


@pytest.fixture
def importing(checkout: Checkout, tmp_path: Path) -> Importing:
    """A folder with a study; the workflow lies elsewhere, in ``checkout``."""
    made = Importing(tmp_path / "other")
    (made.folder / "studies").mkdir(parents=True)
    shutil.copy(checkout.folder / "config/studies/first.yaml", made.folder / "studies")
    return made


def run_tiny_study(importing: Importing, snakefile: str, names: str) -> None:
    """Build the target of the other workflow, and what it needs of this one, and nothing else."""
    text = OTHER.format(snakefile=snakefile, names=names)
    (importing.folder / "Snakefile").write_text(text)
    assert importing.jobs() == {"shard": {"first"}, "publish": {"first"}}
    manifest = json.loads((importing.folder / "copy.json").read_text())
    assert manifest["counts"]["chain"]["done"] == 4 * 2 * 4
    assert (importing.folder / "sweeps/first.zarr").is_dir()


def test_a_workflow_elsewhere_runs_a_tiny_study(checkout: Checkout, importing: Importing) -> None:
    run_tiny_study(importing, f'"{checkout.folder}/Snakefile"', " as hdica_*")
    # All that this one builds by itself, under its other name.
    assert importing.jobs("-n", "hdica_all") == {"report": {"first"}}


def test_all_rules_may_keep_their_names(checkout: Checkout, importing: Importing) -> None:
    text = OTHER.format(snakefile=f'"{checkout.folder}/Snakefile"', names="")
    (importing.folder / "Snakefile").write_text(
        text[text.index("module") : text.index("rule copy")]
    )
    assert importing.jobs("-n")["report"] == {"first"}


def test_the_manual_shows_how(checkout: Checkout, importing: Importing) -> None:
    page = (ROOT / "docs/where-it-runs.md").read_text()
    (text,) = re.findall(r"```snakemake\n(.*?)```", page, re.DOTALL)
    (importing.folder / "Snakefile").write_text(
        text.replace("/path/to/hdica", str(checkout.folder))
    )
    (importing.folder / "figure.py").touch()
    assert importing.jobs("-n") == {"shard": {"first"}, "publish": {"first"}}


@pytest.mark.deep
def test_a_workflow_elsewhere_imports_it_from_a_repository(
    checkout: Checkout, importing: Importing
) -> None:
    # Only what git has: no module beside a script can be imported.
    git = ["git", "-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"], ["tag", "v1"]):
        subprocess.run([*git, *arguments], cwd=checkout.folder, check=True, env=os.environ)
    clone = ["git", "clone", "-q", "--bare", ".", str(importing.folder / REPOSITORY)]
    subprocess.run(clone, cwd=checkout.folder, check=True)
    where = 'github("somebody/hdica", path="workflow/Snakefile", tag="v1")'
    run_tiny_study(importing, where, " as hdica_*")


def test_the_catalog_finds_what_it_shows() -> None:
    content = YAML(typ="safe", pure=True).load(ROOT / ".snakemake-workflow-catalog.yml")
    usage = content["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    deployment = {"conda": True, "apptainer": False, "apptainer+conda": False}
    assert usage["software-stack-deployment"] == deployment
    for name in ("workflow/Snakefile", "config/README.md", "workflow/envs/hdica.yaml"):
        assert (ROOT / name).is_file()
    readme = (ROOT / "README.md").read_text()
    assert all(word in readme for word in ("snakemake", "workflow"))


def test_the_place_of_the_catalog_builds_the_same(checkout: Checkout) -> None:
    usual = checkout.jobs("-n")
    assert checkout.jobs("-n", "--snakefile", "workflow/Snakefile") == usual
