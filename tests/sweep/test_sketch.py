"""First studies of every system: they are valid, cost seconds, and say what they are."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hdica.analysis.registry import asked_for
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.inputs.plain_yaml import read_yaml
from hdica.process import speed
from hdica.sweep.run.plan import plan
from hdica.sweep.study.fitting import SAVED
from hdica.sweep.study.sketch import LACKING, SECONDS, Sizes, questions, sketch
from hdica.sweep.study.sketch_text import WIDTH, commented
from hdica.sweep.study.study import load_study, study_from
from hdica.systems.registry import systems
from hdica.systems.system import System

STUDIES = Path(__file__).parents[2] / "config" / "studies"
RECORDS = [one for name, one in systems().items() if name != "Toy"]
possible = cache(lambda name: questions(systems()[name]))
"""What can be asked of a system, which takes seconds to find."""
of_every_system = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)


@pytest.fixture
def usual_pace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter of a machine of today, however busy the one is on which tests run."""
    monkeypatch.setattr(speed, "_interpreted", lambda: 0.6 * speed.LOOP)
    speed.pace.cache_clear()
    yield
    speed.pace.cache_clear()


@pytest.mark.deep
@pytest.mark.usefixtures("usual_pace")
@of_every_system
def test_whatever_can_be_asked_is_a_study_of_seconds_that_says_what_it_is(
    record: System, tmp_path: Path
) -> None:
    asked = possible(record.name)
    assert set(record.analyses) & set(asked), "an analysis that suits the system can be asked"
    for analysis in asked:
        content = sketch(record, analysis, "probe")
        assert plan(study_from(content)).seconds <= SECONDS
        file = tmp_path / "probe.yaml"
        text = commented(record, content, "probe.yaml")
        file.write_text(text, encoding="utf-8")
        assert read_yaml(file) == content
        assert load_study(file) == study_from(content)
        comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
        assert max(map(len, comments)) <= WIDTH
        for method in record.methods:
            assert " ".join(method.about.split()) in re.sub(r"\s*\n *#\s*", " ", text)


def test_densities_and_support_are_asked_where_methods_keep_them() -> None:
    for record in RECORDS:
        keeping = any(
            {"density", "tpr"} <= {o.name for o in m.outputs_of(SAVED)} for m in record.methods
        )
        assert ({"densities", "support"} <= set(possible(record.name))) == keeping


@pytest.mark.deep
@of_every_system
def test_what_cannot_be_asked_is_refused_for_a_reason_that_is_true(
    record: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = possible(record.name)
    # Found once for all tests of this file.
    monkeypatch.setattr("hdica.sweep.study.sketch.questions", lambda one: known)
    monkeypatch.setattr("hdica.sweep.study.sketch._possible", lambda one, name: None)
    written = [read_yaml(path) for path in STUDIES.glob("*.yaml")]
    there = {key for one in written if one["system"] == record.name for key in one["analysis"]}
    for name, kind in asked_for().items():
        if name in known:
            continue
        with pytest.raises(
            HdicaError, match=f"^--ask {name} is not allowed for {record.name} "
        ) as e:
            sketch(record, name, "probe")
        why = str(e.value).partition(" (")[2].partition(";")[0]
        if why == f"{record.name} lacks {LACKING}":
            # No study of it shows that the system does have it.
            assert name not in there or not record.controls
        elif why.startswith("a study has to set its "):
            keys = why.removeprefix("a study has to set its ").split(" and ")
            assert all(kind.model_fields[key].is_required() for key in keys)
        else:
            assert why == "analysis.success: it needs below or above (exactly one)"


@of_every_system
def test_what_suits_a_system_is_the_first_question(record: System) -> None:
    first, *_ = possible(record.name)
    assert first in record.analyses


def test_what_does_not_depend_on_a_parameter_is_not_asked_over_it() -> None:
    for record in RECORDS:
        known = {method.name: method for method in record.methods}
        for analysis in possible(record.name):
            content = sketch(record, analysis, "probe", Sizes(points=2, seeds=2))
            settings = content["analysis"][analysis]
            for key in (settings[k] for k in ("x", "y") if k in settings):
                axis = next(k for k in content["grid"] if k.replace(".", "_") == key)
                field = record.parameters.aliases.get(axis, (axis.split(".")[0],))[0]
                used = [known[name] for name in content["methods"]]
                assert any(field not in method.ignores for method in used)


def test_odds_are_no_mean_that_is_predicted_too() -> None:
    content = sketch(systems()["SparsePCA"], "phase", "probe", Sizes(points=2, seeds=2))
    assert "odds" not in content["analysis"]["phase"]
    content["methods"]["steady_diffusion"] = {"n": [100]}
    content["analysis"]["phase"]["odds"] = "steady_diffusion"
    with pytest.raises(HdicaError, match="odds"):
        study_from(content)


def test_sizes_that_are_given_are_kept() -> None:
    record = next(one for one in RECORDS if {"phase", "convergence"} <= set(possible(one.name)))
    sizes = Sizes(n=(50, 70), seeds=3, points=4, until=2.5)
    content = sketch(record, "phase", "probe", sizes)
    assert [axis["num"] for axis in content["grid"].values()] == [4, 4]
    assert content["times"]["stop"] == 2.5
    stochastic = [m for m in content["methods"].values() if "seeds" in m]
    assert stochastic == [{"n": [50, 70], "seeds": 3}]
    with pytest.raises(HdicaError, match="n = 2 is not allowed"):
        sketch(record, "phase", "probe", Sizes(n=(2,)))


@pytest.mark.deep
def test_the_command_writes_a_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["new", "--system", "OnlineICA", "--ask", "phase"]
    assert call([*command, "--n", "50", "--seeds", "2"]) == 0
    file = tmp_path / "online_ica_phase.yaml"
    assert capsys.readouterr().out.startswith("online_ica_phase.yaml: ")
    before = file.read_bytes()
    assert call(["validate", str(file)]) == 0
    capsys.readouterr()
    assert call(command) == 2
    said = "hdica: online_ica_phase.yaml is there already (--replace writes over it)\n"
    assert capsys.readouterr().err == said
    assert file.read_bytes() == before
    assert call([*command, "--replace"]) == 0
    assert file.read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "hdica: --system is missing (allowed: OnlineICA, "),
        (["--system", "Nothing"], "system = 'Nothing' is not known (allowed: "),
        (
            ["--system", "OnlineICA", "--ask", "phse"],
            "--ask phse is not allowed for OnlineICA (did you mean 'phase'? allowed: ",
        ),
        (["--system", "OnlineICA", "--n", "1e3"], "--n '1e3' is not allowed (whole numbers, for"),
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
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"nothing\n1\nphase\n")
    seen = b""
    while chunk := _read(ours):
        seen += chunk
    os.close(ours)
    text = seen.decode()
    assert process.wait(60) == 0, text
    assert "nothing is none of these" in text
    assert text.index("System, a number or a name") < text.index("What is asked, a number or a")
    assert f"1  {RECORDS[0].name}: {RECORDS[0].title}" in text
    (written,) = tmp_path.iterdir()
    assert load_study(written).system == RECORDS[0].name
    assert "phase" in written.name


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
