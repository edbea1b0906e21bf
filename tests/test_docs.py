"""The pages of docs/ say what is true: their code runs, their links lead somewhere."""

import ast
import builtins
import contextlib
import io
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ruamel.yaml import YAML

import hdica
from hdica import plug_in
from hdica.study.study import load_study

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "config/README.md",
        ROOT / "data/README.md",
    )
)
STUDIES = (ROOT / "docs/reference/studies.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


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
    parts = re.split("`snakemake --cores 2 reproduce`|These are built by name", STUDIES)
    built, alone, reproduced = (
        {name for row in re.findall(r"^\| (`.*?) \|", part, re.M) for name in row.split("`")[1::2]}
        for part in parts
    )
    assert built == {*config["studies"], "tiny"}
    after = re.compile(r"[a-z]+\d{4}_")
    assert reproduced == {*config["figures"]} - {name for name in built if after.match(name)}
    every = {path.stem for path in (ROOT / "config/studies").glob("*.yaml")}
    assert alone == every - {*config["studies"], *config["figures"], "tiny"}


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


def test_the_reference_has_every_public_name_and_no_other() -> None:
    text = (ROOT / "docs/reference/api.md").read_text()
    names = dict[str, set[str]]()
    for part in re.split(r"^\.\. currentmodule:: ", text, flags=re.M)[1:]:
        module, _, rest = part.partition("\n")
        names.setdefault(module, set()).update(re.findall(r":: (\w+)$", rest, re.M))
    public = {*hdica.__all__} - {"__version__", "plots"}
    assert names["hdica"] == public
    assert names["hdica.plug_in"] | names["hdica"] >= {*plug_in.__all__}


def test_the_gallery_has_studies_as_they_are_and_their_pictures() -> None:
    gallery = SimpleNamespace(**runpy.run_path(str(ROOT / "docs/gallery.py")))
    entries = json.loads(gallery.ENTRIES.read_text())
    assert gallery.page(entries) == gallery.PAGE.read_text(), "run python docs/gallery.py"
    assert len(entries) > 5
    for name, one in entries.items():
        study = load_study(ROOT / f"config/studies/{name}.yaml")
        again = "snakemake reproduce, then python docs/gallery.py results"
        assert study.content_hash() == one["hash"], f"{name}: {again}"
        assert (gallery.PICTURES / f"{name}.png").exists()
    assert {path.stem for path in gallery.PICTURES.glob("*.png")} == {*entries}
