"""First studies: each is valid, costs seconds, explains itself, and answers its question."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hdica
from hdica.analysis.aggregate import aggregate, summary
from hdica.analysis.registry import settings_classes
from hdica.cli import call
from hdica.cli_files import TEMPLATE, _template
from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.inputs.plain_yaml import read_yaml
from hdica.process import machine
from hdica.run.plan import plan
from hdica.study.study import load_study, study_from
from hdica.systems import system as registry
from hdica.systems.system import System, systems

ROOT = Path(__file__).parents[1]
SECONDS, WAIT, WIDTH = 20.0, 60.0, 100
"""Most of a first study: seconds on one core, the wait with all that is compiled once, columns."""
ALTERNATIVE = re.compile(r"^ +(# )(?=\w+: )", re.MULTILINE)
"""The mark in front of a line that may be used instead of others, or beside them."""
EXPLAINED = re.compile(r"^ *(#|[^#]+ # \S|(title|question): |$)")
"""A line that says what it means, or is a sentence itself."""
SAVED = Save((1.0,), (0.0, 1.0), (0.5,))
RECORDS = [one for name, one in systems().items() if name != "Toy"]
of_every_system = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)


@pytest.fixture
def usual_pace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter of a machine of today, however busy the one is on which tests run."""
    monkeypatch.setattr(machine, "_interpreted", lambda: 0.6 * machine.LOOP)
    machine.pace.cache_clear()
    yield
    machine.pace.cache_clear()


@pytest.mark.usefixtures("usual_pace")
@of_every_system
def test_a_first_study_is_valid_and_takes_seconds(record: System) -> None:
    study = load_study(_template(record))
    assert study.system == record.name
    assert study.question is not None
    planned = plan(study)
    assert planned.seconds <= SECONDS
    assert planned.wait() <= WAIT


@of_every_system
def test_every_line_of_a_first_study_says_what_it_means(record: System) -> None:
    lines = _template(record).read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if not EXPLAINED.match(line)]
    assert max(map(len, lines)) <= WIDTH
    assert 35 <= len(lines) <= 60


@of_every_system
def test_every_alternative_of_a_first_study_may_be_used(record: System, tmp_path: Path) -> None:
    text, file = _template(record).read_text(encoding="utf-8"), tmp_path / TEMPLATE
    marks = list(ALTERNATIVE.finditer(text))
    assert marks
    before = load_study(_template(record))
    for mark in marks:
        file.write_text(text[: mark.start(1)] + text[mark.end(1) :], encoding="utf-8")
        assert load_study(file) != before


@pytest.mark.deep
@of_every_system
def test_its_commands_lead_to_a_page_with_an_answer(
    record: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unprinted: None
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["new", "mine.yaml", "--system", record.name]) == 0
    text = (tmp_path / "mine.yaml").read_text()
    assert not re.search(r"\bfirst\.|results/first", text)
    commands = re.findall(r"^#   hdica (.+?)  ", text, re.MULTILINE)
    assert [line.split()[0] for line in commands] == ["validate", "plan", "run", "report"]
    for command in commands:
        assert call(shlex.split(command)) == 0, command
    (page,) = re.findall(r"draws the page (\S+)", text)
    assert (tmp_path / page).is_file()
    said = summary(aggregate(hdica.open_results(tmp_path / "results/mine.zarr")))
    assert said.headline
    assert said.verdict in ("agrees", "")
    assert said.whole


def test_every_analysis_is_part_of_a_study_that_comes_with_hdica() -> None:
    files = [*(ROOT / "config/studies").glob("*.yaml"), *map(_template, RECORDS)]
    written = {name for file in files for name in read_yaml(file)["analysis"]}
    own = {
        name for name, kind in settings_classes().items() if kind.__module__.startswith("hdica.")
    }
    assert own == written


@of_every_system
def test_densities_and_support_go_with_whatever_keeps_them(record: System) -> None:
    """And with nothing else."""
    save = {"snapshots": [1], "x": [0, 1], "thresholds": [0.5]}
    for method in record.methods:
        if method.stochastic:
            continue
        example = next(
            one for one in record.examples if not method.scope.refuses(record.parameters(**one))
        )
        content: dict[str, Any] = {
            "study": "probe",
            "system": record.name,
            "parameters": dict(example),
            "times": [0, 1],
            "methods": {method.name: {"n": 50} if method.takes_n else {}},
            "save": save,
            "analysis": {key: {"limit": method.name} for key in ("densities", "support")},
        }
        outputs = {output.name: output.dims for output in method.outputs_of(SAVED)}
        if "snapshot" in outputs.get("density", ()) and "tpr" in outputs:
            assert study_from(content).analysis.items()
        else:
            with pytest.raises(HdicaError, match=r"save\.|analysis\."):
                study_from(content)


