"""Hebbian ICA as the rest of hdica knows it, and what to change where it learns nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.systems import system as registry
from hdica.systems.hebbian_ica import (
    escapes,
    optimum,
    passage,
    skewed,
    tracking,
    trajectories,
)
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import ZERO, Array
from hdica.systems.projected import learning

Mask = NDArray[np.bool_]
_ESCAPE = (
    "ask how long noise takes to leave 0 (hdica.escape_time of hdica.HebbianICA: n^3 steps for "
    "odd f)"
)
_WEAKER = (
    "no informative state was found to be stable: take a smaller mu, or the sign of sigma that "
    "holds the optimum (sigma = 'stability', hdica.escape_signs)"
)


def _rule(system: HebbianICA, i: int, tau: float | None, begin: float) -> learning.Rule:
    """Projection i with source i alone, in the terms of a rule with one overlap."""
    sign = float(hebbian.signs(system)[i])
    text = hebbian.turned_text(system, sign)
    turn = 1 if text == system.nonlinearity else -1
    return learning.Rule(
        f=hebbian.turned(system, sign),
        source=hebbian.sources(system)[i],
        tau=tau,
        begin=begin,
        closed=True,
        overlap="R",
        step="mu",
        turned=f"sigma = [{turn}]",
    )


def rule_of(system: HebbianICA) -> learning.Rule | None:
    """The system as a rule with one overlap and a nonlinearity, or None if it is none."""
    if system.shape != (1, 1) or hebbian.unit(system) != "mu" or hebbian.unplain(system):
        return None
    r0 = hebbian.start_overlap(system)
    try:
        begin = 0.0 if r0 is None else float(r0[0, 0])
        return _rule(system, 0, hebbian.mu_of(system).constant, begin)
    except HdicaError:
        return None


def _limit(system: HebbianICA, values: Mapping[str, Array], times: Array) -> str:
    path = values["R"]
    still = np.flatnonzero(np.abs(path).max(axis=(0, 2)) <= ZERO).tolist()
    if len(still) == system.projections:
        return (
            "the start has overlap 0, as a random one has as n grows, and the limit stays at R = 0 "
            f"for ever on this scale of time (t = k/n): {learning.BEGIN}, or {_ESCAPE}"
        )
    if still:
        named = ", ".join(str(i) for i in still)
        return (
            f"of projection {named} the start has R = 0, and the limit stays there for ever on "
            f"this scale of time (t = k/n): start it with an overlap, or {_ESCAPE}"
        )
    rule = rule_of(system)
    return learning.fallen(rule, float(path.ravel()[-1])) if rule else ""


def _states(system: HebbianICA, overlap: Array, stable: Mask, informative: Mask) -> str:
    rule = rule_of(system)
    if rule is not None:
        return learning.nowhere(rule)[0]
    return "" if np.any(stable & informative) else _WEAKER


def _transitions(
    system: HebbianICA, parameter: str, overlap: Array, ends: tuple[float, float] | None
) -> str:
    # One rule a pair of projection i and source i, which critical values take apart.
    pairs = 0 if hebbian.unplain(system) else min(system.shape)
    rules = [_rule(system, i, 1.0, 0.0) for i in range(pairs)]
    if overlap.size:
        alone = len(rules) == 1 and learning.other_side(rules[0], overlap)
        return learning.mirrored(rules[0]) if alone else ""
    why = dict.fromkeys(learning.unlearnable(rule) for rule in rules)
    return registry.joined(learning.searched(parameter, ends), *why)


NOTES = registry.Notes(_limit, _states, _transitions, complete=lambda system: True)


__all__ = ["SYSTEM", "HebbianICA"]

SYSTEM = registry.System(
    parameters=HebbianICA,
    title="Hebbian ICA with several projections and sources",
    short="Hebbian ICA",
    papers=(registry.work("Rattray 2002"),),
    order_parameters=(
        registry.OrderParameter(
            "R", "overlap R = W'A_s of projection and source", ("projection", "source"), even=True
        ),
        registry.OrderParameter("Q", "overlap Q = W'W of two projections", ("projection", "other")),
    ),
    controls=(registry.Control("mu", step=True),),
    dimensions=(
        registry.Dimension("projection", "projection i, a column of W", entries=True),
        registry.Dimension("other", "another projection", entries=True),
        registry.Dimension("source", "source j", entries=True),
        registry.Dimension("row", "row i of an eigenmatrix: a projection", entries=True),
        registry.Dimension("column", "column j of an eigenmatrix: a source", entries=True),
        registry.Dimension("age", "time over the mean time of the first escape, or of the last"),
        registry.Dimension("r", "r = sqrt(n) R"),
    ),
    symbols={
        "R": registry.Symbol("<i>R</i>", "$R$", "R"),
        "Q": registry.Symbol("<i>Q</i>", "$Q$", "Q"),
        "R_ij": registry.Symbol("<i>R<sub>ij</sub></i>", "$R_{ij}$", "R_ij"),
        "R0": registry.Symbol("<i>R</i><sub>0</sub>", "$R_0$", "R₀"),
        "r": registry.Symbol("<i>r</i> = √<i>n</i> <i>R</i>", r"$r = \sqrt{n}\,R$", "r = √n R"),
        "U": registry.Symbol("<i>U</i>(<i>r</i>)/<i>D</i>", "$U(r)/D$", "U(r)/D"),
        "mu_c": registry.Symbol("μ<sub>c</sub>", r"$\mu_\mathrm{c}$", "μ_c"),
        "mu0": registry.Symbol("μ<sub>0</sub>", r"$\mu_0$", "μ₀"),
        **registry.in_words(
            first="time of the first passage",
            last="time of the last passage",
            ode="ODE",
            clt="ODE with fluctuations",
            escape="diffusion in the limit",
            escape_exact="exact chain at n",
            escape_diffusion="diffusion at n",
            escape_times="chains",
            skewed_escape="diffusion in the limit",
            skewed_escape_times="chains",
            annealed="asymptotic formula",
            fokker_planck="Fokker–Planck equation",
        ),
    },
    methods=(
        *trajectories.METHODS,
        *escapes.METHODS[:1],
        *passage.METHODS[:1],
        *escapes.METHODS[1:],
        *skewed.METHODS,
        *passage.METHODS[1:],
        *optimum.METHODS,
        tracking.BEST_STEP,
    ),
    notes=NOTES,
    functions={
        "best_step": "hdica.systems.projected.best_step",
        **dict.fromkeys(
            ("convert", "asymptotics", "conflict_region", "escape_signs"),
            "hdica.systems.hebbian_ica.api",
        ),
    },
    horizon=100.0,
    examples=(
        {"mu": 0.05, "sigma": [-1], "start": {"overlap": 0.7}},
        {"nu": 1.0, "sigma": [-1]},
        {"mu": 0.1, "sources": ["rademacher"], "sigma": [-1], "motion": {"drift": 1e-3}},
        {
            "nu2": 2.0,
            "sources": [{"discrete": {"values": [2, -0.5], "weights": [0.2, 0.8]}}],
            "nonlinearity": "x**2 - 1",
        },
        {
            "mu": 0.1,
            "sources": ["uniform", "laplace"],
            "projections": 2,
            "sigma": [-1, 1],
            "start": {"overlap": [[0.6, 0.1], [0.0, 0.5]]},
        },
        {"mu": "1/(t + 10)", "sigma": [-1], "start": {"overlap": 0.9}},
    ),
)
