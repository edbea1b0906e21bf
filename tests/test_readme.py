"""The README and the configuration's manual say what is true."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import hdica
from hdica.analysis.registry import settings_classes
from hdica.ingredients import sources
from hdica.study.study import Study
from hdica.systems.projected import steady as steady_methods

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("tables", ROOT / "docs/tables.py")
assert _SPEC is not None
tables = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tables)  # type: ignore[union-attr]
README = (ROOT / "README.md").read_text()
PAGES = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]
MANUAL = (ROOT / "config/README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_five_lines_of_python_print_what_is_said() -> None:
    (example,) = blocks("python")
    assert len(example.splitlines()) == 5
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})  # noqa: S102 - our own text
    distance, critical = map(float, printed.getvalue().split())
    said = re.search(r"They print ([\d.]+), .* and ([\d.]+), the critical", README, re.DOTALL)
    assert said
    assert f"{distance:.3f}" == said[1]
    assert f"{critical:.4f}" == said[2]
    assert abs(critical - 0.0591301670315968) < 1e-8


def test_study_example_has_the_points_that_are_said() -> None:
    (example,) = blocks("yaml")
    study = hdica.Study(**YAML(typ="safe", pure=True).load(example))
    said = re.search(r"# (\d+) points", "".join(blocks("sh")))
    assert said
    assert str(study.plan()).startswith(f"first: {said[1]} points")


@pytest.mark.deep
def test_study_example_answers_its_question_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study as it stands, with fewer starts, dimensions and seeds."""
    (example,) = blocks("yaml")
    spec = YAML(typ="safe", pure=True).load(example)
    spec["grid"]["Q0"]["num"] = 5
    spec["methods"]["chain"] = {"n": [100], "seeds": 4}
    monkeypatch.chdir(tmp_path)
    study = hdica.Study(**spec)
    page = study.report(study.run()).read_text()
    assert "The step size τ<sub>c</sub> up to which online ICA learns is 0.0591302" in page
    assert "phase_success" in page


def test_readme_is_at_most_nine_hundred_words() -> None:
    assert len(README.split()) <= 900


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_table_is_the_one_that_the_code_makes(name: str) -> None:
    file, table = tables.TABLES[name]
    text = (ROOT / file).read_text()
    assert tables.filled(text, name, table()) == text, "run python docs/tables.py"


def test_the_manual_says_every_key_of_an_analysis() -> None:
    table = tables.analyses_table()
    for name, kind in settings_classes().items():
        row = next(line for line in table.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{key}`: " in row for key in kind.model_fields)


def test_manual_lists_every_key_of_a_study() -> None:
    for key in Study.model_fields:
        assert re.search(rf"^\|[^|]*`{key}`", MANUAL, re.MULTILINE), key


def test_nothing_is_promised_of_steady_states_and_errors_that_is_not_kept() -> None:
    """Searches find what they find, and nodes are as accurate as their integrand is smooth."""
    texts = [
        README,
        *PAGES,
        hdica.limit.__doc__,
        hdica.fixed_points.__doc__,
        sources.Source.__doc__,
    ]
    texts += [(ROOT / "CHANGELOG.md").read_text(), steady_methods.fixed_points.__doc__]
    said = " ".join(" ".join(text or "" for text in texts).split()).lower()
    for promise in ("every steady state", "all steady states", "all its steady states"):
        assert promise not in said
    assert "all fixed points" not in said
    assert "(the solver's own error)" not in said
    assert "1e-13 on smooth integrands" not in said
    assert "what is left of the error of the averages of f" in said
    assert "refined until" in said
