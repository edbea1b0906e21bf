"""Why a result shows no learning, and what to change: notes of limits, fixed points, transitions.

Where the overlap alone closes the limit, dQ/dt = tau D1(Q) + tau^2 D2(Q) with D2 against Q, and

    D1 = -(kappa3 <f''> Q^2/2 + kappa4 <f'''> Q^3/6 + ...)

near Q = 0: the sign of f decides whether any step size learns a source, and with which sign of Q.
Q is a steady state at the step size T(Q) = -D1/D2: where T is positive, some step size learns, and
T < 0 is what -f would learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fixed_points import FixedPoints, find_fixed_points
from hdica.systems.hebbian_ica.convert import online_of
from hdica.systems.hebbian_ica.escape.coefficients import cumulants, mean_derivative
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.online_ica import system as online_ica
from hdica.systems.online_ica.system import OnlineICA
from hdica.systems.shared.fields import formula, prior, schedule, source, start
from hdica.systems.sparse_pca import system as sparse_pca
from hdica.systems.sparse_pca.system import SparsePCA

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
ZERO = 1e-9
"""Overlaps this small are the start's own 0 with rounding; a state this near to 0 is Q = 0."""
_OVERLAPS = np.delete(np.linspace(-1.0, 1.0, 4001), 2000)
_BEGIN = "start with an overlap, such as start={'overlap': 0.5}"
_ESCAPE = "hdica.escape_time of hdica.HebbianICA: n^3 steps for odd f"


@dataclass(frozen=True)
class Rule:
    """Online ICA, or Hebbian ICA of one projection and one source in its terms.

    Parameters
    ----------
    online
        The system as online ICA.
    overlap, step
        What the user calls Q and tau.
    turned
        What reverses the sign of f, as the user would write it.
    """

    online: OnlineICA
    overlap: str
    step: str
    turned: str

    @property
    def parts(self) -> tuple[Formula, Source]:
        """The nonlinearity and the law of the source."""
        return formula(self.online, "nonlinearity"), source(self.online)

    @property
    def closed(self) -> bool:
        """Whether the overlap alone closes the limit."""
        return formula(self.online, "regularizer").slope_if_linear is not None

    @property
    def drift(self) -> Drift:
        """The drift without what a regularizer adds."""
        return online_ica.drift(_bare(self.online))


def joined(*notes: str) -> str:
    """Notes as one text, empty ones left out."""
    return "; ".join(note for note in notes if note)


def negated(text: str) -> str:
    """The formula -f as one would write it."""
    inner = text[2:-1] if text.startswith("-(") and text.endswith(")") else ""
    depths = np.cumsum([(c == "(") - (c == ")") for c in inner] or [-1])
    return inner if depths.min() >= 0 else f"-({text})"


def _bare(system: OnlineICA) -> OnlineICA:
    """The same without a regularizer; as it is, where that is linear and so does nothing."""
    if formula(system, "regularizer").slope_if_linear is not None:
        return system
    return system.model_copy(update={"regularizer": "0"})


def rule_of(system: Any) -> Rule | None:
    """The system as a rule with one overlap and a nonlinearity, or None if it is none."""
    if isinstance(system, OnlineICA):
        turned = f"nonlinearity = {negated(system.nonlinearity)!r}"
        return Rule(system, "Q", "tau", turned)
    if isinstance(system, HebbianICA) and (system.projections, len(system.sources)) == (1, 1):
        try:
            online = online_of(system)
        except HdicaError:  # adaptive signs, or a step size on another scale
            return None
        sign = 1 if online.nonlinearity == system.nonlinearity else -1
        return Rule(online, "R", "mu", f"sigma = [{sign}]")
    return None


@lru_cache(maxsize=64)
def _step_sizes(drift: Drift) -> tuple[float, float]:
    """Largest and smallest T(Q): the step size above which nothing is learned, if it is > 0."""
    one, two = drift.at(_OVERLAPS, 1.0), drift.at(_OVERLAPS, 2.0)
    d1, d2 = (4 * one - two) / 2, (two - 2 * one) / 2
    moves = d2 != 0.0  # as x^3 - x does not at Q = 1 with a source of +-1
    steady = -d1[moves] / d2[moves]
    return float(steady.max()), float(steady.min())


def unlearnable(rule: Rule) -> str:
    """That no step size learns the source with this sign of f; empty if some does."""
    largest, smallest = _step_sizes(rule.drift)
    if largest > ZERO:
        return ""
    f, law = rule.parts
    without = "" if rule.closed else "without its regularizer "
    if not smallest < -ZERO:
        return (
            f"{without}no step size learns the source {law.label} with nonlinearity = {f.text!r}, "
            f"nor with -f (<c f> = {rule.overlap} <f'> at every {rule.overlap}, as for a Gaussian "
            "source or a linear f): take another source or nonlinearity"
        )
    why, kind = _cause(f, law)
    return (
        f"{without}no step size learns the source {law.label} with this sign of f: "
        f"{rule.overlap} falls to 0 from every start{why}; take {rule.turned}{kind}"
    )


