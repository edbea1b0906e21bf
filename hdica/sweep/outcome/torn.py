"""Go on by itself where files of a working store were cut short, as a power loss leaves them.

What is empty, gone or without its end was changed by nobody, and its points can be computed again.
Anything else that is wrong is left to ``hdica repair``, which somebody has to ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hdica.sweep.files.paths import TornError
from hdica.sweep.outcome.integrity import working_damage
from hdica.sweep.outcome.repair import repair_working
from hdica.sweep.run.working_lock import locked

Result = TypeVar("Result")
ATTEMPTS = 3
"""How often work is begun: what is torn shows when it is read, the metadata before the data."""


def mend(out: str | Path) -> list[str]:
    """Mend what is cut short in a working store, or make it pending; a sentence for each file."""
    with locked(out):
        torn = [damage for damage in working_damage(out) if damage.torn]
        return [f"{damage.sentence}: {repair_working(out, damage)}" for damage in torn]


def going_on(
    out: str | Path,
    attempt: Callable[[], Result],
    tell: Callable[[str], None],
    again: Callable[[], object] = lambda: None,
) -> Result:
    """Result of some work on a store, which is begun again after what it found torn is mended.

    ``tell`` is given a sentence for each file that was mended; ``again`` is what has to be done
    before the work is begun again.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except TornError:
            done = mend(out)
            if not done:
                raise
            for sentence in done:
                tell(sentence)
            again()
    return attempt()
