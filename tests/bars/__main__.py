"""Are the bars true? ``python -m tests.bars --cases 300 --seed 1 --kind limit``.

Random cases against references that share nothing with hdica's own quadrature. Without ``--kind``
there are as many limits as asked for and a fifth as many of every other kind. Fails where under
99 % of the true errors lie within their bars, or one lies beyond three.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.bars.campaign import KINDS, failures, good, outcomes, table_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    asked = parser.parse_args()
    started, found = time.perf_counter(), []
    for kind in [asked.kind] if asked.kind else KINDS:
        cases = asked.cases if asked.kind or kind == "limit" else max(1, asked.cases // 5)
        for one in outcomes(kind, cases, asked.seed):
            found.append(one)
            for line in failures([one]):
                print(line, flush=True)
            if time.perf_counter() - started > asked.seconds:
                break
    print(table_of(found))
    print(f"{len(found)} cases in {time.perf_counter() - started:.0f} s")
    sys.exit(0 if good(found) else 1)


if __name__ == "__main__":
    main()
