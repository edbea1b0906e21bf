"""The page on plots in Python: its code runs as it stands, in order, and its table is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hdica.plots.figures import KINDS, Plots

PAGE = (Path(__file__).parents[2] / "docs/python.md").read_text()


@pytest.mark.deep
def test_its_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, space)  # noqa: S102 - our own text
    assert {path.name for path in tmp_path.glob("*.pdf")} == {"runs.pdf", "both.pdf"}
    assert int(space["when"]["reached"]) + int(space["when"]["never"]) == 32
    assert "bias" in space["tree"].hdica.figures


def test_its_table_has_every_figure_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(KINDS)
    assert all(callable(getattr(Plots, name)) for name in listed)


def test_every_figure_takes_axes() -> None:
    from inspect import signature

    for name in KINDS:
        assert {"ax", "legend"} <= set(signature(getattr(Plots, name)).parameters), name