def _cause(f: Formula, law: Source) -> tuple[str, str]:
    """The sign rule near Q = 0 in words, and which sources would be learned."""
    try:
        kurtosis = float(cumulants(law, 4)[4])
        third = mean_derivative(f, law, 0.0, 3)[0]
    except HdicaError:  # no fourth moment: the sign of f is wrong all the same
        return "", ""
    if not kurtosis * third > ZERO:
        return "", ""
    other = "'uniform' (kappa4 < 0)" if kurtosis > 0 else "'laplace' (kappa4 > 0)"
    why = f" (kappa4 <f'''> = {kurtosis * third:.3g} > 0; kappa4 = {kurtosis:.3g})"
    return why, f", or a source such as {other}"


def _side(rule: Rule) -> float:
    """The sign of xi that the start is nearer to; + for a start at 0."""
    return -1.0 if start(rule.online).overlap(prior(rule.online)) < 0 else 1.0


def _mirrored(rule: Rule) -> str:
    """That only the other sign of the feature is learned than that of the start."""
    wanted, found = ("+", "<") if _side(rule) > 0 else ("-", ">")
    return (
        f"with this sign of f the source {rule.parts[1].label} is learned with {rule.overlap} "
        f"{found} 0 alone, as {'-' if wanted == '+' else '+'}xi: take {rule.turned} for {wanted}xi"
    )


def _odd(f: Formula) -> bool:
    x = np.array([0.3, 1.1, 2.7])
    return bool(np.allclose(f.value(x), -f.value(-x), rtol=1e-12, atol=0.0))


def _too_large(rule: Rule, tau: float) -> str:
    most = _step_sizes(rule.drift)[0]
    return (
        f"no informative state is stable at {rule.step} = {tau:g}: {rule.overlap} falls to 0 from "
        f"every start; take {rule.step} below its critical value {most:.4g} (hdica.critical)"
    )


def _nowhere(rule: Rule) -> tuple[str, FixedPoints | None]:
    """Why no start on the side of this one learns, and the states at a constant step size."""
    found, tau = unlearnable(rule), schedule(rule.online).constant
    if found or tau is None:
        return found, None
    points = find_fixed_points(rule.drift, tau)
    stable = points.q[points.stable & (np.abs(points.q) > ZERO)]
    if not stable.size:
        return _too_large(rule, tau), points
    return "" if np.any(_side(rule) * stable > 0) else _mirrored(rule), points


def _fallen(rule: Rule, last: float) -> str:
    """Why the overlap of a closed limit falls to 0 from a start other than 0, if it does."""
    tau = schedule(rule.online).constant
    q0 = start(rule.online).overlap(prior(rule.online))
    # One overlap at one step size moves one way for ever.
    if tau is not None and q0 * last > 0 and abs(last) > abs(q0):
        return ""
    found, points = _nowhere(rule)
    if found or points is None:
        return found
    barrier = points.q[~points.stable & (_side(rule) * points.q > ZERO)]
    edge = float(barrier[np.argmin(np.abs(barrier))]) if barrier.size else 0.0
    if abs(q0) >= abs(edge):
        return ""
    return (
        f"the start {rule.overlap} = {q0:.4g} lies below the unstable state {rule.overlap} = "
        f"{edge:.4g} (hdica.fixed_points), so {rule.overlap} falls to 0: start with a larger "
        f"overlap or take {rule.step} smaller"
    )


def _stays(system: Any) -> str:
    """That a limit which starts at Q = 0 stays there, and what to do."""
    lead = (
        "the start has overlap 0, as a random one has as n grows, and the limit stays at "
        f"{'R' if isinstance(system, HebbianICA) else 'Q'} = 0 for ever on this scale of time "
        f"(t = k/n): {_BEGIN}"
    )
    if not isinstance(system, SparsePCA):
        return f"{lead}, or ask how long noise takes to leave 0 ({_ESCAPE})"
    tau = schedule(system).constant
    if tau is not None and system.omega > tau / 2 and not sparse_pca.overlap_refusal(system):
        grows = tau * (system.omega - tau / 2)
        return f"{lead}; at finite n noise of order n^-1/2 grows like exp({grows:.3g} t)"
    return lead


def _projections(system: HebbianICA, r: Array) -> str:
    """Which projections stay at R = 0; r has shape (T, K, M)."""
    still = np.flatnonzero(np.abs(r).max(axis=(0, 2)) <= ZERO).tolist()
    if not still:
        return ""
    if len(still) == system.projections:
        return _stays(system)
    named = ", ".join(str(i) for i in still)
    return (
        f"of projection {named} the start has R = 0, and the limit stays there for ever on this "
        "scale of time (t = k/n): start it with an overlap, or ask how long noise takes to leave 0 "
        f"({_ESCAPE})"
    )


