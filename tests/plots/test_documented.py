"""The page on plots in Python: its code runs as it stands, in order, and its table is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hdica.plots.accessor import Plots
from hdica.plots.kinds import KINDS

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
    assert sorted(listed) == sorted(kind.name for kind in KINDS)
    assert all(callable(getattr(Plots, name)) for name in listed)


def test_every_option_of_a_figure_is_one_of_its_method() -> None:
    from inspect import signature

    for kind in KINDS:
        options = list(signature(kind.panel).parameters)[1:]
        offered = set(signature(getattr(Plots, kind.name)).parameters) - {"self", "ax", "legend"}
        assert set(options) == offered, kind.name
