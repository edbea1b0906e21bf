"""What docs/where-it-runs.md says can be copied as it is."""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import Any

import jsonschema
import pytest
import yaml
from ruamel.yaml import YAML

from hdica.run.processes import NODE
from hdica.run.settings import cluster_settings
from tests.sweep.outside import PAGE, ROOT, documented

SCHEMA = YAML(typ="safe", pure=True).load(ROOT / "workflow/schemas/config.schema.yaml")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("text", blocks("yaml"))
def test_configurations_are_valid_in_both_versions_of_yaml(text: str) -> None:
    # Snakemake reads YAML 1.1, where 1:00:00 is a number, and hdica run --config 1.2.
    config = yaml.safe_load(text)
    assert config == YAML(typ="safe", pure=True).load(text)
    jsonschema.validate(config, SCHEMA)
    cluster_settings(config["cluster"])


def test_every_mode_is_shown() -> None:
    kinds = {cluster_settings(yaml.safe_load(text)["cluster"]).mode for text in blocks("yaml")}
    assert {"local", "scheduler", "slurm"} <= kinds
    assert "`mode: serial`" in PAGE


def commands(text: str) -> list[list[str]]:
    """Commands of a shell text, variables and redirections left out."""
    joined = re.sub(rf"\$dask |python -P -m {NODE} ", "dask ", text.replace("\\\n", " "))
    found = []
    for line in joined.splitlines():
        if line.startswith("trap "):
            continue
        for part in re.split(r"--wrap|\$\(|;|&|\)", line.split("#")[0]):
            words = shlex.split(part.replace('"', " "))
            while words and ("=" in words[0] or words[0] in ("srun", "exec")):
                words.pop(0)
            if words:
                found.append(words)
    return found


def known_options(words: list[str]) -> set[str]:
    """Options that a command has."""
    if words[0] == "dask":
        from distributed.cli import dask_scheduler, dask_worker

        command: Any = {"scheduler": dask_scheduler, "worker": dask_worker}[words[1]].main
    else:
        from typer.main import get_command

        from hdica.cli import app

        command = get_command(app)
        while hasattr(command, "commands"):
            words = words[1:]
            command = command.commands[words[0]]
    return {option for parameter in command.params for option in parameter.opts} | {
        option for parameter in command.params for option in parameter.secondary_opts
    }


SHELL = [*blocks("sh"), *blocks("bash")]


@pytest.mark.parametrize("text", SHELL)
def test_commands_and_their_options_exist(text: str) -> None:
    checked = 0
    for words in commands(text):
        if words[0] in ("dask", "hdica"):
            options = {word.split("=")[0] for word in words if word.startswith("--")}
            assert options <= known_options(words), words
            checked += 1
    assert checked or "snakemake" in text or "openssl" in text


@pytest.mark.parametrize("text", [*blocks("sh"), *blocks("bash")])
def test_the_shell_understands_them(text: str) -> None:
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_servers_are_started_with_private_files_one_thread_and_no_web_pages() -> None:
    """As the module does it that starts them; Dask's own commands are nowhere."""
    scripts = [text for text in [*blocks("sh"), *blocks("bash")] if '--scheduler-file "$' in text]
    scripts.append(documented("scheduler $tls"))
    started = 0
    for script in scripts:
        assert f"python -P -m {NODE}" in script
        for line in script.replace("\\\n", " ").splitlines():
            assert not re.match(r"(srun )?dask (scheduler|worker)", line)
            if re.search(r" (scheduler|worker) \$tls ", line):
                assert "--dashboard" not in line
                assert f"-m {NODE} " in line or "$dask " in line
                started += 1
    assert started == 4


def test_links_lead_to_files() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", PAGE) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / "docs" / link).exists(), link
