"""Hebbian ICA as labelled data: signs that trap it, asymptotics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, limited
from hdica.systems.arguments import check_constants, check_range, finite, text
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica.escape.coefficients import conflict
from hdica.systems.hebbian_ica.escape.coefficients import conflict_region as region
from hdica.systems.hebbian_ica.fields import sources
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.labelled import candidates, computed, described, first_of
from hdica.systems.method import Method
from hdica.systems.system import System


def _own(record: System) -> list[Method]:
    """Methods of this system; none of another."""
    return list(record.methods) if record.parameters is HebbianICA else []


def _named(system: HebbianICA, name: str, kind: str) -> Method:
    """One of the methods of this system, if it applies."""
    return first_of(candidates(system, name, kind, _own, _own), system)


@shown
@limited
def escape_signs(
    system: HebbianICA,
    *,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Which sigma is right when: the condition (14) against that of (23).

    Parameters
    ----------
    system
        The problem.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

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
    candidates(system, "auto", "escape_signs", _own, _own)
    phi = formula(system, "nonlinearity")
    found = [conflict(phi, source) for source in sources(system)]
    columns = {
        "restoring": ([c.restoring for c in found], "<s phi(s) - phi'(s)>"),
        "product": ([c.product for c in found], "kappa_4 <phi'''(z)>"),
        "stability": ([c.stability for c in found], "sigma by (14)"),
        "escape": ([c.escape for c in found], "sigma by (23)"),
        "conflict": ([c.present for c in found], "whether no sigma does both"),
        "sentence": (np.array([c.sentence for c in found], dtype=object), "what that means"),
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
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    list of tuple
        Intervals of the parameter, increasing; see
        :func:`hdica.systems.hebbian_ica.escape.coefficients.conflict_region`.

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
    return list(region(phi, lambda value: make_source(family(value)), first, last))


@shown
@limited
def asymptotics(
    system: HebbianICA,
    *,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Hebbian ICA near its optimal state R* = I, Rattray 2002, section 4.1 and appendix B.

    Parameters
    ----------
    system
        The problem.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

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
    return computed(system, _named(system, "asymptotics", "asymptotics"))
