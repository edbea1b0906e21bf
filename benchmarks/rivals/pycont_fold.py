"""A fold with PyCont-Lite: its pseudo-arclength continuation detects and locates it."""

from __future__ import annotations

import numpy as np
import pycont

from benchmarks.rivals.folds import Fold


def find(fold: Fold, step: float, steps: int) -> float:
    """Parameter at the fold.

    Parameters
    ----------
    fold
        Equations and start.
    step
        Longest step of the continuation.
    steps
        Most steps on a branch; the fold must lie within them.

    Raises
    ------
    RuntimeError
        If no fold is found.
    """
    settings = {
        "tolerance": 1e-10,
        "bifurcation_detection": False,
        "analyze_stability": False,
        "initial_directions": "increase_p" if fold.way > 0 else "decrease_p",
    }
    found = pycont.arclengthContinuation(
        fold.residual,
        np.array(fold.start),
        fold.parameter,
        1e-6,
        step,
        step,
        steps,
        solver_parameters=settings,
        verbosity="off",
    )
    for event in found.events:
        if event.kind == "LP":
            return float(event.p)
    raise RuntimeError("PyCont-Lite found no fold")
