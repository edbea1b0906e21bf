"""Why online sparse PCA learns nothing, and what to change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.systems.fields import closed_refusal, motion, schedule
from hdica.systems.outputs import ZERO
from hdica.systems.projected.assumed import data_notes
from hdica.systems.projected.learning import BEGIN, searched, untracked
from hdica.systems.sparse_pca.system import SparsePCA, signal
from hdica.systems.system import Notes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def _least(system: SparsePCA, tau: float) -> float:
    """The omega up to which Oja's method learns nothing."""
    return tau / (2 * int(system.batch))


def _stays(system: SparsePCA) -> str:
    """That a limit which starts at Q = 0 stays there, and what to do."""
    lead = (
        "the start has overlap 0, as a random one has as n grows, and the limit stays at Q = 0 for "
        "ever on this scale of time (t = k/n); Theorem 1 of Wang and Lu 2016 asks for Q_0 other "
        f"than 0: {BEGIN}"
    )
    tau, omega = schedule(system).constant, signal(system).constant
    if tau is None or omega is None or closed_refusal(system):
        return lead
    if omega > _least(system, tau):
        grows = tau * (omega - _least(system, tau))
        return f"{lead}; at finite n noise of order n^-1/2 grows like exp({grows:.3g} t)"
    return lead


def _weak(system: SparsePCA) -> str:
    """That the signal is too weak for Oja's method; empty if it is not."""
    tau, omega = schedule(system).constant, signal(system).constant
    if omega == 0:
        return "omega = 0 leaves nothing to learn: take omega > 0"
    if motion(system).moves or tau is None or omega is None or closed_refusal(system):
        return ""
    if omega > _least(system, tau):
        return ""
    m = system.batch
    half, twice = ("tau/2", "2") if m == 1 else (f"tau/{2 * m}", f"{2 * m}")
    return (
        f"omega = {omega:g} is at most {half} = {_least(system, tau):g}, so Q falls to 0 "
        f"from every start: take tau < {twice} omega"
    )


def _limit(system: SparsePCA, values: Mapping[str, Array], times: Array) -> str:
    still = np.abs(values["Q"]).max() <= ZERO
    return _stays(system) if still else _weak(system)


def _states(system: SparsePCA, overlap: Array, stable: Mask, informative: Mask) -> str:
    if np.any(stable & informative):
        return ""
    if motion(system).moves:
        return untracked(system)
    return _weak(system) or (
        "no informative state was found to be stable: take a smaller step size, a weaker "
        "regularizer or a larger omega"
    )


def _transitions(
    system: SparsePCA, parameter: str, overlap: Array, ends: tuple[float, float] | None
) -> str:
    if overlap.size:
        return ""
    if signal(system).constant == 0 and parameter == "tau":
        return _weak(system)
    return searched(parameter, ends)


NOTES = Notes(
    _limit,
    _states,
    _transitions,
    data=data_notes(
        1,
        "subtract the mean of every column and divide by the standard deviation of the noise (not "
        "hdica.whiten, which leaves no principal component)",
    ),
)
