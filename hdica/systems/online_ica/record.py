"""Online ICA as the rest of hdica knows it, and what to change where it learns nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.systems.fields import formula, motion, noise_law, prior, schedule, source, start
from hdica.systems.method import ZERO, Array
from hdica.systems.online_ica.escape import trapped
from hdica.systems.online_ica.methods import METHODS
from hdica.systems.online_ica.system import (
    OnlineICA,
    chosen,
    learned,
    learned_text,
    mean_field,
    overlap,
)
from hdica.systems.projected import family, learning
from hdica.systems.projected.stream import SAMPLES_TO_TRY, data_notes
from hdica.systems.system import Dimension, Notes, Symbol, System, in_words, joined, work

Mask = NDArray[np.bool_]
_TAKEN = (
    "the start has overlap 0, as a random one has as n grows, and the limit stays at Q = 0; at "
    "finite n, entries of noise that is not normal are independent components, too, and the rule "
    "finds one of them in the place of the feature: begin with an overlap other than 0"
)
_STAYS = (
    "the start has overlap 0, as a random one has as n grows, and the limit stays at Q = 0 for "
    f"ever on this scale of time (t = k/n): {learning.BEGIN}, or ask how long noise takes to leave "
    "0 (hdica.escape_time with nu = n tau: n^3 steps for odd f)"
)


def rule_of(system: OnlineICA) -> learning.Rule:
    """The system as a rule with one overlap and a nonlinearity."""
    f = learned(system)
    return learning.Rule(
        f=f,
        source=source(system),
        tau=None if system.tau is None else schedule(system).constant,
        begin=start(system).overlap(prior(system)),
        closed=formula(system, "regularizer").slope_if_linear is not None,
        overlap="Q",
        step="tau",
        turned=f"nonlinearity = {learning.negated(learned_text(system))!r}",
        batch=system.batch,
    )


def _limit(system: OnlineICA, values: Mapping[str, Array], times: Array) -> str:
    path = values["Q"]
    if np.abs(path).max() <= ZERO:
        return _STAYS if noise_law(system) is None else _TAKEN
    rule = rule_of(system)
    if motion(system).moves:
        return ""
    return learning.fallen(rule, float(path[-1])) if rule.closed else ""


def _states(system: OnlineICA, overlap: Array, stable: Mask, informative: Mask) -> str:
    rule, good = rule_of(system), overlap[stable & informative]
    if motion(system).moves:
        return "" if good.size else learning.untracked(system)
    if rule.closed or good.size:
        return learning.states_say(rule, good)
    lead = "no informative state was found to be stable: take a smaller step size or a weaker"
    return joined(f"{lead} regularizer", learning.unlearnable(rule))


def _transitions(
    system: OnlineICA, parameter: str, overlap: Array, ends: tuple[float, float] | None
) -> str:
    rule = rule_of(system)
    if overlap.size:
        return learning.mirrored(rule) if learning.other_side(rule, overlap) else ""
    if motion(system).moves:
        return learning.too_fast(system)
    why = learning.unlearnable(rule) if parameter == rule.step else ""
    return joined(learning.searched(parameter, ends), why)


NOTES = Notes(
    _limit,
    _states,
    _transitions,
    complete=lambda system: rule_of(system).closed,
    chosen=chosen,
    data=data_notes(0, "hdica.whiten(data) makes of them what the rule assumes"),
)


AGE = Dimension("age", "time over the mean time of the escape")
__all__ = ["SYSTEM", "OnlineICA"]

SYSTEM = System(
    parameters=OnlineICA,
    title="Online ICA with one feature",
    short="online ICA",
    papers=(work("Wang and Lu 2017"),),
    order_parameters=(family.OVERLAP, family.PENALTY),
    controls=(family.TAU, family.RHO),
    dimensions=(family.FEATURE, family.GROUP, family.FOLLOWED, family.COLUMN, AGE),
    symbols={
        **family.SYMBOLS,
        "g": Symbol(
            "<i>g</i>(<i>q</i>) = τ<sup>−1</sup> d<i>q</i>/d<i>t</i>",
            r"$g(q) = \tau^{-1}\,\mathrm{d}q/\mathrm{d}t$",
            "g(q) = (1/τ) dq/dt",
        ),
        "escape_wkb": Symbol(
            "<i>n</i> <i>C</i> e<sup><i>nS</i></sup> steps",
            r"$n\,C\,e^{nS}$ steps",
            "n C exp(n S) steps",
        ),
        **in_words(
            first="time of the first passage",
            batch_fastica="offline FastICA",
            escape="diffusion in the limit",
            escape_exact="exact chain at n",
            escape_diffusion="diffusion at n",
            escape_ode="ODE",
            escape_times="chains",
        ),
    },
    methods=METHODS,
    mean_field=mean_field,
    overlap=overlap,
    leaving=trapped,
    functions={
        "best_step": "hdica.systems.projected.best_step",
        "escape_exponent": "hdica.systems.online_ica.escape",
    },
    notes=NOTES,
    horizon=40.0,
    examples=(
        {"tau": 0.05, "start": {"overlap": 0.7}},
        {
            "tau": 0.05,
            "regularizer": "0.1*sign(x)",
            "prior": {"sparse": 0.3},
            "start": {"overlap": 0.7},
        },
        {"tau": 0.05, **SAMPLES_TO_TRY},
        {"nu": 1.0, "source": "rademacher", "start": {"overlap": 0.0}},
        {"tau": 0.17, "source": "rademacher", "start": {"overlap": 0.95, "exact": True}},
        {"tau": 0.01, "source": "rademacher", "start": {"overlap": 0.3, "exact": True}},
        {
            "tau": 0.02,
            "prior": "gaussian",
            "motion": {"exchange": 0.001},
            "start": {"overlap": 0.7},
        },
    ),
)
