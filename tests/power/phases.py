"""What is recorded: commands, one after the other, on the same results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.sweep import toy

RESULTS = "toy.zarr"
SERIAL = {"mode": "serial"}
LOCAL = {"mode": "local", "workers": 2}


@dataclass(frozen=True)
class Phase:
    """One command: a run that publishes.

    Parameters
    ----------
    name
        Its name.
    study
        The study, as plain data.
    cluster
        Where it runs.
    options
        More of the command line.
    unlucky
        Whether some points fail.
    """

    name: str
    study: dict[str, Any] = field(repr=False)
    cluster: dict[str, Any] = field(default_factory=lambda: dict(SERIAL))
    options: tuple[str, ...] = ()
    unlucky: bool = False

    def arguments(self, out: Path, files: Path) -> list[str]:
        """What a user would type after ``hdica``; what it reads is written to a folder."""
        (files / self.name).mkdir(exist_ok=True)
        study, config = files / self.name / "toy.yaml", files / self.name / "config.yaml"
        study.write_text(json.dumps(self.study))
        config.write_text(json.dumps({"cluster": self.cluster}))
        run = ["run", str(study), "--out", str(out), "--config", str(config), "--quiet"]
        return [*run, *self.options]


def study(taus: list[float], seeds: int, block: int, **changes: Any) -> dict[str, Any]:
    """A study of small blocks: points that are said to be expensive, and are not."""
    return toy.study(
        **{
            "parameters": {"constants": {"sleep": 0.2 / (block + 0.5)}},
            "grid": {"tau": taus},
            "methods": {"walk": {"n": [10], "seeds": seeds}, "line": {}},
            **changes,
        }
    )


def alone(seeds: int, block: int = 4) -> tuple[Phase, ...]:
    """In one process: a run; one of a grown grid, where points fail; a retry of these."""
    grown = study([0.1, 0.17, 0.3, 0.2], seeds, block)
    return (
        Phase("first", study([0.1, 0.17], seeds, block)),
        Phase("grown", grown, unlucky=True),
        Phase("retried", grown, options=("--retry-failed",)),
    )


def together(seeds: int, block: int = 4) -> tuple[Phase, ...]:
    """In two workers: a run, and one of a grown grid with one more method."""
    walk = {"walk": {"n": [10], "seeds": seeds}}
    return (
        Phase("first", study([0.1, 0.3], seeds, block, methods=walk), dict(LOCAL)),
        Phase("grown", study([0.1, 0.17, 0.3], seeds, block), dict(LOCAL)),
    )


def keeping(seeds: int, block: int = 4) -> tuple[Phase, ...]:
    """In one process: points that keep more arrays; then one more method and one more n."""
    save = {"snapshots": [0.5], "x": [-1, 0, 1], "functionals": {"mse": "(x - xi)**2"}}
    more = {"walk": {"n": [10, 30], "seeds": seeds}, "line": {}, "profile": {}, "steady": {}}
    return (
        Phase("first", study([0.1, 0.2], seeds, block, save=save)),
        Phase("grown", study([0.1, 0.2], seeds, block, save=save, methods=more)),
    )


def failing(seeds: int, block: int = 2) -> tuple[Phase, ...]:
    """In one process, one method: a run, and one of a grown grid where points fail."""
    walk = {"walk": {"n": [10], "seeds": seeds}}
    return (
        Phase("first", study([0.1, 0.17], seeds, block, methods=walk)),
        Phase("grown", study([0.1, 0.17, 0.3], seeds, block, methods=walk), unlucky=True),
    )


def pair(seeds: int, block: int = 2) -> tuple[Phase, ...]:
    """In two workers, one method: a run."""
    walk = {"walk": {"n": [10], "seeds": seeds}}
    return (Phase("first", study([0.1, 0.3, 0.2], seeds, block, methods=walk), dict(LOCAL)),)


SCENARIOS = {"alone": alone, "together": together, "keeping": keeping}
"""Of the campaign."""
SMALL = {"failing": failing, "pair": pair}
"""Of the test suite, whose time is short."""


def written(phases: tuple[Phase, ...]) -> str:
    """Phases as JSON."""
    return json.dumps([asdict(phase) for phase in phases])


def read(text: str) -> tuple[Phase, ...]:
    """Phases that :func:`written` wrote."""
    return tuple(Phase(**{**one, "options": tuple(one["options"])}) for one in json.loads(text))
