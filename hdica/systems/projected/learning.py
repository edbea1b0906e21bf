"""Why a rule with one overlap learns nothing, and what to change.

Where the overlap alone closes the limit, dQ/dt = tau D1(Q) + tau^2 D2(Q) with D2 against Q, and

    D1 = -(kappa3 <f''> Q^2/2 + kappa4 <f'''> Q^3/6 + ...)

near Q = 0: the sign of f decides whether any step size learns a source, and with which sign of Q.
Q is a steady state at the step size T(Q) = -D1/D2: where T is positive, some step size learns, and
T < 0 is what -f would learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import cumulants, mean_derivative
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fixed_points import FixedPoints, find_fixed_points
from hdica.limits.overlap.nonlinear import drift_of
from hdica.systems.fields import Projected, optional
from hdica.systems.method import ZERO, Array

_OVERLAPS = np.delete(np.linspace(-1.0, 1.0, 4001), 2000)
BEGIN = "start with an overlap, such as start={'overlap': 0.5}"


@dataclass(frozen=True)
class Rule:
    """A rule with one overlap and a nonlinearity, x <- x - tau f(u) y, in its user's words."""

    f: Formula
    source: Source  # the law of the source
    tau: float | None  # None if it is not constant
    begin: float  # the overlap at t = 0
    closed: bool  # whether the overlap alone closes the limit
    overlap: str  # what the user calls Q
    step: str  # and tau
    turned: str  # what reverses the sign of f, as the user would write it
    batch: int = 1  # samples of one update

    @property
    def drift(self) -> Drift:
        """The drift without what a regularizer adds."""
        return drift_of(self.f, self.source).of_batch(self.batch)

    @property
    def side(self) -> float:
        """The sign of xi that the start is nearer to; + for a start at 0."""
        return -1.0 if self.begin < 0 else 1.0


def negated(text: str) -> str:
    """The formula -f as one would write it."""
    inner = text[2:-1] if text.startswith("-(") and text.endswith(")") else ""
    depths = np.cumsum([(c == "(") - (c == ")") for c in inner] or [-1])
    return inner if depths.min() >= 0 else f"-({text})"


@lru_cache(maxsize=64)
def _step_sizes(drift: Drift) -> tuple[float, float]:
    """Largest and smallest T(Q): the step size above which nothing is learned, if it is > 0."""
    steady = _steady(drift, _OVERLAPS)
    return float(steady.max()), float(steady.min())


def _steady(drift: Drift, overlaps: Array) -> Array:
    """The step sizes T(Q) at which some overlaps are steady states."""
    one, two = drift.at(overlaps, 1.0), drift.at(overlaps, 2.0)
    d1, d2 = (4 * one - two) / 2, (two - 2 * one) / 2
    moves = d2 != 0.0  # as x^3 - x does not at Q = 1 with a source of +-1
    return np.asarray(-d1[moves] / d2[moves])


@lru_cache(maxsize=256)
def learned_sign(f: Formula, law: Source, begin: float) -> int:
    """+1 or -1: the sign of f with which the rule learns a source from the side of a start.

    The sign is that of T(Q) where it is largest in size, on the side of the overlap ``begin`` at
    t = 0 (that of xi for a start at 0): there T(Q) is the step size at which Q is a steady state of
    f, and -T(Q) of -f. Near Q = 0 it is that of -(kappa3 <f''> Q/2 + kappa4 <D3 f> Q^2/6), with
    the third derivative D3.

    Raises
    ------
    HdicaError
        If neither sign learns at any step size, or an average does not exist.
    """
    side = -1.0 if begin < 0 else 1.0
    steady = _steady(drift_of(f, law), _OVERLAPS[side * _OVERLAPS > 0])
    largest, smallest = float(steady.max()), float(steady.min())
    if max(largest, -smallest) <= ZERO:
        raise HdicaError(
            f"no step size learns the source {law.label} with nonlinearity = {f.text!r} nor with "
            "-f (<c f> = Q <f'> at every Q, as for a Gaussian source or a linear f): take another "
            "source or nonlinearity"
        )
    return 1 if largest >= -smallest else -1