def limit_note(system: Any, values: dict[str, Array], times: Array, method: str) -> str:
    """What the limit of a system that learns nothing should say; empty if nothing.

    Parameters
    ----------
    system
        A system.
    values
        Its limit: ``Q``, shape (T,), or ``R``, shape (T, K, M).
    times
        Times, shape (T,).
    method
        How it was computed.
    """
    if method not in ("ode", "pde", "clt") or times[-1] == 0.0:
        return ""
    path = values["R"] if isinstance(system, HebbianICA) else values["Q"]
    if not np.all(np.isfinite(path)):
        return ""
    still = _projections(system, path) if isinstance(system, HebbianICA) else ""
    if still or (path.ndim == 1 and np.abs(path).max() <= ZERO):
        return still or _stays(system)
    if isinstance(system, SparsePCA):
        return _weak(system)
    rule = rule_of(system)
    return _fallen(rule, float(path.ravel()[-1])) if rule and rule.closed else ""


def _weak(system: SparsePCA) -> str:
    """That the signal of sparse PCA is too weak for Oja's method; empty if it is not."""
    tau = schedule(system).constant
    if system.omega == 0:
        return "omega = 0 leaves nothing to learn: take omega > 0"
    if tau is None or system.omega > tau / 2 or sparse_pca.overlap_refusal(system):
        return ""
    return (
        f"omega = {system.omega:g} is at most tau/2 = {tau / 2:g}, so Q falls to 0 from every "
        "start: take tau < 2 omega"
    )


def _other_side(rule: Rule, overlap: Array) -> bool:
    """Whether no state has the sign of the start; mirror images may be left out for odd f."""
    return not np.any(_side(rule) * overlap > 0) and not _odd(rule.parts[0])


def states_note(system: Any, overlap: Array, stable: Mask, informative: Mask) -> str:
    """What fixed points without one that learns the feature should say; empty if there is one.

    Parameters
    ----------
    system
        A system.
    overlap
        Q of each, or the largest entry of R.
    stable, informative
        Whether each is stable, and whether it is informative.
    """
    good = overlap[stable & informative]
    rule = rule_of(system)
    if rule is not None and rule.closed:
        return _nowhere(rule)[0]
    if good.size:
        return _mirrored(rule) if rule and _other_side(rule, good) else ""
    weak = _weak(system) if isinstance(system, SparsePCA) else ""
    lead = f"no informative state was found to be stable: {_WEAKER[type(system).__name__]}"
    return weak or joined(lead, unlearnable(rule) if rule else "")


_WEAKER = {
    "OnlineICA": "take a smaller step size or a weaker regularizer",
    "SparsePCA": "take a smaller step size, a weaker regularizer or a larger omega",
    "HebbianICA": (
        "take a smaller mu, or the sign of sigma that holds the optimum (sigma = 'stability', "
        "hdica.escape_signs)"
    ),
}


def transitions_note(
    system: Any, parameter: str, overlap: Array, ends: tuple[float, float] | None
) -> str:
    """What transitions that say nothing of learning should say; empty if they do.

    Parameters
    ----------
    system
        A system.
    parameter
        The parameter that varies.
    overlap
        Q or R at each transition.
    ends
        Where transitions were searched; None where there can be no others.
    """
    rules = _rules(system)
    if overlap.size:
        return _mirrored(rules[0]) if len(rules) == 1 and _other_side(rules[0], overlap) else ""
    if isinstance(system, SparsePCA) and system.omega == 0 and parameter == "tau":
        return _weak(system)
    lead = ""
    if ends is not None:
        lead = (
            f"no transition was found for {parameter} from {ends[0]:g} to {ends[1]:g}: give low "
            "and high to search elsewhere"
        )
    step = parameter in ("tau", "mu")
    return joined(lead, *dict.fromkeys(unlearnable(rule) for rule in rules if step))


def corner_note(value: Array, overlap: Array, kind: Any) -> str:
    """That a fold and a junction at the same value and overlap are one point; empty if none are.

    Parameters
    ----------
    value, overlap
        Critical value and Q at each transition.
    kind
        ``"fold"``, ``"junction"`` or another word at each.
    """
    kinds = np.array([str(one) for one in kind], dtype=np.str_)
    found = []
    for i in np.flatnonzero(kinds == "fold"):
        same = (value == value[i]) & (overlap == overlap[i]) & (kinds == "junction")
        found += [f"{value[i]:.6g}"] if same.any() else []
    if not found:
        return ""
    return (
        f"the fold and the junction at {', '.join(found)} are one point: two states merge there "
        "with a corner, because one of them begins to condense"
    )


def closed_critical(system: Any) -> bool:
    """Whether critical finds every transition in the step size, and not those of a range."""
    rule = rule_of(system)
    return isinstance(system, HebbianICA) or (rule is not None and rule.closed)


def _rules(system: Any) -> list[Rule]:
    """One rule a pair of projection i and source i, which critical takes apart."""
    if not isinstance(system, HebbianICA) or system.sigma == "adaptive":
        rule = rule_of(system)
        return [rule] if rule else []
    from hdica.systems.hebbian_ica.fields import signs

    found = []
    for sign, spec in zip(signs(system).tolist(), system.sources, strict=False):
        content = {"nonlinearity": system.nonlinearity, "constants": system.constants, "mu": 1.0}
        one = HebbianICA(sources=[spec], sigma=[int(sign)], start="zero", **content)
        rule = rule_of(one)
        found += [rule] if rule else []
    return found
