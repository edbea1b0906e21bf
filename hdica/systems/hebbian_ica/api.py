"""Hebbian ICA as labelled data: asymptotics, signs that trap it, and what it is as online ICA.

One sign lets an entry of R leave 0, and one keeps the optimum stable: they may differ (Rattray
2002).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.sources import Source, make_source
from hdica.limits.averages.expectations import gain_at
from hdica.limits.escape import near_zero
from hdica.process.progress import USUAL, limited, shown
from hdica.systems.arguments import check_constants, check_range, finite, text
from hdica.systems.fields import formula, resting_refusal
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.labelled import by_method, candidates, described, named_method
from hdica.systems.online_ica.system import OnlineICA, learned_text
from hdica.systems.parameters import Parameters

_PLACES = 129


def restoring(phi: Formula, source: Source) -> float:
    """<s phi(s) - phi'(s)>: its sign is that of (14), its size xi the rate at the optimum."""
    for kink in phi.kinks:
        eps = 1e-9 * max(1.0, abs(kink))
        below, above = phi.value(np.array([kink - eps, kink + eps]))
        if abs(above - below) > 1e-6 * max(1.0, abs(above)):
            raise HdicaError(
                f"nonlinearity: {phi.text!r} is not allowed for the sign at the optimum "
                f"(it jumps at {kink:g}, allowed are continuous functions)"
            )
    return gain_at(phi, source, 1.0)[0]


@dataclass(frozen=True)
class Conflict:
    """The sign that keeps an optimum stable against the sign that lets an entry reach it."""

    restoring: float  # <s phi(s) - phi'(s)>
    product: float  # kappa4 <phi'''(z)>

    @property
    def stability(self) -> int:
        """Sigma by (14): R = +-1 is stable; right once the source has been found."""
        return int(np.sign(self.restoring))

    @property
    def escape(self) -> int:
        """Sigma by (23): R = 0 can be left; right while the source is being searched."""
        return int(np.sign(self.product))

    @property
    def present(self) -> bool:
        """Whether no sigma does both."""
        return self.stability * self.escape < 0

    @property
    def sentence(self) -> str:
        """What that means."""
        if self.stability * self.escape == 0:
            which = (
                "leave R = 0 on the scale of n^3 steps" if self.stability else "hold the optimum"
            )
            return f"No sigma makes the rule {which}."
        if not self.present:
            return f"sigma = {self.escape:+d} is right for leaving R = 0 and at the optimum."
        return (
            f"sigma = {self.escape:+d} lets R leave 0 but the optimum is then unstable; "
            f"sigma = {self.stability:+d} keeps the optimum but R = 0 is then never left."
        )


def conflict(phi: Formula, source: Source) -> Conflict:
    """Whether (14) and (23) ask for different signs; they never do for x^3."""
    return Conflict(restoring(phi, source), near_zero(phi, source).product)


def conflict_intervals(
    phi: Formula, family: Callable[[float], Source], low: float, high: float
) -> tuple[tuple[float, float], ...]:
    """Intervals of a family's parameter, increasing, where (14) and (23) ask for different signs.

    Signs are compared at some places from ``low`` to ``high``: two changes of sign between
    neighbours stay unseen. Ends are good to 1e-12 of the range.
    """
    from scipy.optimize import brentq

    grid = np.linspace(low, high, _PLACES).tolist()
    curves = (lambda p: restoring(phi, family(p)), lambda p: near_zero(phi, family(p)).product)
    ends = {low, high}
    for curve in curves:
        values = [curve(p) for p in grid]
        for (a, fa), (b, fb) in pairwise(zip(grid, values, strict=True)):
            if fa == 0.0:
                ends.add(a)
            elif fa * fb < 0:
                ends.add(float(brentq(curve, a, b, xtol=1e-13 * (high - low), rtol=1e-14)))
    intervals: list[tuple[float, float]] = []
    for a, b in pairwise(sorted(ends)):
        if conflict(phi, family((a + b) / 2)).present:
            joined = bool(intervals) and intervals[-1][1] == a
            intervals.append((intervals.pop()[0] if joined else a, b))
    return tuple(intervals)


