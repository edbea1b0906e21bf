"""Does a simulation agree with its limit? The test, its negative control and its verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy import stats

from hdica.verdict.cells import AGREES, BOTH, CLEAR, DIFFERS, MOST, NEAR, POWER, UNDECIDED, Array
from hdica.verdict.ladder import MIN_SEEDS, Contrast, Ladder, contrast, fit_matrix, misfit

LONG_NAMES = {
    "verdict": "agrees, differs or undecided",
    "why": "reason of the verdict",
    "control_p": "p-value of the same test against the control, the larger of both signs",
    "control_rejected": "1 where the wrong drift of the control is rejected",
    "power": "chance that the wrong drift of the control is rejected",
    "seeds_needed": "seeds at each n that would decide an open comparison 19 times in 20",
    "seeds_needed_error": "standard error of the seeds that would decide",
    "n_from": "smallest n in the test",
    "n_count": "number of n in the test",
    "count": "seeds that are done",
}
"""Of what every verdict comes with."""

WINDOW_LEVEL = 0.05
"""Smaller n are dropped while the means deviate from the expansion in 1/n at this level."""
WRONG_DRIFT = 0.02
"""Share by which the drift of the controls that limits come with is wrong."""
BLIND = "the wrong drift of the control would not have been rejected either"
"""Why nothing is decided with too few seeds."""
STILL = "no drift moves it"
"""Why nothing is judged where a wrong drift predicts the same, such as a law at the start."""
FIXED = "runs that do not scatter lie off the limit, and no error tells by how much they may"
SAME = 1e-9
"""Numbers that differ by less than this share are one number."""
ROUNDS, EAGER = 20, 5
CLOSE = 3e-3
"""Iterations for the number of seeds, those with whole steps, and the step at which they end."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of the comparison of one grid point.

    The p-value is of the hypothesis that the simulation tends to the limit, the score the largest
    normal score over times. ``control_p`` and ``control_rejected`` are the same against the limit
    with a wrong drift, the control; ``power`` is the chance that such a control is rejected.

    ``seeds_needed``, with its standard error, are the seeds at each n that would decide an open
    comparison 19 times in 20: so many reject the control, or, of a rejection near the level, a
    difference as large as the measured one clearly. Infinite where no number would do; NaN where
    the verdict is not open, or what is missing is not seeds.

    ``n_from`` is the smallest n used, ``n_count`` how many. Over times: C(t) of the finite-n term
    C/n, given the limit, and the mean at 1/n -> 0, each with its standard error; C has none where
    theory knows it, and ``term_known`` is then 1.
    """

    verdict: str
    why: str
    coefficient: Array
    coefficient_error: Array
    extrapolated: Array
    extrapolated_error: Array
    p_value: float = np.nan
    score: float = np.nan
    control_p: float = np.nan
    control_rejected: bool = False
    power: float = np.nan
    seeds_needed: float = np.nan
    seeds_needed_error: float = np.nan
    n_from: float = np.nan
    n_count: int = 0
    term_known: bool = False


def controlled(limits: xr.Dataset, share: float) -> xr.Dataset:
    """Limits whose ``control`` has a drift that is wrong by a share, to first order in it."""
    if share == WRONG_DRIFT:
        return limits
    off = (limits["control"] - limits["limit"]) * (share / WRONG_DRIFT)
    return limits.assign(control=limits["limit"] + off)


def judge(
    runs: Ladder,
    limit: Array,
    tolerance: Array,
    control: Array,
    level: float,
    term: Array | None = None,
) -> Verdict:
    """Compare the simulation's mean, extrapolated in 1/n, with the limit.

    The claim is mean_n(t) = limit(t) + C(t)/n at every time with C(t) free; from four n on also
    D(t)/n^2, whose neglect would pass for a difference when n is small. The weighted fit of these
    powers has an intercept that is a *fixed* linear combination of independent means over seeds,
    so that its distance from the limit over its standard error is a Student statistic (Welch's
    degrees of freedom). The solver's own error, whose bound is the tolerance, is taken off the
    distance. The largest statistic over times is judged by Hunter's and Worsley's bound
    (:func:`hdica.verdict.ladder.exceedance`) with correlations estimated from the seeds. ``level``
    is the chance of a false "differs" for this grid point.

    The smallest n are dropped while the means' deviation from *every* such curve is significant:
    residuals are independent of the intercept, so that this does not favour agreement. With a
    single n there is no curve: the mean itself is compared, and a distance proves no difference.

    Where theory knows the ``term`` C(t), finite at every time, nothing is fitted in its place: the
    means less C/n are those of the limit (from three n on but for D(t)/n^2), which a single n can
    tell, too, and more sharply than an intercept that is extrapolated.

    The identical test must reject the control, a limit whose drift is wrong (NaN if there is none),
    and one that is off by as much to the other side: else the data could not have told right from
    wrong, and the verdict is "undecided". So is a rejection whose p-value is not :data:`CLEAR`
    times below the level (:data:`NEAR`).

    Times at which no run scatters have no statistic. A mean there that is off by more than the
    tolerance and a term of order 1/n differs; one that is off by less agrees with nothing.
    """
    if len(runs) == 0:
        return nothing(limit, f"no n has {MIN_SEEDS} finished seeds")
    if not np.isfinite(limit).all():
        return nothing(limit, "the limit has no result here")
    term_known = term is not None
    if term is not None:
        pairs = zip(runs.n, runs.runs, strict=True)
        runs = Ladder(runs.n, tuple(run - term / n for n, run in pairs))
    used = _window(runs, term_known)
    fit = fit_matrix(used, _basis(used, term_known))[0]
    test = contrast(used, fit, limit, tolerance)
    # Off by as much to the other side, too: a limit that is wrong there must not agree either.
    sides = [control, 2 * limit - control] if np.isfinite(control).all() else []
    wrong = [contrast(used, fit, side, tolerance).p_value for side in sides]
    control_p = max(wrong, default=np.nan)
    beyond = np.where(test.informative, 0.0, np.abs(test.estimate) - test.tolerance)
    size = np.maximum(np.abs(limit), np.abs(test.estimate + limit))
    p = 0.0 if (beyond > size / used.n[-1]).any() else test.p_value
    verdict, why = _decided(p, control_p, level, len(used) + term_known)
    if why == BLIND and (np.abs(control - limit) <= SAME * size).all():
        why = STILL
    if verdict == AGREES and (beyond > SAME * size).any():
        verdict, why = UNDECIDED, FIXED
    c, c_error = _finite_n_term(used, limit) if term is None else (term, np.zeros_like(term))
    curves = c, c_error, test.estimate + limit, test.error
    power = test.power(control - limit, level) if wrong else np.nan
    needed = _seeds(test, control - limit, level, why, float(used.counts.max()))
    return Verdict(
        verdict, why, *curves, p, test.score, control_p, control_p < level, power,
        *needed, float(used.n[0]), len(used), term_known,
    )  # fmt: skip


def _basis(runs: Ladder, term_known: bool = False) -> Array:
    """Columns 1, 1/n and, from four n on, 1/n^2; scaled by the smallest n.

    Without 1/n where the term is known: 1 and, from three n on, 1/n^2.
    """
    if term_known:
        return (runs.n[0] / runs.n)[:, None] ** np.array([0, 2][: 2 if len(runs) > 2 else 1])
    columns = min(len(runs), 3 if len(runs) > 3 else 2)
    return (runs.n[0] / runs.n)[:, None] ** np.arange(columns)


def _window(runs: Ladder, term_known: bool) -> Ladder:
    """The ladder from the smallest n on from which the means follow the expansion in 1/n."""
    least = 1 if term_known else 2
    for start in range(len(runs) - least):
        used = runs.above(start)
        if misfit(used, _basis(used, term_known)) >= WINDOW_LEVEL:
            return used
    return runs.above(max(len(runs) - least, 0))


def _finite_n_term(runs: Ladder, limit: Array) -> tuple[Array, Array]:
    """C(t) of limit + C/n (+ D/n^2) and its standard error; NaN for a single n."""
    if len(runs) < 2:
        nothing = np.full_like(limit, np.nan)
        return nothing, nothing
    a = fit_matrix(runs, _basis(runs)[:, 1:])[0] * runs.n[0]
    term = contrast(runs, a, a.sum() * limit, np.zeros_like(limit))
    return term.estimate, term.error


def _decided(p: float, control_p: float, level: float, count: int) -> tuple[str, str]:
    """Verdict and its sentence, by the p-value of the control (NaN without) and the number of n."""
    if p < level and count == 1:
        return UNDECIDED, "a single n cannot tell a finite-n term from a wrong limit"
    if p < level / CLEAR:
        return DIFFERS, "the distance to the limit exceeds its error bars"
    if p < level:
        return UNDECIDED, NEAR
    if np.isnan(control_p):
        return UNDECIDED, "the limit has no negative control"
    if control_p >= level:
        return UNDECIDED, BLIND
    return AGREES, "within the error bars, and the wrong drift of the control is rejected"


def _seeds(
    test: Contrast, wrong: Array, level: float, why: str, seeds: float
) -> tuple[float, float]:
    """Seeds that would decide, with their standard error; NaN where seeds are not what lacks."""
    if why not in (BLIND, NEAR):
        return np.nan, np.nan
    known = np.isfinite(wrong).all()
    needs = [seeds_that_decide(test, wrong, level, seeds, BOTH)] if known else []
    if why == NEAR:
        needs.append(seeds_that_decide(test, test.estimate, level / CLEAR, seeds))
    return max(needs)


def nothing(limit: Array, why: str) -> Verdict:
    """Verdict where there is nothing to compare, with the reason; curves have the limit's shape."""
    empty = np.full_like(limit, np.nan)
    return Verdict(UNDECIDED, why, empty, empty, empty, empty)


