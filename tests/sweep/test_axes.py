from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdica.errors import HdicaError
from hdica.systems import space as ax

finite = st.floats(-1e12, 1e12, allow_nan=False)


@given(finite)
def test_canonical_is_idempotent_and_keeps_twelve_digits(value: float) -> None:
    found = ax.canonical(value)
    assert ax.canonical(found) == found
    assert math.isclose(found, value, rel_tol=5.1e-12, abs_tol=5e-324)
    assert math.copysign(1, found) == 1 or found < 0  # no negative zero


def test_a_range_has_the_decimals_that_one_types() -> None:
    axis = ax.parse_axis({"start": 0.1, "stop": 0.9, "num": 9}, "grid.tau")
    assert ax.distinct(ax.expanded(axis), "grid.tau") == (
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
    )


def test_a_log_range_has_a_constant_ratio() -> None:
    axis = ax.parse_axis({"start": 1e-3, "stop": 10, "num": 5, "spacing": "log"}, "grid.tau")
    assert ax.distinct(ax.expanded(axis), "grid.tau") == (0.001, 0.01, 0.1, 1.0, 10.0)


@given(st.lists(finite, min_size=1, max_size=20))
def test_numbers_are_sorted_and_distinct_or_refused(given_values: list[float]) -> None:
    canonical = [ax.canonical(v) for v in given_values]
    axis = ax.parse_axis(given_values, "grid.tau")
    if len(set(canonical)) < len(canonical):
        with pytest.raises(HdicaError, match=r"appears twice"):
            ax.distinct(ax.expanded(axis), "grid.tau")
    else:
        assert ax.distinct(ax.expanded(axis), "grid.tau") == tuple(sorted(canonical))


def test_words_keep_their_order() -> None:
    axis = ax.parse_axis(["uniform", "laplace"], "grid.source")
    assert ax.distinct(ax.expanded(axis), "") == ("uniform", "laplace")


@pytest.mark.parametrize(
    ("given_axis", "message"),
    [
        ([], "grid.tau is an empty list (at least one value is needed)"),
        ([0.1, "a"], "grid.tau mixes numbers and words (all numbers or all words are needed)"),
        ([True], "grid.tau: value True is not allowed (a number or a word is needed)"),
        ([None], "grid.tau: value None is not allowed (a number or a word is needed)"),
        ([float("nan")], "grid.tau = nan is not allowed (a finite number is needed)"),
        ([10**400], "is not allowed (a finite number is needed)"),
        (0.1, "grid.tau = 0.1 is not allowed (a list of values, or start, stop and num)"),
        ({"start": 0, "stop": 1}, "grid.tau: num is missing"),
        ({"start": 0, "stop": 1, "nmu": 3}, "did you mean 'num'"),
        ({"start": 0, "stop": 1, "num": 1}, "grid.tau: num = 1 is not allowed"),
        ({"start": 0, "stop": 1, "num": 3, "spacing": "log"}, "log spacing needs start and stop"),
    ],
)
def test_what_is_no_axis_is_refused(given_axis: object, message: str) -> None:
    with pytest.raises(HdicaError) as caught:
        ax.parse_axis(given_axis, "grid.tau")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_range_without_extent_repeats_its_value() -> None:
    axis = ax.parse_axis({"start": 1, "stop": 1, "num": 3}, "grid.tau")
    with pytest.raises(HdicaError, match=r"grid.tau: value 1 appears twice"):
        ax.distinct(ax.expanded(axis), "grid.tau")