@shown
@limited
def escape_signs(
    system: HebbianICA, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """Which sigma is right when: the condition (14) against that of (23).

    Parameters
    ----------
    system
        The problem.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        Over ``source``: ``restoring`` (<s phi(s) - phi'(s)>) with ``stability``, the sigma for
        which the optimal state is stable; ``product`` (kappa_4 <phi'''(z)>) with ``escape``, the
        sigma with which R = 0 can be left; ``conflict``, whether they differ, so that no sigma
        does both; and ``sentence``, which says so in words. For a family of sources see
        :func:`conflict_region`.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If an average does not exist.

    Examples
    --------
    >>> import hdica
    >>> three = {"discrete": {"values": [-1.6666666666666667, 0, 1.6666666666666667],
    ...                       "weights": [0.18, 0.64, 0.18]}}
    >>> system = hdica.HebbianICA(sources=[three], nonlinearity="tanh(x)", sigma=[1], mu=0.01)
    >>> bool(hdica.escape_signs(system)["conflict"])
    True
    """
    own = named_method("asymptotics")
    candidates(system, "auto", "escape_signs", own, own)
    phi = formula(system, "nonlinearity")
    conflicts = [conflict(phi, source) for source in hebbian.sources(system)]
    columns = {
        "restoring": ([c.restoring for c in conflicts], "<s phi(s) - phi'(s)>"),
        "product": ([c.product for c in conflicts], "kappa_4 <phi'''(z)>"),
        "stability": ([c.stability for c in conflicts], "sigma by (14)"),
        "escape": ([c.escape for c in conflicts], "sigma by (23)"),
        "conflict": ([c.present for c in conflicts], "whether no sigma does both"),
        "sentence": (np.array([c.sentence for c in conflicts], dtype=object), "what that means"),
    }
    data = {k: ("source", np.asarray(v), {"long_name": name}) for k, (v, name) in columns.items()}
    return described(xr.Dataset(data, {"source": list(system.dims()["source"])}), system)


@shown
@limited
def conflict_region(
    nonlinearity: str,
    family: Callable[[float], Any],
    low: float,
    high: float,
    constants: Mapping[str, float] | None = None,
    *,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> list[tuple[float, float]]:
    """Where in a family of sources no sigma both leaves R = 0 and keeps the optimal state.

    Parameters
    ----------
    nonlinearity
        phi, a formula in x.
    family
        The law of the source as a study names it, for a parameter from ``low`` to ``high``.
    low, high
        Range of the parameter.
    constants
        Named numbers in the formula.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    list of tuple
        Intervals of the parameter, increasing. Signs are compared at some places from ``low`` to
        ``high``, so that two changes between neighbours stay unseen; ends are good to 1e-12 of the
        range.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If a law is not allowed, or an average does not exist.

    Examples
    --------
    >>> import hdica
    >>> def three_points(p):
    ...     law = {"values": [-(p**-0.5), 0, p**-0.5], "weights": [p / 2, 1 - p, p / 2]}
    ...     return {"discrete": law}
    >>> ((first, last),) = hdica.conflict_region("tanh(x)", three_points, 0.2, 0.9)
    >>> round(first, 6), round(last, 6)
    (0.333333, 0.476338)
    """
    if not callable(family):
        raise HdicaError(
            f"family: a {type(family).__name__} is not allowed (a function from a number to a "
            "source)"
        )
    wanted = text(nonlinearity, "nonlinearity", "a formula in x")
    phi = parse_formula(wanted, "x", check_constants(constants))
    first, last = finite(low, "low"), finite(high, "high")
    check_range(first, last)
    return list(conflict_intervals(phi, lambda value: make_source(family(value)), first, last))


@shown
@limited
def asymptotics(
    system: HebbianICA, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """Hebbian ICA near its optimal state R* = I, Rattray 2002, section 4.1 and appendix B.

    Parameters
    ----------
    system
        The problem.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        ``xi(source)`` and ``power(source)`` = <phi(s)^2> of the min(K, M) sources found (NaN for
        others), with ``error(source)``, the larger of their relative errors;
        ``eigenvalue(projection, source)`` of the Jacobian over mu, (36) with the rows i > M of
        K > M corrected, and ``V(row, column, projection, source)``, the eigenmatrix of (35) that
        belongs to it, a complete set for all xi > 0; for step sizes mu0/t ``mu0_critical``,
        ``mu0_optimal(source)`` and ``decay_optimal(source)``, the limit of t (R_ii - 1) with it;
        and ``decay(projection, source)``, the limit (21) with the mu0 of this system if its mu is
        mu0/(t + t0), else NaN.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If R* = I is not stable or an average does not exist.
    """
    return by_method(system, "asymptotics")


def online_of(system: HebbianICA) -> OnlineICA:
    """Hebbian ICA of one projection and one source as online ICA without a regularizer."""
    why = ""
    if system.shape != (1, 1):
        why = (
            f"projections = {system.shape[0]} with {system.shape[1]} sources is not allowed for "
            "OnlineICA (one of each: it has a single feature)"
        )
    elif hebbian.unit(system) != "mu":
        why = (
            f"{hebbian.unit(system)} is not allowed for OnlineICA (give mu = n eta, which is its "
            "tau)"
        )
    elif hebbian.unplain(system):
        why = (
            f"{hebbian.unplain(system)} is not allowed for OnlineICA (fixed signs, single samples "
            "and sources that stay are)"
        )
    if why:
        raise HdicaError(why)
    r0, sign = hebbian.start_overlap(system), float(hebbian.signs(system)[0])
    # A random start of online ICA is one whose overlap fluctuates about 0 by O(n^-1/2).
    begin = {"overlap": 0.0} if r0 is None else {"overlap": float(r0[0, 0]), "exact": True}
    return OnlineICA(
        tau=system.mu,
        source=system.sources[0],
        nonlinearity=hebbian.turned_text(system, sign),
        start=begin,
        threshold=system.threshold,
        constants=dict(system.constants),
    )


def hebbian_of(system: OnlineICA) -> HebbianICA:
    """Online ICA without a regularizer as Hebbian ICA of one projection and one source."""
    if not formula(system, "regularizer").is_zero:
        raise HdicaError(
            f"regularizer = {system.regularizer!r} is not allowed for HebbianICA (0: its overlap "
            "alone closes the limit)"
        )
    if system.batch != 1:
        raise HdicaError(
            f"batch = {system.batch} is not allowed for HebbianICA (1; in the limit a batch of m "
            "is as single samples of step size tau/m at the time m t)"
        )
    moving = resting_refusal(system, "HebbianICA")
    if moving:
        raise HdicaError(moving, ["motion"])
    if "overlap" not in system.start:
        raise HdicaError(
            f"start = {system.start} is not allowed for HebbianICA ({{overlap: Q0}} is)"
        )
    q0 = float(system.start["overlap"])
    random = q0 == 0.0 and not system.start.get("exact")
    return HebbianICA(
        sources=[system.source],
        nonlinearity=learned_text(system),
        sigma=[-1],
        mu=system.tau,
        nu=system.nu,
        start="random" if random else {"overlap": q0},
        threshold=system.threshold,
        constants=dict(system.constants),
    )


_KNOWN: dict[tuple[type[Any], type[Any]], Callable[[Any], Any]] = {
    (HebbianICA, OnlineICA): online_of,
    (OnlineICA, HebbianICA): hebbian_of,
}


def convert(system: HebbianICA, to: type[Any]) -> Any:
    """The same problem as another system, where the two coincide as n -> infinity.

    Hebbian ICA with K = M = 1 and online ICA without a regularizer have one limit: R is Q, mu is
    tau, and sigma = -1 stands for f = +phi. Both keep the estimate on the sphere, one by a
    projection after every step, the other by the term in alpha, which leaves
    |W|^2 - 1 of order 1/n; at finite n they are different rules.

    Parameters
    ----------
    system
        A system.
    to
        The class of another: :class:`hdica.HebbianICA` or :class:`hdica.OnlineICA`.

    Raises
    ------
    HdicaError
        If the two do not coincide for this system, or are not known to.

    Examples
    --------
    >>> import hdica
    >>> heb = hdica.HebbianICA(mu=0.05, sigma=[-1], start={"overlap": 0.7})
    >>> ica = hdica.convert(heb, to=hdica.OnlineICA)
    >>> heb_end = hdica.limit(heb, times=[0, 40])["R"].values[1, 0, 0]
    >>> ica_end = hdica.limit(ica, times=[0, 40])["Q"].values[1]
    >>> bool(abs(heb_end - ica_end) < 1e-9)
    True
    """
    if type(system) is to and isinstance(system, Parameters):
        return system
    conversion = _KNOWN.get((type(system), to)) if isinstance(to, type) else None
    if conversion is None:
        pairs = ", ".join(f"{a.__name__} to {b.__name__}" for a, b in _KNOWN)
        name = to.__name__ if isinstance(to, type) else repr(to)
        raise HdicaError(f"to = {name} is not known for {type(system).__name__} (allowed: {pairs})")
    return conversion(system)
