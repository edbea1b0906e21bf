"""What a command has promised at any moment: points that it called committed, stores published."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from tests.power.operations import Recording
from tests.power.phases import Phase

FAILED = "failed"


@dataclass(frozen=True)
class Owed:
    """What must be there after a power loss.

    Parameters
    ----------
    phase
        Index of the command that was given last, and that is given again.
    points
        Status of every committed point, by its key.
    published
        Index of the command whose publication is there, if any is.
    publishing
        Whether the one of ``phase`` may be there instead.
    """

    phase: int = 0
    points: dict[str, str] = field(default_factory=dict, repr=False)
    published: int | None = None
    publishing: bool = False


class Promises:
    """What was promised after each of the operations of a recording."""

    def __init__(self, recording: Recording, phases: tuple[Phase, ...]) -> None:
        self.moments = [0]
        self.owed = [Owed()]
        names = [phase.name for phase in phases]
        for mark in recording.marks:
            now, said = self.owed[-1], mark.said
            if "begun" in said:
                now = _begun(now, names.index(said["begun"]), phases)
            elif "committed" in said:
                found = {key: s for s, keys in said["committed"].items() for key in keys}
                now = replace(now, points={**now.points, **found})
            elif "publishing" in said:
                now = replace(now, publishing=True)
            elif "published" in said:
                now = replace(now, published=now.phase, publishing=False)
            self.moments.append(mark.after)
            self.owed.append(now)

    def at(self, moment: int) -> Owed:
        """What is owed if the power fails after so many operations, and before the next one."""
        return self.owed[bisect_right(self.moments, moment) - 1]

    @property
    def turns(self) -> list[int]:
        """Moments of the first power loss after something was said, and of the last before it."""
        after = {moment for moment in self.moments if moment}
        return sorted({0, *after, *(moment - 1 for moment in after)})


def _begun(owed: Owed, phase: int, phases: tuple[Phase, ...]) -> Owed:
    points = owed.points
    if "--retry-failed" in phases[phase].options:
        points = {key: status for key, status in points.items() if status != FAILED}
    return replace(owed, phase=phase, points=points)
