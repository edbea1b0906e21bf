"""What the verdict of every analysis owes: right theories differ rarely, wrong ones agree rarely.

Data of known laws are drawn many times. A theory is right, or wrong by the amount of the control of
its analysis to either side; ``python -m tests.verdict.test_analyses`` prints the shares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.dependence.dependence import findings as of_means
from hdica.analysis.dependence.dependence import with_verdicts
from hdica.analysis.ensemble.compute import findings as of_passages
from hdica.analysis.escape.figure import findings as of_escapes
from hdica.analysis.escape.samples import findings as of_samples
from hdica.analysis.phase.figure import findings as of_boundary
from hdica.analysis.powers.exponents import findings as of_powers
from hdica.show.finding import Finding, verdict_of
from hdica.verdict.cells import CLEAR, CONTROL, LEVEL, WRONG
from hdica.verdict.survival import CONTROL as OF_RATES
from tests.analysis import ensembles, escapes, powers, toy
from tests.verdict.test_contract import most

RIGHT, WRONG_SIDES = 0.0, (1.0, -1.0)

passages, escape, samples, fits = map(toy.computed, ("ensemble", "escape", "samples", "exponents"))


def means(off: float, seeds: int, stream: int) -> list[Finding]:
    """Means along a parameter whose largest prediction is 1; one is off by so many controls."""
    rng, cells = np.random.default_rng(stream), 6
    predicted = np.linspace(0.5, 1.0, cells)
    true = predicted + CONTROL * off * np.eye(cells)[2]
    runs = true[:, None] + 0.1 * rng.standard_normal((cells, seeds))
    values = {
        "mean": runs.mean(axis=1),
        "se": runs.std(axis=1, ddof=1) / seeds**0.5,
        "predicted": predicted,
        "seeds": np.full(cells, seeds),
        "diverged": np.zeros(cells),
    }
    dims = ("output", "simulation", "x")
    data = xr.Dataset(
        {name: (dims, np.asarray(v)[None, None]) for name, v in values.items()},
        {"output": ["R"], "simulation": ["runs"], "x": np.arange(cells) + 1.0},
        {"over": "x", "variable": "R"},
    )
    data = data.assign(difference=data["mean"] - data["predicted"])
    return of_means(with_verdicts(data, CONTROL, {}))


def boundaries(off: float, seeds: int, stream: int) -> list[Finding]:
    """Starts with even odds beside a boundary at 0.5 that is off by so many controls."""
    rng, x = np.random.default_rng(stream), np.arange(1.0, 6.0)
    error = 0.2 / seeds**0.5
    data = xr.Dataset(
        {
            "threshold": ("tau", 0.5 * (1 + CONTROL * off) + error * rng.standard_normal(x.size)),
            "threshold_se": ("tau", np.full(x.size, error)),
            "boundary": ("tau", np.full(x.size, 0.5)),
            "trials": (("tau", "Q0"), np.full((x.size, 2), seeds)),
            "probability": (("tau", "Q0"), np.tile([0.0, 1.0], (x.size, 1))),
            "decaying": (("tau", "Q0"), np.zeros((x.size, 2))),
        },
        {"tau": x, "Q0": [0.1, 0.9]},
        {"x": "tau", "y": "Q0", "variable": "Q", "divides": 1, "noise": "own", "time": 1.0},
    )
    return of_boundary(data)


def times(off: float, seeds: int, stream: int) -> list[Finding]:
    """Times at which the median of 60 runs a seed reaches a level, off by so many controls."""
    groups = ensembles.groups(runs=60 * seeds, stream=stream)
    groups["traversal"]["middle"] = groups["traversal"]["middle"] / (1 + CONTROL * off)
    asked = {**ensembles.SETTINGS, "theory": [], "predicted": []}
    return of_passages(passages(toy.tree(groups, {"ensemble": asked}), asked))


def escapes_of(off: float, seeds: int, stream: int) -> list[Finding]:
    """Exponential escapes of ten runs a seed, whose rates are off by so many controls."""
    tree = escapes.store(error=OF_RATES**off, runs=10 * seeds, stream=stream, end=1e9)
    return of_escapes(escape(tree, escapes.SIMULATED))


def quantiles(off: float, seeds: int, stream: int) -> list[Finding]:
    """Exponential escapes of fifty runs a seed, of times that are off by so many controls."""
    asked = {"simulation": "escape_times", "theory": "escape_diffusion"}
    tree = escapes.store(error=0.8**off, runs=50 * seeds, stream=stream, end=1e9)
    return of_samples(samples(tree, asked))


def laws(off: float, seeds: int, stream: int) -> list[Finding]:
    """A law in two powers, whose prefactor in theory is off by so many controls."""
    rng = np.random.default_rng(stream)
    theory = powers.theory(3.0 / (1 + CONTROL * off))
    tree = powers.store(seeds, training=powers.training(rng, seeds, 0.15), bounds=theory)
    return of_powers(fits(tree, {**powers.POWERS, "theory": "bounds"}))


CASES: dict[str, Callable[[float, int, int], list[Finding]]] = {
    "dependence": means,
    "phase": boundaries,
    "ensemble": times,
    "escape": escapes_of,
    "samples": quantiles,
    "exponents": laws,
}
ENOUGH = {
    "dependence": 40,
    "phase": 500,
    "ensemble": 40,
    "escape": 40,
    "samples": 40,
    "exponents": 40,
}
"""Seeds with which the verdict is mostly plain."""
SETS = {
    "dependence": 40,
    "phase": 100,
    "ensemble": 20,
    "escape": 12,
    "samples": 12,
    "exponents": 30,
}
"""Data sets in a test: as many as a few seconds allow."""


def shares(name: str, seeds: int, sets: int) -> dict[str, int]:
    """How often a right theory differs and agrees, and a wrong one agrees, of either side."""
    right = [verdict_of(CASES[name](RIGHT, seeds, k)) for k in range(sets)]
    wrong = [verdict_of(CASES[name](WRONG_SIDES[k % 2], seeds, k)) for k in range(sets)]
    return {
        "right, differs": right.count("differs"),
        "right, agrees": right.count("agrees"),
        "wrong, agrees": wrong.count("agrees"),
    }


@pytest.mark.deep
@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
@pytest.mark.parametrize("name", CASES)
def test_no_analysis_calls_a_right_theory_wrong_or_a_wrong_one_right(name: str, few: bool) -> None:
    sets = SETS[name]
    found = shares(name, 3 if few else ENOUGH[name], sets)
    assert found["right, differs"] <= most(LEVEL / CLEAR, sets)
    assert found["wrong, agrees"] <= most(WRONG, sets)
    # With enough seeds a right theory is told: a verdict that is never plain owes nothing.
    assert few or found["right, agrees"] > sets / 2


if __name__ == "__main__":
    for name in CASES:
        for seeds in (2, 3, 8, 32, ENOUGH[name]):
            print(name, seeds, shares(name, seeds, 200), flush=True)
