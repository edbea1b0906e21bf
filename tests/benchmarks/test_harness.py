"""Who runs when, and what is computed from the times: contestants and the clock are made up."""

import itertools

import pytest

from benchmarks.harness import Contestant, missing, present, race


class Clock:
    """A clock that only the contestants move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def contestant(self, name: str, *seconds: float, **about: object) -> Contestant:
        """Takes the given seconds, one call after the other; the first call is the warm-up."""
        spent = itertools.chain(seconds, itertools.repeat(seconds[-1]))

        def run() -> None:
            self.calls.append(name)
            self.now += next(spent)

        return Contestant(name, run, **about)  # type: ignore[arg-type]


def test_contestants_warm_up_and_then_take_turns_in_alternating_order() -> None:
    clock = Clock()
    contestants = [clock.contestant(name, 1.0) for name in ("ours", "b", "c")]
    race("x", "y", contestants, unit="s", scale=1.0, repeats=3, clock=clock)
    warm, first, second, third = (clock.calls[i : i + 3] for i in range(0, 12, 3))
    assert warm == first == third == ["ours", "b", "c"]
    assert second == ["c", "b", "ours"]


def test_warm_up_is_not_timed() -> None:
    clock = Clock()
    (row,) = race(
        "x", "y", [clock.contestant("ours", 99, 2)], unit="s", scale=1.0, repeats=3, clock=clock
    )
    assert (row.median, row.low, row.high) == (2, 2, 2)


def test_times_are_per_unit_of_work_in_the_unit() -> None:
    clock = Clock()
    ours = clock.contestant("ours", 0, 1, 2, 3, 4, 5, work=10.0)
    (row,) = race("x", "y", [ours], unit="ms", scale=1e3, repeats=5, clock=clock)
    assert (row.low, row.median, row.high) == pytest.approx((200, 300, 400))
    assert (row.ratio, row.ratio_low, row.ratio_high) == (1, 1, 1)
    assert row.unit == "ms"


def test_ratio_is_taken_within_each_repeat() -> None:
    # A machine that slows down tenfold: the times spread, the ratios do not.
    clock = Clock()
    ours = clock.contestant("ours", 0, 1, 3, 10, work=2.0)
    rival = clock.contestant("rival", 0, 4, 12, 40, work=4.0, error=1e-3, note="slow")
    row = race("x", "y", [ours, rival], unit="s", scale=1.0, repeats=3, clock=clock)[1]
    assert (row.ratio_low, row.ratio, row.ratio_high) == pytest.approx((2, 2, 2))
    assert (row.low, row.median, row.high) == pytest.approx((2, 3, 6.5))
    assert (row.benchmark, row.case, row.contestant) == ("x", "y", "rival")
    assert (row.error, row.note) == (1e-3, "slow")


def test_what_is_missing_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert missing() == missing("numpy", "numba") == ""
    assert missing("numpy", "no_such_module") == "no_such_module is not installed"
    monkeypatch.setenv("PATH", "")
    assert missing("gcc", "no_such_module") == "gcc and no_such_module are not installed"
    assert present("NumPy loop", "numpy")
    assert capsys.readouterr().out == ""
    assert not present("C kernel", "gcc")
    assert capsys.readouterr().out == "left out: C kernel (gcc is not installed)\n"
