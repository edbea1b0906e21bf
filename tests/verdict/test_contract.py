"""What every verdict owes: right theories differ rarely, and wrong ones agree rarely.

A theory that is right is said to differ in at most the stated share of data sets; one that is wrong
by the control's amount, to either side, is said to agree in at most the stated share: with few
seeds and many, of one cell and of a hundred, with scatter that has heavy tails.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.cells import CLEAR, LEVEL, WRONG, Cells, judged
from hdica.verdict.ladder import Ladder
from hdica.verdict.trajectory import judge

Array = NDArray[np.float64]
SETS = 1000
NOISE: dict[str, Callable[..., Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "heavy tails": lambda rng, shape: rng.standard_t(5, shape) / np.sqrt(5 / 3),
}


def most(share: float, sets: int = SETS) -> int:
    """So many of some data sets at most, if each is one with a chance of ``share``."""
    return int(stats.binom.ppf(0.9999, sets, share))


def of_cells(rng: np.random.Generator, draw: str, seeds: int, off: Array, scatter: float) -> str:
    """The verdict on cells whose prediction is wrong by ``off``, with a control of 1."""
    runs = off[:, None] + scatter * NOISE[draw](rng, (off.size, seeds))
    error = runs.std(axis=1, ddof=1) / np.sqrt(seeds)
    known, none = np.full(off.size, seeds - 1.0), np.zeros(off.size)
    return judged(Cells(runs.mean(axis=1), error, known, np.ones(off.size), none)).whole


@pytest.mark.parametrize("draw", NOISE)
@pytest.mark.parametrize("cells", [1, 100])
@pytest.mark.parametrize("seeds", [2, 3, 8, 32])
def test_cells(seeds: int, cells: int, draw: str) -> None:
    rng = np.random.default_rng(seeds)
    one, none = np.zeros(cells), np.zeros(cells)
    one[-1] = 1.0
    count: dict[str, list[str]] = {"right": [], "one wrong": [], "all wrong": []}
    for k in range(SETS):
        # From scatter that tells nothing to scatter that tells all.
        scatter = np.sqrt(seeds) * 10 ** rng.uniform(-1.5, 0.5)
        off = (one, np.ones(cells))[k % 2] * rng.choice([-1.0, 1.0])
        count["right"].append(of_cells(rng, draw, seeds, none, scatter))
        count["one wrong" if k % 2 == 0 else "all wrong"].append(
            of_cells(rng, draw, seeds, off, scatter)
        )
    assert count["right"].count("differs") <= most(LEVEL / CLEAR)
    for wrong in ("one wrong", "all wrong"):
        assert count[wrong].count("agrees") <= most(WRONG, SETS // 2)
    # It is no verdict that decides nothing: with the least scatter all is plain.
    sure = [of_cells(rng, draw, 32, off, 0.1) for off in (none, np.ones(cells))]
    assert sure == ["agrees", "differs"]


def of_curves(rng: np.random.Generator, draw: str, seeds: int, n: list[int], off: float) -> str:
    """The verdict on trajectories of some n, whose limit is wrong by so many times the control."""
    times = np.linspace(0.2, 2.0, 10)
    limit, control = np.exp(-times), 0.05 * times * np.exp(-times)
    scatter = np.sqrt(n[0] * seeds) * 10 ** rng.uniform(-3.0, -1.0)
    runs = []
    for size in n:
        # Neighbouring times are alike, as those of a path are.
        steps = NOISE[draw](rng, (seeds, times.size)).cumsum(axis=1) / np.sqrt(times.size)
        runs.append(limit + off * control + scatter * steps / np.sqrt(size) + 2 * control / size)
    runs_at = Ladder(np.array(n, dtype=float), tuple(runs))
    return judge(runs_at, limit, np.zeros(times.size), limit + control, LEVEL).verdict


@pytest.mark.parametrize("draw", NOISE)
@pytest.mark.parametrize("n", [[1000], [250, 500, 1000, 2000]], ids=["one n", "a ladder"])
@pytest.mark.parametrize("seeds", [8, 32])
def test_trajectories(seeds: int, n: list[int], draw: str) -> None:
    rng, sets = np.random.default_rng(seeds), SETS // 20
    found = {
        off: [of_curves(rng, draw, seeds, n, off) for _ in range(sets)] for off in (0.0, 1.0, -1.0)
    }
    assert found[0.0].count("differs") <= most(LEVEL, sets)
    assert found[1.0].count("agrees") <= most(LEVEL, sets)
    assert found[-1.0].count("agrees") <= most(LEVEL, sets)
    assert found[0.0].count("agrees") > sets / 10
    assert len(n) == 1 or found[1.0].count("differs") > sets / 10