def seeds_that_decide(
    test: Contrast, shift: Array, level: float, seeds: float, chance: float = POWER
) -> tuple[float, float]:
    """Seeds at each n with which a true contrast ``shift`` is rejected with a ``chance``.

    The standard error of the number, which comes with it, is that of the scatter it is computed
    from: it grows as the variance over seeds, whose relative error is sqrt(2/dof). The number is
    infinite where no number of seeds would do, because the difference is nowhere larger than the
    reference's own error, and NaN where nothing scatters. ``seeds`` are those at each n now, at
    least six. The score that is needed depends on their number through the degrees of freedom
    alone: iteration finds both, with half steps of the logarithm where whole ones do not.
    """
    seen = test.distance(shift)
    if not seen.size:
        return math.nan, math.nan
    if not seen.any():
        return math.inf, math.nan
    factor = 1.0
    for turn in range(ROUNDS):
        then = max(factor, MIN_SEEDS / seeds)
        needed = test.critical(level, (then * seeds - 1) / (seeds - 1)) + stats.norm.ppf(chance)
        with np.errstate(divide="ignore"):
            wanted = (needed / seen) ** 2
        telling = int(np.argmin(wanted))
        step = (float(wanted[telling]) / factor) ** (1.0 if turn < EAGER else 0.5)
        factor *= step
        if abs(step - 1) < CLOSE:
            break
    many = factor * seeds
    if many > MOST:
        return math.inf, math.nan
    dof = float(test.dof[test.informative][telling])
    return max(many, MIN_SEEDS), many * math.sqrt(2 / dof)
