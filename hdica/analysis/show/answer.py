"""What a study answers, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """The answer of a study to its question.

    Parameters
    ----------
    html
        One sentence of HTML, with its figure and error.
    verdict
        ``"agrees"``, ``"differs"`` or ``"undecided"`` where theory and simulation are compared,
        else empty.
    covers
        How many of the first sentences that the analysis says repeat it: they stand folded.
    """

    html: str
    verdict: str = ""
    covers: int = 0
