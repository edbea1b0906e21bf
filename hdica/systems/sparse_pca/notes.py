"""Why online sparse PCA learns nothing, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.systems.fields import closed_refusal, motion, schedule
from hdica.systems.kinds import ZERO
from hdica.systems.notes import Notes
from hdica.systems.projected.learning import BEGIN, searched, untracked
from hdica.systems.sparse_pca.system import signal

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def _stays(system: Any) -> str:
    """That a limit which starts at Q = 0 stays there, and what to do."""
    lead = (
        "the start has overlap 0, as a random one has as n grows, and the limit stays at Q = 0 for "
        f"ever on this scale of time (t = k/n): {BEGIN}"
    )
    tau, omega = schedule(system).constant, signal(system).constant
    if tau is not None and omega is not None and omega > tau / 2 and not closed_refusal(system):
        grows = tau * (omega - tau / 2)
        return f"{lead}; at finite n noise of order n^-1/2 grows like exp({grows:.3g} t)"
    return lead


def _weak(system: Any) -> str:
    """That the signal is too weak for Oja's method; empty if it is not."""
    tau, omega = schedule(system).constant, signal(system).constant
    if omega == 0:
        return "omega = 0 leaves nothing to learn: take omega > 0"
    moves = motion(system).moves
    if moves or tau is None or omega is None or omega > tau / 2 or closed_refusal(system):
        return ""
    return (
        f"omega = {omega:g} is at most tau/2 = {tau / 2:g}, so Q falls to 0 from every "
        "start: take tau < 2 omega"
    )


def _limit(system: Any, values: Mapping[str, Array], times: Array) -> str:
    still = np.abs(values["Q"]).max() <= ZERO
    return _stays(system) if still else _weak(system)


def _states(system: Any, overlap: Array, stable: Mask, informative: Mask) -> str:
    if np.any(stable & informative):
        return ""
    if motion(system).moves:
        return untracked(system)
    return _weak(system) or (
        "no informative state was found to be stable: take a smaller step size, a weaker "
        "regularizer or a larger omega"
    )


def _transitions(
    system: Any, parameter: str, overlap: Array, ends: tuple[float, float] | None
) -> str:
    if overlap.size:
        return ""
    if signal(system).constant == 0 and parameter == "tau":
        return _weak(system)
    return searched(parameter, ends)


NOTES = Notes(_limit, _states, _transitions)
