"""The README and the configuration's manual say what is true."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import hdica
from hdica.ingredients import sources
from hdica.sweep.study.study import Study, study_from
from hdica.systems.projected import steady as steady_methods

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("tables", ROOT / "docs/tables.py")
assert _SPEC is not None
tables = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tables)  # type: ignore[union-attr]
README = (ROOT / "README.md").read_text()
MANUAL = (ROOT / "config/README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_example_is_five_lines_and_prints_a_small_distance_and_tau_c() -> None:
    example, *_ = blocks("python")
    assert len(example.splitlines()) == 5
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})  # noqa: S102 - our own text
    distance, critical = printed.getvalue().replace("[", " ").replace("]", " ").split()[:2]
    assert 0 < float(distance) < 0.1
    assert abs(float(critical) - 0.0591301670315968) < 1e-8


def test_escape_times_of_the_second_example_are_those_in_its_comments() -> None:
    define, *lines = blocks("python")[1].splitlines()
    space: dict[str, object] = {"hdica": hdica}
    exec(define, space)  # noqa: S102 - our own text
    assert len(lines) == 2
    for line in lines:
        said = float(line.split("#")[1].split()[0])
        assert abs(eval(line, space) / said - 1) < 1e-3  # noqa: S307 - our own text


def test_study_in_python_runs_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, example = blocks("python")
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"hdica": hdica}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, space)  # noqa: S102 - our own text
    assert printed.getvalue().startswith("first: 132 points, 132 pending")
    assert space["tree"]["chain"]["Q"].sizes["seed"] == 16
    assert space["page"] == Path("results/first/report.html")
    assert space["page"].exists()


def test_study_example_is_valid() -> None:
    (example,) = blocks("yaml")
    assert study_from(YAML(typ="safe", pure=True).load(example)).study == "first"


def test_commands_of_the_examples_exist() -> None:
    from typer.main import get_command

    from hdica.cli import app

    named = set(re.findall(r"^hdica (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    assert {"validate", "plan", "run", "query", "report"} <= named <= known


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_table_is_the_one_that_the_code_makes(name: str) -> None:
    file, table = tables.TABLES[name]
    text = (ROOT / file).read_text()
    assert tables.filled(text, name, table()) == text, "run python docs/tables.py"


def test_manual_lists_every_key_of_a_study() -> None:
    for key in Study.model_fields:
        assert re.search(rf"^\|[^|]*`{key}`", MANUAL, re.MULTILINE), key


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_nothing_is_promised_of_steady_states_and_errors_that_is_not_kept() -> None:
    """Searches find what they find, and nodes are as accurate as their integrand is smooth."""
    texts = [README, hdica.limit.__doc__, hdica.fixed_points.__doc__, sources.Source.__doc__]
    texts += [(ROOT / "CHANGELOG.md").read_text(), steady_methods.fixed_points.__doc__]
    said = " ".join(" ".join(text or "" for text in texts).split()).lower()
    for promise in ("every steady state", "all steady states", "all its steady states"):
        assert promise not in said
    assert "all fixed points" not in said
    assert "(the solver's own error)" not in said
    assert "1e-13 on smooth integrands" not in said
    assert "what is left of the error of the averages of f" in said
    assert "refined until" in said
