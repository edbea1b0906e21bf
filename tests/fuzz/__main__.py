"""Fuzz the reading of studies: ``python -m tests.fuzz --cases 10000 --seed 1``.

One case in six is a study that must be accepted, the others are broken. It stops at the first case
that is neither a study nor refused in one sentence, makes it as small as it can, and prints it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from hdica.study.study import Study
from tests.fuzz.broken import ALL, texts
from tests.fuzz.check import outcome
from tests.fuzz.valid import studies

SHOWN = 2000
"""Bytes of the slowest case that are printed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    slowest: list[Any] = [0.0, b""]
    valid = asked.cases // 6

    def campaign(cases: int, strategy: Any, must: bool) -> None:
        @seed(asked.seed)
        @settings(
            max_examples=cases, database=None, deadline=None, print_blob=True,
            suppress_health_check=[*HealthCheck], phases=[Phase.generate, Phase.shrink],
        )  # fmt: skip
        @given(raw=strategy)
        def case(raw: bytes) -> None:
            started = time.perf_counter()
            found = outcome(raw, Path.cwd())
            slowest[:] = max(slowest, [time.perf_counter() - started, raw])
            counts["studies" if isinstance(found, Study) else "refused"] += 1
            assert isinstance(found, Study) or not must, found

        case()

    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        campaign(valid, texts(studies()), True)
        campaign(asked.cases - valid, ALL, False)
    took = time.perf_counter() - started
    print(
        f"{sum(counts.values())} cases in {took:.0f} s: {counts['studies']} studies, "
        f"{counts['refused']} refused in one sentence; the slowest took {slowest[0]:.2f} s:\n"
        + slowest[1][:SHOWN].decode(errors="replace")
    )


if __name__ == "__main__":
    main()
