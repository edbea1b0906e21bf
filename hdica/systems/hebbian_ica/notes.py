"""Why Hebbian ICA learns nothing, and what to change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.systems.hebbian_ica.fields import (
    mu_of,
    signs,
    sources,
    start_overlap,
    turned,
    turned_text,
    unit,
    unplain,
)
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.outputs import ZERO
from hdica.systems.projected import learning
from hdica.systems.system import Notes, joined

Array = NDArray[np.float64]
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
    sign = float(signs(system)[i])
    text = turned_text(system, sign)
    turn = 1 if text == system.nonlinearity else -1
    return learning.Rule(
        f=turned(system, sign),
        source=sources(system)[i],
        tau=tau,
        begin=begin,
        closed=True,
        overlap="R",
        step="mu",
        turned=f"sigma = [{turn}]",
    )


def rule_of(system: HebbianICA) -> learning.Rule | None:
    """The system as a rule with one overlap and a nonlinearity, or None if it is none."""
    alone = (system.projections, len(system.sources)) == (1, 1)
    if not alone or unit(system) != "mu" or unplain(system):
        return None
    r0 = start_overlap(system)
    try:
        return _rule(system, 0, mu_of(system).constant, 0.0 if r0 is None else float(r0[0, 0]))
    except HdicaError:
        return None


def _rules(system: HebbianICA) -> list[learning.Rule]:
    """One rule a pair of projection i and source i, which critical values take apart."""
    if unplain(system):
        return []
    return [_rule(system, i, 1.0, 0.0) for i in range(min(system.projections, len(system.sources)))]


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
    rules = _rules(system)
    if overlap.size:
        alone = len(rules) == 1 and learning.other_side(rules[0], overlap)
        return learning.mirrored(rules[0]) if alone else ""
    why = dict.fromkeys(learning.unlearnable(rule) for rule in rules)
    return joined(learning.searched(parameter, ends), *why)


NOTES = Notes(_limit, _states, _transitions, complete=lambda system: True)
