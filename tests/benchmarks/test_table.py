"""The table that the README prints is the rendering of what was measured."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as command
from benchmarks import results
from benchmarks.harness import Row
from benchmarks.machine import machine
from benchmarks.table import markdown, number, plain

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


def test_readme_shows_what_was_measured() -> None:
    readme = (ROOT / "README.md").read_text()
    measured = results.read(ROOT / "benchmarks/results.json")
    assert measured
    assert results.with_table(readme, measured) == readme


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.6149, "0.615"), (12.345, "12.3"), (1234.5, "1230"), (0, "0"), (3.2e-6, "3.20e-06")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_markdown_has_a_line_per_case_and_the_machine_below() -> None:
    assert markdown({"speed": entry(OURS, RIVAL, OTHER), "size": entry(ERRING)}).splitlines() == [
        "| benchmark | case | hdica | time of the others over hdica's |",
        "|---|---|---|---|",
        "| speed | n = 10³ | 0.61 (0.6 – 0.62) ns a step "
        "| loop 20.2 (20 – 21.5), slow<br>C 0.9 (0.8 – 1) |",
        "| speed | n = 10⁴ | 1230 (1000 – 2000) ns a step, error 2e-07 |  |",
        "",
        "size, speed: Abacus, 1 core, Linux; Python 3.11.7, gcc 12.2.0; 2026-01-02.",
    ]


def test_each_machine_has_a_line_of_its_own() -> None:
    elsewhere = entry(ERRING) | {"machine": PLACE | {"cores": 2}}
    two = markdown({"speed": entry(OURS), "size": elsewhere}).splitlines()[-2:]
    assert [line.split(":")[0] for line in two] == ["speed", "size"]


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


@pytest.mark.parametrize("text", ["none", f"{results.CLOSE} {results.OPEN}", results.OPEN * 2])
def test_text_without_one_pair_of_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="exactly one pair"):
        results.with_table(text, {"speed": entry(OURS)})


def test_command_prints_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    fake = ModuleType("benchmarks.fake")
    fake.rows = lambda small, repeats: asked.append((small, repeats)) or [OURS]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.fake", fake)
    monkeypatch.setattr(command, "REGISTRY", ("fake",))
    readme = tmp_path / "README.md"
    readme.write_text(f"a\n{results.OPEN}\nold\n{results.CLOSE}\nb\n")
    (tmp_path / "benchmarks").mkdir()
    command.main(["--small", "--repeats", "2"], tmp_path)
    assert asked == [(True, 2)]
    assert plain([OURS]) in capsys.readouterr().out
    assert "old" in readme.read_text()
    command.main(["fake", "--write"], tmp_path)
    assert asked[1] == (False, 5)
    written = readme.read_text()
    assert written.startswith(f"a\n{results.OPEN}\n| benchmark")
    assert written.endswith(f"\n{results.CLOSE}\nb\n")
    assert "old" not in written


def test_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["no_such"])
    assert "no benchmark no_such" in capsys.readouterr().err
