"""Every entry of docs/reference/errata.md has its test, and every test its entry."""

import re
from pathlib import Path

from tests.errata import (
    test_li_jordan_2021,
    test_rattray_2002,
    test_rattray_2002_trapping,
    test_reduce_and_conquer_2025,
    test_wang_lu_2016,
    test_wang_lu_2017,
)

PAPERS = (
    ("2017", (test_wang_lu_2017,)),
    ("2016", (test_wang_lu_2016,)),
    ("2002", (test_rattray_2002, test_rattray_2002_trapping)),
    ("2021", (test_li_jordan_2021,)),
    ("2025", (test_reduce_and_conquer_2025,)),
)
PAGE = (Path(__file__).parents[2] / "docs/reference/errata.md").read_text()


def rows(part):
    """Rows of the tables of one paper, without their heads."""
    lines = [line for line in part.splitlines() if line.startswith("|")]
    rules = {i for i, line in enumerate(lines) if set(line) <= set("|-")}
    assert rules
    return [line for i, line in enumerate(lines) if not {i, i + 1} & rules]


def names_in(module):
    return {name for name in vars(module) if name.startswith("test_")}


def test_every_entry_names_a_test_and_every_test_is_named():
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    for part, (year, modules) in zip(parts, PAPERS, strict=True):
        assert year in part.splitlines()[0]
        named = [re.findall(r"`(test_\w+)`", row) for row in rows(part)]
        assert all(named)
        flat = [name for names in named for name in names]
        assert set(flat) == set().union(*map(names_in, modules))
        assert len(flat) == len(set(flat))


def test_the_page_begins_with_the_numbers_of_its_entries():
    parts = re.split(r"^### ", PAGE, flags=re.MULTILINE)
    counts = dict.fromkeys(("Corrections", "To be read with care", "Correct as printed"), 0)
    for part in parts[1:]:
        counts[part.splitlines()[0]] += len(rows(part))
    assert [int(one) for one in re.findall(r"\b\d+\b", PAGE.split("\n\n")[1])] == [*counts.values()]


def test_rows_have_as_many_cells_as_their_table():
    head = 0
    lines = PAGE.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following.startswith("|---"):
            head = line.count("|")
        elif line.startswith("|"):
            assert line.count("|") == head
