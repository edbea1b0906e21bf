"""The page on figures: its table is complete."""

from __future__ import annotations

import re
from pathlib import Path

from hdica.plots.figures import KINDS, Plots

PAGE = (Path(__file__).parents[2] / "docs/tutorials/figures.md").read_text()


def test_its_table_has_every_figure_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(KINDS)
    assert all(callable(getattr(Plots, name)) for name in listed)


def test_every_figure_takes_axes() -> None:
    from inspect import signature

    for name in KINDS:
        assert {"ax", "legend"} <= set(signature(getattr(Plots, name)).parameters), name