def test_odds_are_no_mean_that_is_predicted_too() -> None:
    content: dict[str, Any] = {
        "study": "probe",
        "system": "SparsePCA",
        "grid": {"tau": [0.2, 0.5], "omega": [0.5, 1.5]},
        "times": [0, 10],
        "methods": {
            "chain": {"n": 100, "seeds": 2},
            "ode": {},
            "steady_diffusion": {"n": [100]},
        },
        "analysis": {"phase": {"simulation": "chain", "limit": "ode", "x": "tau", "y": "omega"}},
    }
    study_from(content)
    content["analysis"]["phase"]["odds"] = "steady_diffusion"
    with pytest.raises(HdicaError, match="odds"):
        study_from(content)


def test_a_system_of_ones_own_may_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("own_rule")
    module.__file__ = str(tmp_path / "own_rule.py")
    monkeypatch.setitem(sys.modules, "own_rule", module)
    own = type("Own", (RECORDS[0].parameters,), {"__module__": "own_rule"})
    monkeypatch.setitem(registry._SYSTEMS, "Own", replace(RECORDS[0], parameters=own))
    monkeypatch.chdir(tmp_path)
    assert call(["new", "--system", "Own"]) == 2
    said = f"hdica: Own has no first study (it would be {tmp_path}/first.yaml): write one of your"
    assert capsys.readouterr().err.startswith(said)
    shutil.copy(_template(RECORDS[0]), tmp_path / TEMPLATE)
    assert call(["new", "--system", "Own"]) == 2
    said = f"hdica: {tmp_path}/first.yaml is a study of {RECORDS[0].name}, not of Own\n"
    assert capsys.readouterr().err == said
    assert [path.name for path in tmp_path.iterdir()] == [TEMPLATE]


def test_the_command_writes_a_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["new", "--system", "OnlineICA"]
    assert call(command) == 0
    file = tmp_path / "online_ica.yaml"
    said = capsys.readouterr().out
    assert re.fullmatch(
        r"online_ica\.yaml: \d+ points, about .* s; hdica run online_ica\.yaml computes them\n",
        said,
    )
    before = file.read_bytes()
    assert read_yaml(file) == {**read_yaml(_template(RECORDS[0])), "study": "online_ica"}
    assert call(["new", "online_ica.yaml", "--system", "SparsePCA"]) == 2
    said = "hdica: online_ica.yaml is there already (--replace writes over it)\n"
    assert capsys.readouterr().err == said
    assert file.read_bytes() == before
    assert call(["new", "online_ica.yaml", "--system", "SparsePCA", "--replace"]) == 0
    assert load_study(file).system == "SparsePCA"


@pytest.mark.parametrize("folder", ["a folder", "results/first", "first.yaml", "a\n# b: \\1"])
def test_commands_in_the_file_name_it_wherever_it_lies(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(folder) / "mine.yaml"
    file.parent.mkdir(parents=True)
    assert call(["new", str(file), "--system", "OnlineICA"]) == 0
    assert load_study(file).study == "mine"
    (typed,) = re.findall(r"^#   hdica validate (.+?)  +checks", file.read_text(), re.MULTILINE)
    if folder.isprintable():
        assert shlex.split(typed) == [str(file)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "hdica: --system is missing (allowed: OnlineICA, "),
        (["--system", "Nothing"], "system = 'Nothing' is not known (allowed: "),
        (["A.yaml", "--system", "OnlineICA"], "FILE = 'A.yaml' is not allowed (lower case"),
        (["a.txt", "--system", "OnlineICA"], "FILE = 'a.txt' is not allowed (lower case"),
        (["absent/a.yaml", "--system", "OnlineICA"], "absent does not exist"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_writes_nothing(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["new", *arguments]) == 2
    found = capsys.readouterr().err
    assert message in found
    assert found.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_on_a_terminal_it_asks(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hdica.cli", "new"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"nothing\n1\n")
    seen = b""
    while chunk := _read(ours):
        seen += chunk
    os.close(ours)
    text = seen.decode()
    assert process.wait(60) == 0, text
    assert "nothing is none of these" in text
    assert "System, a number or a name" in text
    assert f"1  {RECORDS[0].name}: {RECORDS[0].title}" in text
    (written,) = tmp_path.iterdir()
    assert load_study(written).system == RECORDS[0].name


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
