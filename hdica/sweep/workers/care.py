"""How long a point may take, and how a block is computed in which points took too long."""

from __future__ import annotations

from dataclasses import dataclass

BUDGET = 300.0
"""Seconds of processor time that any point may take: no honest one that the plan calls short needs
as many, not even with code that is compiled first. A density that is refined as far as it is
allowed to takes a minute or two."""
FACTOR = 100.0
"""How many times longer than the plan says a point may take where that is more. The cost models
know nothing of a user's formulas, which may cost a hundred times what a polynomial does."""


@dataclass(frozen=True)
class Care:
    """What a block's computation has to mind."""

    budget: float = BUDGET  # seconds of a processor that any point may take, or wait idly
    singly: bool = False  # one by one where the method could compute points together
    apart: bool = False  # in a process of its own, because the block has ended others
    without: tuple[tuple[int, str], ...] = ()  # places left pending, and why
    alarmed: tuple[int, ...] = ()  # places at which the clock has ended a process before

    def limit(self, seconds: float) -> float:
        """Seconds that something may take of which the plan says ``seconds``."""
        return max(self.budget, FACTOR * seconds)


USUAL = Care()


def over_budget(limit: float, planned: float) -> str:
    """Why a point failed that has taken too long; the same wherever it did."""
    return (
        f"over its budget: {limit:.6g} s of processor time were not enough, and the plan says "
        f"{planned:.2g} s (take this value out, or raise cluster.budget and --retry-failed)"
    )
