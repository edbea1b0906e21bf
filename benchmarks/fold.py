"""How long does it take to find the fold where informative steady states are born?

Two folds: cubic online ICA in τ, where the overlap alone is the state, and Example 2 of online
sparse PCA in ω, where a whole density is. Rivals: bice (pseudo-arclength continuation with
its own step sizes from one solution on the stable branch, eigenvalues, bisection to a tenth of
its default tolerance and less) and PyCont-Lite (the same, matrix-free, with the longest steps
that reach its error). They begin with equations in one or two unknowns that their user has
derived by hand. For the first fold ours begins there too; ``hdica.critical`` begins with the
rule, derives the equations, finds every transition and estimates the error of each. For the
second fold it does that over five decades of ω.

Run: python -m benchmarks fold [--small] [--repeats 5]   (about half a minute)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hdica
from benchmarks.harness import Contestant, Row, present, race
from benchmarks.rivals.example_2 import BETA, RHO, TAU
from benchmarks.rivals.folds import ICA, OIST, Fold
from hdica.limits.overlap.fixed_points import find_folds
from hdica.systems.online_ica.system import drift

NAME = "fold"
_GOLDEN = Path(__file__).parents[1] / "tests/golden/steady_states.json"
TAU_C = 0.162179260629823
"""Smallest root of the discriminant 2025 t^4 - 4050 t^3 + 990 t^2 - 112 t + 8."""
OMEGA_C = float(json.loads(_GOLDEN.read_text())["oist_steady"]["fold"]["omega_c"])
PYCONT_STEP, PYCONT_STEPS = 1e-3, 150


def forget() -> None:
    """Empty every cache of the package, so that a question is answered from the start."""
    for name, module in list(sys.modules.items()):
        if name.startswith("hdica."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def largest_fold(system: Any, parameter: str) -> float:
    """The largest critical value of kind ``"fold"``, nothing being cached."""
    forget()
    found = hdica.critical(system, parameter)
    return float(found["value"].values[found["kind"].values == "fold"].max())


def _ica() -> list[tuple[str, Callable[[], float], str]]:
    system = hdica.OnlineICA(tau=0.1, source="rademacher")
    known = drift(system)
    whole = "derives the drift first, nothing cached"
    return [
        ("hdica", lambda: float(find_folds(known).tau[0]), "find_folds of the drift"),
        ("hdica.critical", lambda: largest_fold(system, "tau"), whole),
    ]


def _oist() -> list[tuple[str, Callable[[], float], str]]:
    system = hdica.SparsePCA(
        tau=TAU, omega=1.0, regularizer=f"{BETA}*sign(x)", prior={"sparse": RHO}
    )
    note = "critical: all three transitions for omega from 1e-3 to 100"
    return [("hdica", lambda: largest_fold(system, "omega"), note)]


def _rivals(fold: Fold) -> list[tuple[str, Callable[[], float], str]]:
    """The libraries that are installed and find this fold."""
    found: list[tuple[str, Callable[[], float], str]] = []
    if present("bice", "bice"):
        from benchmarks.rivals import bice_fold

        note = "this fold alone, from one solution on its branch"
        found.append(("bice", lambda: bice_fold.find(fold), note))
    # In the second case PyCont-Lite leaves the branch near the end of the range of h.
    if fold is ICA and present("PyCont-Lite", "pycont"):
        from benchmarks.rivals import pycont_fold

        run = lambda: pycont_fold.find(fold, PYCONT_STEP, PYCONT_STEPS)  # noqa: E731
        found.append(("PyCont-Lite", run, f"steps of {PYCONT_STEP:g}"))
    return found


CASES = {
    "online ICA, fold in tau": (_ica, ICA, TAU_C),
    "online sparse PCA, fold in omega": (_oist, OIST, OMEGA_C),
}


def contestants(case: str) -> list[Contestant]:
    """Everyone who takes part in a case, with the error of what was found."""
    ours, fold, exact = CASES[case]
    return [
        Contestant(name, run, error=abs(run() - exact), note=note)
        for name, run, note in (*ours(), *_rivals(fold))
    ]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """One case for each fold; the small run has the first alone."""
    found = []
    for case in list(CASES)[: 1 if small else None]:
        entered = contestants(case)
        found += race(NAME, case, entered, unit="ms per fold", scale=1e3, repeats=repeats)
    return found
