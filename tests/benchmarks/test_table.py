"""The tables of the pages are renderings of what was measured."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as command
from benchmarks import results
from benchmarks.harness import Row
from benchmarks.machine import machine
from benchmarks.table import hardest, markdown, number, plain

ROOT = Path(__file__).parents[2]
PLACE = {
    "processor": "Abacus",
    "cores": 1,
    "system": "Linux",
    "versions": {"Python": "3.11.7", "gcc": "12.2.0"},
    "date": "2026-01-02",
}
OURS = Row("speed", "n = 10³", "hdica", "ns a step", 0.61, 0.6, 0.62, 1, 1, 1)
RIVAL = Row("speed", "n = 10³", "loop", "ns a step", 12.34, 12, 13, 20.2, 20, 21.5, note="slow")
OTHER = Row("speed", "n = 10³", "C", "ns a step", 0.55, 0.5, 0.6, 0.9, 0.8, 1)
ERRING = Row("speed", "n = 10⁴", "hdica", "ns a step", 1234.5, 1e3, 2e3, 1, 1, 1, error=2e-7)


def entry(*rows: Row) -> dict[str, object]:
    return {"machine": PLACE, "rows": [row.__dict__ for row in rows]}


@pytest.mark.parametrize("name", results.TABLES)
def test_page_shows_what_was_measured(name: str) -> None:
    table = results.TABLES[name]
    text = (ROOT / results.PAGE).read_text()
    measured = results.read(ROOT / "benchmarks/results.json")
    assert measured
    again = results.with_table(text, name, table(measured))
    assert again == text, "run python -m benchmarks --pages"


@pytest.mark.parametrize("picture", results.PICTURES)
def test_picture_is_of_what_was_measured(picture: str) -> None:
    measured = results.read(ROOT / "benchmarks/results.json")
    drawn = results.drawn_of((ROOT / picture).read_text())
    assert drawn == results.digest(measured), "run python -m benchmarks --pages"
    assert results.drawn_of("<svg/>") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.6149, "0.615"), (12.345, "12.3"), (1234.5, "1230"), (0, "0"), (3.2e-6, "3.20e-06")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_markdown_has_a_section_per_benchmark_and_the_machines_below() -> None:
    measured = {"speed": entry(OURS, RIVAL, OTHER), "size": entry(ERRING)}
    head = ["| case | hdica | time of the others over hdica's |", "|---|---|---|"]
    assert markdown(measured, {"speed": "How fast?"}).splitlines() == [
        "### speed",
        "",
        "How fast?",
        "",
        *head,
        "| n = 10³ | 0.61 (0.6 – 0.62) ns a step "
        "| loop 20.2 (20 – 21.5), slow<br>C 0.9 (0.8 – 1) |",
        "",
        "### size",
        "",
        *head,
        "| n = 10⁴ | 1230 (1000 – 2000) ns a step, error 2e-07 |  |",
        "",
        "### Where it was measured",
        "",
        "size, speed: Abacus, 1 core, Linux; Python 3.11.7, gcc 12.2.0; 2026-01-02.",
    ]


def test_each_machine_has_a_line_of_its_own() -> None:
    elsewhere = entry(ERRING) | {"machine": PLACE | {"cores": 2}}
    *_, one, _, two = markdown({"speed": entry(OURS), "size": elsewhere}, {}).splitlines()
    assert [line.split(":")[0] for line in (one, two)] == ["speed", "size"]


def test_question_of_a_benchmark_is_its_docstring_without_the_command() -> None:
    text = results.question("chain")
    assert text.startswith("How much cheaper is a step of the O(1) chain")
    assert "Run:" not in text
    assert '`hdica.simulate(..., method="chain")`' in text
    assert results.question("no_such") == ""


def test_hardest_is_the_worst_case_of_the_benchmarks_with_most_rivals() -> None:
    mine = Row("speed", "n = 10³", "hdica, twice", "ns a step", 0.3, 0.3, 0.3, 0.5, 0.5, 0.5)
    worse = Row("speed", "n = 10⁴", "C", "ns a step", 1e3, 1e3, 1e3, 0.8, 0.7, 0.9, error=1e-3)
    alone = {"size": entry(ERRING, mine)}
    measured = alone | {"speed": entry(OURS, RIVAL, OTHER, mine, ERRING, worse)}
    head, _, *lines = hardest(measured, 2).splitlines()
    assert head.count("|") == 6
    assert lines == [
        "| speed | n = 10⁴ | 1230 (1000 – 2000) ns a step, error 2e-07 "
        "| C | 0.8 (0.7 – 0.9), error 1e-03 |"
    ]
    assert hardest(measured | {"more": measured["speed"]}, 1).splitlines()[2:] == lines


def test_plain_text_shows_every_row_and_names_benchmark_case_and_unit_once() -> None:
    head, first, second, third = plain([OURS, RIVAL, ERRING]).splitlines()
    assert head.index("contestant") == first.index("hdica") == second.index("loop")
    assert first.split("  ")[0] == "speed"
    assert " ".join(second.split()) == "loop: slow 12.3 (12 – 13) 20.2 (20 – 21.5)"
    assert " ".join(third.split()) == "n = 10⁴ hdica 1230 (1000 – 2000) ns a step 1 2e-07"


def test_merging_replaces_one_benchmark_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results.merge(path, "vector", [OURS, RIVAL])
    results.merge(path, "chain", [OURS])
    results.merge(path, "vector", [ERRING])
    found = results.read(path)
    assert list(found) == ["vector", "chain"]
    assert [Row(**row) for row in found["vector"]["rows"]] == [ERRING]
    assert [Row(**row) for row in found["chain"]["rows"]] == [OURS]
    assert found["chain"]["machine"] == json.loads(json.dumps(machine()))


def test_machine_says_processor_cores_and_versions() -> None:
    here = machine()
    assert here["processor"]
    assert here["cores"] >= 1  # type: ignore[operator]
    assert {"Python", "numpy", "numba"} <= set(here["versions"])  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["none", "<!-- /a --> <!-- a -->", "<!-- a --> <!-- a -->"])
def test_text_without_one_pair_of_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="exactly one pair"):
        results.with_table(text, "a", "| |")


def test_command_prints_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    fake = ModuleType("benchmarks.fake")
    fake.rows = lambda small, repeats: asked.append((small, repeats)) or [OURS, RIVAL]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.fake", fake)
    monkeypatch.setattr(command, "REGISTRY", {"fake": "nothing"})
    page, (picture, *_) = tmp_path / results.PAGE, results.PICTURES
    page.parent.mkdir()
    between = "".join(f"<!-- {name} -->\nold\n<!-- /{name} -->\nb\n" for name in results.TABLES)
    page.write_text(f"a\n{between}")
    (tmp_path / "benchmarks").mkdir()
    command.main(["--small", "--repeats", "2"], tmp_path)
    assert asked == [(True, 2)]
    assert plain([OURS, RIVAL]) in capsys.readouterr().out
    assert "old" in page.read_text()
    assert not (tmp_path / picture).exists()
    command.main(["fake", "--write"], tmp_path)
    assert asked[1] == (False, 5)
    written = page.read_text()
    assert written.startswith("a\n<!-- benchmarks: worst cases -->\n| benchmark")
    assert written.endswith("\n<!-- /benchmarks -->\nb\n")
    assert "old" not in written
    assert "### fake" in written
    assert results.drawn_of((tmp_path / picture).read_text())
    page.write_text(written.replace("loop", "old"))
    command.main(["--pages"], tmp_path)
    assert len(asked) == 2
    assert page.read_text() == written


def test_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["no_such"])
    assert "no benchmark no_such" in capsys.readouterr().err