def unlearnable(rule: Rule) -> str:
    """That no step size learns the source with this sign of f; empty if some does."""
    largest, smallest = _step_sizes(rule.drift)
    if largest > ZERO:
        return ""
    f, law = rule.f, rule.source
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


def mirrored(rule: Rule) -> str:
    """That only the other sign of the feature is learned than that of the start."""
    wanted, sense = ("+", "<") if rule.side > 0 else ("-", ">")
    return (
        f"with this sign of f the source {rule.source.label} is learned with {rule.overlap} "
        f"{sense} 0 alone, as {'-' if wanted == '+' else '+'}xi: take {rule.turned} for {wanted}xi"
    )


def odd(f: Formula) -> bool:
    """Whether f(-x) = -f(x) at some places, whatever f is written as."""
    x = np.array([0.3, 1.1, 2.7])
    return bool(np.allclose(f.value(x), -f.value(-x), rtol=1e-12, atol=0.0))


def nowhere(rule: Rule) -> tuple[str, FixedPoints | None]:
    """Why no start on the side of this one learns, and the states at a constant step size."""
    why, tau = unlearnable(rule), rule.tau
    if why or tau is None:
        return why, None
    points = find_fixed_points(rule.drift, tau)
    stable = points.q[points.stable & (np.abs(points.q) > ZERO)]
    if not stable.size:
        return (
            f"no informative state is stable at {rule.step} = {tau:g}: {rule.overlap} falls to 0 "
            f"from every start; take {rule.step} below its critical value "
            f"{_step_sizes(rule.drift)[0]:.4g} (hdica.critical)"
        ), points
    return "" if np.any(rule.side * stable > 0) else mirrored(rule), points


def fallen(rule: Rule, last: float) -> str:
    """Why the overlap of a closed limit falls to 0 from a start other than 0, if it does."""
    tau, q0 = rule.tau, rule.begin
    # One overlap at one step size moves one way for ever.
    if tau is not None and q0 * last > 0 and abs(last) > abs(q0):
        return ""
    why, points = nowhere(rule)
    if why or points is None:
        return why
    barrier = points.q[~points.stable & (rule.side * points.q > ZERO)]
    edge = float(barrier[np.argmin(np.abs(barrier))]) if barrier.size else 0.0
    if abs(q0) >= abs(edge):
        return ""
    return (
        f"the start {rule.overlap} = {q0:.4g} lies below the unstable state {rule.overlap} = "
        f"{edge:.4g} (hdica.fixed_points), so {rule.overlap} falls to 0: start with a larger "
        f"overlap or take {rule.step} smaller"
    )


def other_side(rule: Rule, overlap: Array) -> bool:
    """Whether no state has the sign of the start; mirror images may be left out for odd f."""
    return not np.any(rule.side * overlap > 0) and not odd(rule.f)


def states_say(rule: Rule, overlap: Array) -> str:
    """What the informative and stable states of a rule should say; empty if they learn."""
    if rule.closed:
        return nowhere(rule)[0]
    return mirrored(rule) if overlap.size and other_side(rule, overlap) else ""


def untracked(system: Projected) -> str:
    """That a feature moves too fast for the step size."""
    return (
        f"the feature is not tracked at tau = {optional(system, 'tau')!r} and motion = "
        f"{optional(system, 'motion')!r}: every steady state but Q = 0 is unstable or lost "
        "(hdica.best_step says which step sizes track it, and how fast it may move)"
    )


def too_fast(system: Projected) -> str:
    """That a feature moves too fast for any step size."""
    return (
        f"no step size tracks the feature at motion = {optional(system, 'motion')!r}: "
        "hdica.best_step has the fastest that can be tracked, largest_delta"
    )


def searched(parameter: str, ends: tuple[float, float] | None) -> str:
    """That no transition was found between two ends; empty where there can be no others."""
    if ends is None:
        return ""
    return (
        f"no transition was found for {parameter} from {ends[0]:g} to {ends[1]:g}: give low "
        "and high to search elsewhere"
    )
