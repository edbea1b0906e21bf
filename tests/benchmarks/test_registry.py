"""Every registered benchmark runs small and gives a positive number for each contestant."""

from importlib import import_module
from itertools import groupby

import pytest

from benchmarks import REGISTRY
from benchmarks.harness import Row, missing
from benchmarks.vector import RIVALS, cases, spoken

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module", params=REGISTRY)
def rows(request: pytest.FixtureRequest) -> tuple[str, list[Row]]:
    module = import_module(f"benchmarks.{request.param}")
    return module.NAME, module.rows(small=True, repeats=2)


def test_every_row_has_positive_times_and_ratios(rows: tuple[str, list[Row]]) -> None:
    name, found = rows
    assert found
    for row in found:
        assert row.benchmark == name
        assert row.case
        assert row.unit
        assert 0 < row.low <= row.median <= row.high, row
        assert 0 < row.ratio_low <= row.ratio <= row.ratio_high, row


def test_ours_comes_first_in_every_case(rows: tuple[str, list[Row]]) -> None:
    for _, case in groupby(rows[1], key=lambda row: row.case):
        first, *others = case
        assert first.contestant.startswith("hdica")
        assert (first.ratio, first.ratio_low, first.ratio_high) == (1, 1, 1)
        assert len({row.contestant for row in others}) == len(others) > 0


def test_vector_runs_every_rival_that_is_installed() -> None:
    installed = [rival.name for rival in RIVALS if not missing(*rival.needs)]
    assert {"NumPy loop", "Numba loop with Generator"} <= set(installed)
    found = import_module("benchmarks.vector").rows(small=True, repeats=1)
    for _, case in groupby(found, key=lambda row: row.case):
        assert [row.contestant for row in case] == ["hdica", *installed]


def test_cases_of_vector_are_dimensions_from_a_thousand_to_a_million() -> None:
    assert {n for _, n in cases(small=False)} == {10**3, 10**4, 10**6}
    assert [spoken(n) for n in (100, 5000, 10**3, 10**6)] == ["100", "5000", "10³", "10⁶"]
