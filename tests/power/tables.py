"""What a campaign has found, for a person."""

from __future__ import annotations

from collections import Counter

from tests.power.check import POINTS, PUBLICATION, RUN, kind
from tests.power.sweep import Sweep
from tests.power.variants import VARIANTS

HEAD = (
    "variant",
    "power losses",
    "distinct disks",
    "checked",
    "committed points lost",
    "publication lost",
    "next run not well",
)


def table(sweeps: list[Sweep]) -> str:
    """A line a variant; a power loss counts for itself, however many leave the same disk."""
    lines = [HEAD, tuple("---:" if column else "---" for column in range(len(HEAD)))]
    total = Counter[str]()
    for variant in VARIANTS:
        found = Counter[str]()
        for state in (state for sweep in sweeps for state in sweep.states):
            losses = sum(crash.variant == variant for crash in state.crashes)
            found["losses"] += losses
            found["disks"] += bool(losses)
            found["checked"] += losses * (state.wrong is not None)
            for what in {one.what for one in state.wrong or ()}:
                found[what] += losses
        if not found["losses"]:
            continue
        total.update(found)
        lines.append((variant, *_cells(found)))
    total["disks"] = sum(len(sweep.states) for sweep in sweeps)
    lines.append(("all", *_cells(total)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(found: Counter[str]) -> list[str]:
    columns = ("losses", "disks", "checked", POINTS, PUBLICATION, RUN)
    return [str(found[column]) for column in columns]


def kinds(sweeps: list[Sweep]) -> list[str]:
    """What was wrong, most frequent first, each with one power loss that shows it."""
    found: dict[str, list[str]] = {}
    for sweep in sweeps:
        for state in sweep.states:
            for one in state.wrong or ():
                crash = state.last
                where = f"{sweep.session.name} {crash.moment} {crash.variant} {crash.draw}"
                found.setdefault(kind(one.sentence), []).append(where)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return [f"{len(cases)} disks, such as {cases[0]}: {text}" for text, cases in ordered]
