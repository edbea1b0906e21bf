"""Is a fixed point of (17) missing? Thirty systems against random starts of a Newton of its own.

``python -m tests.systems.hebbian_ica.fixed_points_campaign [STARTS] [FIRST [LAST]]`` prints a line
a system and ends with status 1 if anything was found that is not listed; 10^4 starts are the
default, and take some ten minutes on one core.
"""

import sys
import time

import numpy as np
from scipy.spatial import cKDTree

import hdica
from tests.systems.hebbian_ica.fixed_points_reference import images, newton, random_starts

CUBIC, FIFTH, SQUARE = (0, 0, 0, 1), (0, 0, 0, 0, 0, 1), (0, 0, 1)
U, R, L = "uniform", "rademacher", "laplace"
SYSTEMS = (
    # sigma, coefficients of phi, sources (a number is a chi-square law), mu
    ((-1,), CUBIC, (U,), 0.05),
    ((-1,), SQUARE, (2,), 0.05),
    ((1,), SQUARE, (3,), 0.02),
    ((-1,), (0, -1, 0.5, 1), (R,), 0.05),
    ((-1,), CUBIC, (U, U), 0.01),
    ((-1,), CUBIC, (U, U), 0.02),
    ((1,), (0, 0, 1, 0.3), (2, 3), 0.01),
    ((1,), CUBIC, (L, L, L), 0.01),
    ((-1,), FIFTH, (U, R, R), 0.001),
    ((1,), SQUARE, (2, 3, 4), 0.02),
    ((-1, -1), CUBIC, (U,), 0.01),
    ((-1, 1), CUBIC, (U,), 0.02),
    ((1, 1), (0, 0, 1, 0, 0.1), (3,), 0.005),
    ((-1, -1), CUBIC, (U, U), 0.01),
    ((-1, -1), CUBIC, (U, U), 0.05),
    ((-1, -1), CUBIC, (U, R), 0.02),
    ((-1, 1), CUBIC, (U, L), 0.01),
    ((-1, -1), FIFTH, (U, R), 0.001),
    ((1, 1), SQUARE, (2, 3), 0.03),
    ((1, -1), SQUARE, (3, U), 0.05),
    ((-1, 1), (0, -1, 0.5, 1), (U, 3), 0.01),
    ((1, 1), (0, 0, 1, 0, 0.1), (2, 2), 0.01),
    ((-1, -1), CUBIC, (U, U, U), 0.02),
    ((1, 1), SQUARE, (3, 3, 3), 0.03),
    ((-1, -1, -1), CUBIC, (U, R), 0.01),
    ((-1, -1, -1), CUBIC, (U, U, U), 0.01),
    ((-1, -1, -1), CUBIC, (U, U, U), 0.03),
    ((-1, -1, 1), CUBIC, (U, R, L), 0.01),
    ((1, 1, 1), SQUARE, (2, 3, 4), 0.05),
    ((1, -1, 1), (0, 0, 1, 0.3), (3, 2, L), 0.01),
)
SAME = 1e-6


def as_hdica(system):
    sigma, phi, sources, mu = system
    text = " + ".join(f"{c}*x**{n}" for n, c in enumerate(phi) if c)
    laws = [{"chi2": s} if isinstance(s, int) else s for s in sources]
    return hdica.HebbianICA(
        sources=laws, projections=len(sigma), nonlinearity=text, sigma=list(sigma), mu=mu
    )


def missing(system, starts, seed=1):
    """States that random starts find and that are not listed, how many were found, the list."""
    listed = hdica.fixed_points(as_hdica(system))
    every = images(system, listed["R"].values)
    assert len(every) == listed["multiplicity"].values.sum()
    begin = random_starts(listed["R"].shape[1:], starts, seed)
    found = np.concatenate(
        [newton(system, part) for part in np.array_split(begin, -(-starts // 500))]
    )
    gap, nearest = cKDTree(every.reshape(len(every), -1)).query(found.reshape(len(found), -1))
    return found[gap > SAME], len(set(nearest[gap <= SAME].tolist())), listed


def main(starts=10_000, first=0, last=30):
    lost = 0
    for number in range(int(first), int(last)):
        begin = time.perf_counter()
        unlisted, seen, listed = missing(SYSTEMS[number], int(starts))
        lost += len(unlisted)
        print(
            f"{number:2d} {SYSTEMS[number]}: {listed.sizes['fixed_point']} listed, "
            f"{int(listed['multiplicity'].sum())} with images, {seen} of these seen, "
            f"certified {int(listed['certified'])}, {len(unlisted)} ends not listed, "
            f"{time.perf_counter() - begin:.0f} s",
            flush=True,
        )
        for r in unlisted[:3]:
            print("   ", r.round(6).tolist())
    print(f"{lost} ends not listed")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
