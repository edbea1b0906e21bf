"""The pages of docs/ say what is true: their code runs, their links lead somewhere."""

import ast
import builtins
import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import hdica

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        ROOT / "config/README.md",
        ROOT / "data/README.md",
    )
)
STUDIES = (ROOT / "docs/studies.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def said(line: str) -> float | None:
    """The number with which the comment of a line begins, if it does."""
    found = re.search(r"#\s*(-?\d+\.?\d*)[\s,]", f"{line}\n")
    return float(found[1]) if found else None


def run(code: str, space: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Run a block; its lines with a number in their comment, what they give, and that number."""
    found, lines = [], code.splitlines()
    for statement in ast.parse(code).body:
        line = lines[(statement.end_lineno or 1) - 1]
        text, number = ast.unparse(statement), said(line)
        if isinstance(statement, ast.Expr) and number is not None:
            found.append((line, float(eval(text, space)), number))  # noqa: S307 - our own text
        else:
            # A function has its source where Python looks for it, as one in a notebook has.
            name = f"<docs {hash(text)}>"
            linecache.cache[name] = (len(text), None, f"{text}\n".splitlines(keepends=True), name)
            exec(compile(text, name, "exec"), space)  # noqa: S102 - our own text
    return found


def test_a_wrong_number_in_a_comment_is_seen() -> None:
    assert run("a = 2.0\na * 3  # 7, no\nprint", {}) == [("a * 3  # 7, no", 6.0, 7.0)]


@pytest.mark.deep
def test_tour_of_python_runs_from_top_to_bottom_and_gives_its_numbers() -> None:
    space: dict[str, Any] = {}
    examples = blocks((ROOT / "docs/tour.md").read_text(), "python")
    found = [one for example in examples for one in run(example, space)]
    assert len(found) >= 8
    for line, value, number in found:
        assert abs(value / number - 1) < 1e-3, line


def test_tour_of_python_begins_with_the_example_of_the_readme() -> None:
    first, tour = (
        blocks((ROOT / page).read_text(), "python")[0].splitlines()[1]
        for page in ("README.md", "docs/tour.md")
    )
    assert first == tour


@pytest.mark.deep
def test_study_in_python_runs_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = blocks(STUDIES, "python")
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, space)  # noqa: S102 - our own text
    assert printed.getvalue().startswith("first: 132 points, 132 pending")
    assert space["tree"]["chain"]["Q"].sizes["seed"] == 16
    assert space["page"] == Path("results/first/report.html")
    assert space["page"].exists()


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_a_python_block_is_made_in_it_or_before_it(page: str) -> None:
    known = {*dir(builtins), "__name__"}
    for block in blocks((ROOT / page).read_text(), "python"):
        nodes = [*ast.walk(ast.parse(block))]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {one.id for one in names if not isinstance(one.ctx, ast.Load)}
        known |= {one.arg for one in nodes if isinstance(one, ast.arg)}
        known |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        for one in nodes:
            if isinstance(one, ast.Import | ast.ImportFrom):
                known |= {(alias.asname or alias.name).split(".")[0] for alias in one.names}
        assert {one.id for one in names} <= known, block


def test_page_on_studies_has_the_study_of_the_readme() -> None:
    first, _ = blocks(STUDIES, "yaml")
    assert [first] == blocks((ROOT / "README.md").read_text(), "yaml")


def test_other_grids_of_the_page_on_studies_are_those_of_a_study() -> None:
    _, grids = (YAML(typ="safe", pure=True).load(one) for one in blocks(STUDIES, "yaml"))
    rest = {"study": "grids", "system": "OnlineICA", "times": [0, 1], "methods": {"ode": {}}}
    assert hdica.Study(**rest, **grids).plan().points == 9
    inline = re.findall(r"`((?:sample|where): [^`]*)`", STUDIES)
    assert len(inline) == 2
    for text in inline:
        more = YAML(typ="safe", pure=True).load(text)
        grid = {} if "sample" in more else {"grid": {"tau": [0.01, 0.1], "Q0": [0.2, 0.8]}}
        assert hdica.Study(**rest, **grid, **more).plan().points in (3, 256)


def test_page_on_studies_lists_all_that_come_with_hdica() -> None:
    config = YAML(typ="safe", pure=True).load(ROOT / "config/config.yaml")
    built, reproduced = STUDIES.split("`snakemake --cores 2 reproduce`")
    named = [
        {name for row in re.findall(r"^\| (`.*?) \|", part, re.M) for name in row.split("`")[1::2]}
        for part in (built, reproduced)
    ]
    assert named[0] == {*config["studies"], "tiny"}
    after = re.compile(r"[a-z]+\d{4}_")
    assert named[1] == {*config["figures"]} - {name for name in named[0] if after.match(name)}


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page: str) -> None:
    from typer.main import get_command

    from hdica.cli import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    text = (ROOT / page).read_text()
    typed = re.findall(r"^hdica (\w+)", "\n".join(blocks(text, "sh")), re.M)
    assert {*typed, *re.findall(r"`hdica (\w+)[^`]*`", text)} <= known


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for link in links:
        if "://" not in link:
            assert ((ROOT / page).parent / link.split("#")[0]).exists(), link


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_every_page_is_in_the_list_of_pages(page: str) -> None:
    listed = (ROOT / "docs/README.md").read_text()
    name = Path(page).name
    assert name == "README.md" or f"]({name})" in listed
