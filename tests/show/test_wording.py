"""Sentences of findings: every pattern once, with its number, its unit and its grammar."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from hdica.show.finding import Finding, Form, grouped, verdict_of
from hdica.show.wording import PATTERNS, of_points, sentence, table_of
from hdica.show.words import STEPS, symbol, words
from tests.report.shown import plain

LIMIT = words("the limit")
SHARE = words("the share")


def mean(value: float = 0.812, verdict: str = "", **more: Any) -> Finding:
    """A mean beside its limit 0.81."""
    base = {"error": 0.003, "predicted": 0.81, "theory": LIMIT, "verdict": verdict}
    return Finding(words("mean ") + symbol("Q"), value=value, **base | more)


def power(place: dict[str, float], value: float, error: float, **more: Any) -> Finding:
    """A power of n."""
    how = {"form": Form.POWER, "base": symbol("n")}
    return Finding(words("the sd"), place, value, error, **how | more)


def at(*taus: float) -> list[dict[str, float]]:
    return [{"tau": tau, "n": 400} for tau in taus]


CASES = {
    "one value": (
        [Finding(words("the critical step size"), {}, 0.0591302, digits=6)],
        "The critical step size is 0.0591302.",
    ),
    "a value with its place": (
        [Finding(words("the time"), {"tau": 0.1, "t": 3.0}, 12.3, 0.4, unit=words("steps"))],
        "The time is 12.30 ± 0.40 steps at τ = 0.1, t = 3.",
    ),
    "an interval with its unit": (
        [Finding(words("the escape time"), {}, 3.21, low=3.0, high=3.4, unit=STEPS)],
        "The escape time is 3.21 [3, 3.4] n³ steps.",
    ),
    "a large number with its interval": (
        [Finding(words("the number of samples"), {}, 1081895.0, low=987310.0, high=1175928.0)],
        "The number of samples is (1.08 [0.987, 1.18]) × 10⁶.",
    ),
    "a large ratio, and a large count": (
        [Finding(words("the ratio"), {"n": k}, v) for k, v in ((1, 6187583.2), (2, 1227000.0))],
        "The ratio is 6.188 × 10⁶ at n = 1 and 1 227 000 at n = 2.",
    ),
    "two values at a common place": (
        [mean(v, place=p, predicted=np.nan) for v, p in zip((0.5, 0.8), at(0.1, 0.2), strict=True)],
        "At n = 400 mean Q is 0.5000 ± 0.0030 at τ = 0.1 and 0.8000 ± 0.0030 at τ = 0.2.",
    ),
    "a range of values": (
        [mean(v, place={"tau": v}) for v in (0.5, 0.8, 0.2)],
        "Mean Q lies between 0.2000 ± 0.0030 at τ = 0.2 (the limit: 0.81) and "
        "0.8000 ± 0.0030 at τ = 0.8 (the limit: 0.81).",
    ),
    "a range of values, the first of equal ones, of what is finite": (
        [
            Finding(words("the time"), {"tau": tau}, value)
            for tau, value in ((0.1, 2.0), (0.2, np.inf), (0.3, 7.0), (0.4, 7.0), (0.5, 2.0))
        ],
        "The time lies between 2 at τ = 0.1 and 7 at τ = 0.3.",
    ),
    "one agrees": (
        [mean(0.812, "agrees", place={"tau": 0.05})],
        "Mean Q is 0.8120 ± 0.0030 at τ = 0.05, in agreement with the limit (0.81).",
    ),
    "a difference that is none": (
        [Finding(words("the gap"), {}, 0.01, 0.02, predicted=0.0, verdict="agrees")],
        "The gap is 0.010 ± 0.020, in agreement with theory.",
    ),
    "one differs": (
        [mean(0.9, "differs")],
        "Mean Q is 0.9000 ± 0.0030 and differs from the limit (0.81).",
    ),
    "one is undecided": (
        [mean(0.9, "undecided", seeds=37.2)],
        "Mean Q is 0.9000 ± 0.0030; whether it agrees with the limit (0.81) is undecided; about 38 "
        "seeds would decide.",
    ),
    "nothing is decided": (
        [Finding(SHARE, value=3.0, unit=words("%"), verdict="undecided", evidence="why")],
        "The share is 3 %, which decides nothing (why).",
    ),
    "all agree": (
        [mean(v, "agrees", place=p) for v, p in zip((0.81, 0.815), at(0.1, 0.2), strict=True)],
        "Mean Q agrees with the limit in both comparisons, within 0.0050 ± 0.0030 at τ = 0.2, "
        "n = 400.",
    ),
    "some are undecided": (
        [mean(0.81, v, place={"tau": k}) for k, v in enumerate(("agrees", "undecided", "agrees"))],
        "Mean Q agrees with the limit in 2 of 3 comparisons, and 1 is undecided.",
    ),
    "some differ": (
        [mean(0.81 + k / 10, v, place={"tau": k}) for k, v in enumerate(("agrees", "differs"))],
        "Mean Q differs from the limit in 1 of 2 comparisons, by up to 0.1000 ± 0.0030 at τ = 1; "
        "1 agrees.",
    ),
    "all are undecided": (
        [mean(0.81, "undecided", place={"tau": k}, seeds=20 + k) for k in range(3)],
        "Whether mean Q agrees with the limit is undecided in all 3 comparisons; about 22 seeds "
        "would decide all.",
    ),
    "largest": (
        [mean(0.9, place={"tau": 0.1}, form=Form.LARGEST)],
        "Mean Q is largest at τ = 0.1: 0.9000 ± 0.0030 (the limit: 0.81).",
    ),
    "a power": (
        [power({}, -0.52, 0.03, predicted=-0.5, verdict="agrees")],
        "The sd falls as n−0.520 ± 0.030, in agreement with n−1/2.",
    ),
    "a power that differs": (
        [power({"tau": 0.1}, -0.4, 0.01, predicted=-0.5, verdict="differs")],
        "The sd falls as n−0.400 ± 0.010 at τ = 0.1 and differs from n−1/2, which is expected.",
    ),
    "a power that is undecided": (
        [power({}, -0.4, 0.2, predicted=-0.5, verdict="undecided", seeds=90)],
        "The sd falls as n−0.40 ± 0.20; whether it agrees with n−1/2 is undecided; about 90 seeds "
        "would decide.",
    ),
    "two powers at one place": (
        [power({"tau": 0.1, "n": n}, 0.5, 0.03) for n in (1, 2)],
        "At τ = 0.1 the sd grows as n0.500 ± 0.030 at n = 1 and as n0.500 ± 0.030 at n = 2.",
    ),
    "two powers beside what is expected": (
        [
            power({"n": n}, v, 0.03, predicted=-0.5, verdict=verdict, seeds=90)
            for n, v, verdict in ((1, -0.51, "agrees"), (2, -0.62, "undecided"))
        ],
        "The sd falls as n−0.510 ± 0.030 at n = 1 (expected: n−1/2, in agreement) and as "
        "n−0.620 ± 0.030 at n = 2 (expected: n−1/2, undecided).",
    ),
    "many powers": (
        [power({"tau": k}, -k / 4, 0.03) for k in (1, 2, 3, 4)],
        "The sd goes as powers from n−1.000 ± 0.030 at τ = 4 to n−0.250 ± 0.030 at τ = 1.",
    ),
    "a power that begins like one half": (
        [power({}, -0.56, 0.03, predicted=-0.55)],
        "The sd falls as n−0.560 ± 0.030, where n−0.55 is expected.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_pattern_is_a_sentence(name: str) -> None:
    findings, expected = CASES[name]
    (group,) = grouped(findings)
    assert plain([sentence(group)]) == [expected]


def test_every_pattern_is_used_above() -> None:
    """A pattern that nothing makes is a door to nowhere."""
    texts = [plain([sentence(grouped(some)[0])])[0].lower() for some, _ in CASES.values()]
    for name, pattern in PATTERNS.items():
        parts = [re.escape(part) for part in re.split(r"\{\w+\}", pattern)]
        wanted = re.compile(".*".join(parts))
        assert any(wanted.search(text) for text in texts), name


def test_numbers_of_very_different_size_are_compared_in_percent() -> None:
    times = [
        Finding(
            words("the time"),
            {"n": n},
            (1 + 0.2 / n) * n,
            n / 50,
            predicted=float(n),
            verdict="agrees",
        )
        for n in (10, 1000)
    ]
    assert plain([sentence(tuple(times))]) == [
        "The time agrees with theory in both comparisons, within 2 % at n = 10."
    ]


def test_what_concerns_all_points_says_of_which_it_speaks_while_some_are_missing() -> None:
    group = tuple(mean(0.81, "agrees", place=p) for p in at(0.1, 0.2))
    assert "points that are done" not in sentence(group)
    with of_points(12, 40):
        assert "among the 12 of 40 points that are done" in sentence(group)
        largest = (mean(0.9, place={"tau": 0.1}, form=Form.LARGEST),)
        assert (
            "largest among the 12 of 40 points that are done, at τ" in plain([sentence(largest)])[0]
        )


def test_what_a_user_wrote_stays_text() -> None:
    hostile = Finding(words("mean <b>x</b>"), {"rule": "<script>"}, 1.0)
    text = sentence((hostile,))
    assert "<script>" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


def test_the_table_has_what_does_not_agree_first_and_keys_to_sort_by() -> None:
    group = [mean(0.81, v, seeds=s) for v, s in (("agrees", np.nan), ("undecided", 30.0))]
    table = table_of([*group, mean(0.9, "differs", evidence="p &lt; 10⁻⁴")])
    assert [row[4] for row in table.rows] == ["differs", "undecided", "agrees"]
    assert table.rows[0][5] == "p &lt; 10⁻⁴"
    assert table.rows[1][5] == "30 seeds would decide"
    assert [key[2] for key in table.keys] == [0.9, 0.81, 0.81]
    assert verdict_of(group) == "undecided"
