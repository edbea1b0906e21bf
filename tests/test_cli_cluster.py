"""The options of ``hdica run`` that say where, and its configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.run.settings import settings_of

ROOT = Path(__file__).parents[1]
TINY = ROOT / "config/studies/tiny.yaml"


def said(capsys: pytest.CaptureFixture[str]) -> str:
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    return found.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", str(TINY), "--memory", "2"], "cluster: memory = '2' is not allowed"),
        (["run", str(TINY), "--address", "tcp://10.0.0.7:1"], "is not allowed (over plain tcp"),
        (["run", str(TINY), "--address", "tls://10.0.0.7:1"], "needs tls (the folder with"),
        (["run", str(TINY), "--address", "tls://h:1", "--tls", "absent"], "ca.pem cannot be read"),
        (["run", str(TINY), "--config", "absent.yaml"], "cannot read absent.yaml"),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_written(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(arguments) == 2
    assert message in said(capsys)
    assert not list(tmp_path.iterdir())


CONFIG = "studies: [tiny]\ncluster: {mode: local, workers: 3, memory: 1GiB, tls: certs}\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("local", 3, "1GiB")),
        ({"workers": 2, "memory": "2GiB"}, ("local", 2, "2GiB")),
        ({"workers": None, "memory": "", "insecure": False}, ("local", 3, "1GiB")),
        ({"address": "tls://h:1"}, ("scheduler", 3, "1GiB")),
    ],
)
def test_options_win_over_the_file(
    given: dict[str, Any], expected: tuple[str, int, str], tmp_path: Path
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(CONFIG)
    found = settings_of(file, given)
    assert (found.kind, found.workers, found.memory) == expected
    assert found.tls == "certs"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "is not a configuration"),
        ("cluster: 3", "cluster must be a mapping"),
        ("cluster: slrum", "cluster = 'slrum' is not allowed"),
        ("cluster: {wokers: 2}", "did you mean 'workers'"),
        ("cluster: [", "is not valid YAML"),
    ],
)
def test_a_wrong_file_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(text)
    with pytest.raises(HdicaError) as caught:
        settings_of(file, {})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_the_section_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text("studies: [tiny]\n")
    assert settings_of(file, {}).kind == "serial"
    assert settings_of(None, {"workers": 2}).kind == "local"


def test_a_warning_is_one_line() -> None:
    code = (
        "import sys, warnings, hdica.cli as cli; "
        "cli.call = lambda arguments, begin: warnings.warn('a key can be read') or 0; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "hdica: a key can be read\n")


SITE = """\
studies: [tiny]
cluster:
  mode: slurm
  slurm:
    queue: 12
    account: 1234
    cores: 4
    memory: 8GiB
    walltime: "04:00:00"
    maximum: 20
    array: true
    at_once: 5
    retry: {memory: 2, walltime: 1.5, most: 1}
    exclude: "node[1-3],node7"
    requeue: false
    prologue: ["module load python"]
    shared_folder: shared
"""


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert call(["cluster", "show", *arguments]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    return found.out


def test_a_job_is_shown_also_where_no_slurm_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "site.yaml").write_text(SITE)
    text = shown(capsys, "--config", "site.yaml")
    settings, script, sentence = text.rstrip("\n").split("\n\n")
    # The settings can be used as they are printed.
    (tmp_path / "again.yaml").write_text(settings)
    assert settings_of(Path("again.yaml"), {}) == settings_of(Path("site.yaml"), {})
    lines = script.splitlines()
    assert lines[0].startswith("#!")
    assert {
        "#SBATCH --array=0-19%5", "#SBATCH -p 12", "#SBATCH -A 1234", "#SBATCH --mem=8192M",
        "#SBATCH -x node[1-3],node7", "#SBATCH --no-requeue", "module load python",
    } <= {*lines}  # fmt: skip
    assert f"--tls-key {tmp_path}/shared/tls-RUN/key.pem" in lines[-1]
    assert sentence == (
        "a run would submit up to 20 jobs of 4 workers each, 8GiB for 04:00:00, to Slurm's queue "
        "'12', as tasks of one array of which 5 run at once, and replace those that end while "
        "there is work; after one that lacked memory or time the next ask for 2 times the memory "
        "or 1.5 times the walltime, at most once"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"site.yaml", "again.yaml"}


def test_other_places_have_no_job_to_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys).endswith("\na run would submit no job (mode = 'auto', here serial)\n")
    (tmp_path / "site.yaml").write_text("cluster: slurm\n")
    assert "of 1 worker each, 4GiB for 01:00:00, to Slurm's default queue" in shown(
        capsys, "--config", str(tmp_path / "site.yaml")
    )


def test_settings_that_are_not_allowed_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.yaml").write_text("cluster: {mode: slurm, slurm: {at_once: 5}}\n")
    assert call(["cluster", "show", "--config", str(tmp_path / "site.yaml")]) == 2
    assert "at_once = 5 needs array: true" in said(capsys)
