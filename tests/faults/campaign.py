"""The campaign of kills: ``python -m tests.faults.campaign --moments 50``.

A table says how many runs were killed, how many went on by themselves, how many needed the same
command again, and how many published stores are bit for bit the undisturbed one. What went wrong is
told with the command that repeats it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import crash, trouble
from tests.faults.moments import FAULTS, SEED, Outcome

NAMES = (*FAULTS, crash.NAME)
HEAD = ("fault", "runs", "hit", "went on", "rerun", "bitwise equal", "seconds")


@dataclass
class Row:
    """One line of the table."""

    name: str
    outcomes: list[Outcome] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def cells(self) -> tuple[str, ...]:
        found, runs = self.outcomes, len(self.outcomes) + len(self.wrong)
        alone = sum(one.alone for one in found)
        seconds = sum(one.seconds for one in found) / max(1, len(found))
        counts = (runs, sum(one.hit for one in found), alone, len(found) - alone, len(found))
        return (self.name, *(str(count) for count in counts), f"{seconds:.1f}")


def moments_of(name: str, moments: list[int], seed: int, folder: Path) -> Row:
    """All trials of one fault, one after the other."""
    row = Row(name)
    fault = crash.Crash(folder, seed) if name == crash.NAME else FAULTS[name](folder, seed)
    try:
        for moment in moments:
            try:
                row.outcomes.append(fault.trial(moment))
            except Exception:
                row.wrong.append(f"--only {name} --moment {moment} --seed {seed}")
                print(f"{row.wrong[-1]}\n{traceback.format_exc()}", flush=True)
            done = len(row.outcomes) + len(row.wrong)
            if done % 10 == 0:
                print(f"{name}: {done} of {len(moments)}", flush=True)
    finally:
        fault.close()
    return row


def table(rows: list[Row]) -> str:
    lines = [HEAD, tuple("---" for _ in HEAD), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign")
    parser.add_argument("--moments", type=int, default=50, help="kills of each kind")
    parser.add_argument("--only", action="append", choices=NAMES, help="this kind (repeatable)")
    parser.add_argument("--moment", type=int, help="repeat this one alone")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2, help="kinds at the same time")
    asked = parser.parse_args()
    moments = list(range(asked.moments)) if asked.moment is None else [asked.moment]
    trouble.register()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="hdica-faults-") as folder,
        ThreadPoolExecutor(asked.jobs) as pool,
    ):
        jobs = [
            pool.submit(moments_of, name, moments, asked.seed, Path(folder, name))
            for name in asked.only or NAMES
        ]
        rows = [job.result() for job in jobs]
    print(table(rows))
    wrong = [each for row in rows for each in row.wrong]
    print(f"{time.monotonic() - began:.0f} s, seed {asked.seed}, {len(wrong)} wrong")
    for each in wrong:
        print(f"repeat it with: python -m tests.faults.campaign {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
