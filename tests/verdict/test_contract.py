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

from hdica.verdict.cells import BOTH, CLEAR, LEVEL, WRONG, judged
from hdica.verdict.cells import _more as more
from hdica.verdict.ladder import Ladder
from hdica.verdict.trajectory import judge

Array = NDArray[np.float64]
SETS = 1000
NOISE: dict[str, Callable[..., Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "heavy tails": lambda rng, shape: rng.standard_t(5, shape) / np.sqrt(5 / 3),
}

DRAWS = pytest.mark.parametrize(
    "draw", ["heavy tails", pytest.param("normal", marks=pytest.mark.deep)]
)


def most(share: float, sets: int = SETS) -> int:
    """So many of some data sets at most, if each is one with a chance of ``share``."""
    return int(stats.binom.ppf(0.9999, sets, share))


def of_cells(rng: np.random.Generator, draw: str, seeds: int, off: Array, scatter: float) -> str:
    """The verdict on cells whose prediction is wrong by ``off``, with a control of 1."""
    runs = off[:, None] + scatter * NOISE[draw](rng, (off.size, seeds))
    error = runs.std(axis=1, ddof=1) / np.sqrt(seeds)
    return judged(runs.mean(axis=1), error, margin=1.0, freedom=seeds - 1.0).whole


def rates(seeds: int, cells: int, draw: str) -> dict[str, float]:
    """Shares of data sets in which a right theory differs and wrong ones agree."""
    rng = np.random.default_rng(seeds)
    one, none = np.zeros(cells), np.zeros(cells)
    one[-1] = 1.0
    right, single, every = [], [], []
    for _ in range(SETS):
        # From scatter that tells nothing to scatter that tells all.
        scatter, side = np.sqrt(seeds) * 10 ** rng.uniform(-1.5, 0.5), rng.choice([-1.0, 1.0])
        right.append(of_cells(rng, draw, seeds, none, scatter) == "differs")
        single.append(of_cells(rng, draw, seeds, side * one, scatter) == "agrees")
        every.append(of_cells(rng, draw, seeds, np.full(cells, side), scatter) == "agrees")
    found = {"right": right, "one wrong": single, "all wrong": every}
    return {name: float(np.mean(shares)) for name, shares in found.items()}


@DRAWS
@pytest.mark.parametrize("cells", [1, 100])
@pytest.mark.parametrize(
    "seeds", [3, *(pytest.param(seeds, marks=pytest.mark.deep) for seeds in (2, 8, 32))]
)
def test_cells(seeds: int, cells: int, draw: str) -> None:
    found = rates(seeds, cells, draw)
    assert SETS * found["right"] <= most(LEVEL / CLEAR)
    assert SETS * found["one wrong"] <= most(WRONG)
    assert SETS * found["all wrong"] <= most(WRONG)


@pytest.mark.parametrize("scatter", [0.2, 1.0, 4.0])
def test_seeds_that_decide_do_so_and_do_not_depend_on_how_many_there_are(scatter: float) -> None:
    room = np.array([0.999])
    wanted = []
    for now in (2, 3, 30):
        error, freedom = np.full(1, scatter / np.sqrt(now)), np.full(1, now - 1.0)
        wanted.append(now * more(room, error, freedom, WRONG, BOTH).item())
    assert wanted == pytest.approx(wanted[:1] * 3, rel=1e-6)
    rng, seeds = np.random.default_rng(3), int(np.ceil(wanted[0]))
    found = [of_cells(rng, "normal", seeds, np.zeros(1), scatter) for _ in range(400)]
    assert found.count("agrees") >= 400 - most(0.05, 400)
    few = [of_cells(rng, "normal", max(seeds // 3, 2), np.zeros(1), scatter) for _ in range(400)]
    assert few.count("agrees") < found.count("agrees") - 20


@pytest.mark.parametrize("cells", [1, 100])
def test_with_little_scatter_all_is_plain(cells: int) -> None:
    rng = np.random.default_rng(1)
    for off, verdict in ((0.0, "agrees"), (1.0, "differs"), (-1.0, "differs")):
        assert of_cells(rng, "normal", 32, np.full(cells, off), 0.1) == verdict


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


@DRAWS
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


if __name__ == "__main__":  # the table of docs/reference/errors.md
    for noise in NOISE:
        for many in (1, 100):
            for few in (2, 3, 8, 32):
                shares = [f"{100 * share:.1f} %" for share in rates(few, many, noise).values()]
                print(f"| {noise} | {many} | {few} | {' | '.join(shares)} |", flush=True)
