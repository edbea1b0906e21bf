from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hdica
from hdica.errors import HdicaError
from hdica.systems import values as ax

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
        ([True], "grid.tau: value True is not allowed (a number, a word, or a mapping with a"),
        ([None], "grid.tau: value None is not allowed (a number, a word, or a mapping with a"),
        ([{"student": 9}], "value {'student': 9} is not allowed (a number, a word, or a mapping"),
        ([{"label": "", "student": 9}], "label '' is not allowed (a text of 1 to 100 letters)"),
        ([{"label": 9, "student": 9}], "label 9 is not allowed (a text of 1 to 100 letters)"),
        ([{"label": "a\n", "student": 9}], "is not allowed (printable letters)"),
        ([{"label": "t9"}], "grid.tau: label 't9' stands alone (what it is the label of is needed"),
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


LAWS = ["uniform", {"label": "t9", "student": 9}]
STEPS = {"steps": {"times": [1.0], "values": [0.1, 0.02]}}
RATES = [0.05, {"label": "annealed", "value": "0.1/(1 + t)"}, {"label": "two steps", **STEPS}]


def labelled(laws: list[object], rates: list[object]) -> hdica.Study:
    return hdica.Study(
        study="labels", system="OnlineICA", grid={"source": laws, "tau": rates}, times=[0, 1, 5],
        methods={"chain": {"n": 50, "seeds": 2}, "ode": {}},
    )  # fmt: skip


def test_a_label_stands_for_a_law_or_a_schedule(tmp_path) -> None:
    study, out = labelled(LAWS, RATES), tmp_path / "labels.zarr"
    study.run(out=out)
    results = hdica.open_results(out)
    for law, source in (("uniform", "uniform"), ("t9", {"student": 9})):
        for rate, tau in (("0.05", 0.05), ("annealed", "0.1/(1 + t)"), ("two steps", STEPS)):
            ica = hdica.OnlineICA(tau=tau, source=source)
            runs = hdica.simulate(ica, n=50, times=[0, 1, 5], seeds=2, method="chain").Q
            assert np.array_equal(results["chain"].Q.sel(source=law, tau=rate)[0], runs)
            path = hdica.limit(ica, times=[0, 1, 5], method="ode").Q
            assert np.array_equal(results["ode"].Q.sel(source=law, tau=rate), path)
    # What is stored can be read back, and a label is no part of what a point is.
    assert study.spec == type(study.spec).model_validate(study.spec.model_dump(mode="json"))
    renamed = labelled([{"label": "Student", "student": 9}, "uniform"], RATES[::-1])
    assert renamed.plan(out=out).pending == 0
    assert renamed.spec.content_hash() != study.spec.content_hash()
    other = labelled([*LAWS, {"label": "t8", "student": 8}], RATES)
    assert other.plan(out=out).pending == 3 * 3
    under_the_same_label = labelled(["uniform", {"label": "t9", "student": 8}], RATES)
    assert under_the_same_label.plan(out=out).pending == 3 * 3


def test_labels_vary_in_a_call_too() -> None:
    ica = hdica.OnlineICA(tau=0.1)
    found = hdica.limit(ica, times=[0, 5], method="ode", over={"source": LAWS, "tau": RATES}).Q
    alone = hdica.limit(hdica.OnlineICA(tau=STEPS, source={"student": 9}), times=[0, 5]).Q
    assert np.array_equal(found.sel(source="t9", tau="two steps"), alone)
    again = [*LAWS, {"label": "uniform", "student": 5}]
    with pytest.raises(HdicaError, match="source: value uniform appears twice"):
        hdica.limit(ica, times=[0, 5], over={"source": again})
