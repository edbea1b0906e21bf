"""Online tensorial ICA beyond paths, as labelled data: levels, times, critical points, bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import xarray as xr

from hdica.process.progress import USUAL, limited, shown
from hdica.systems.arguments import check_times
from hdica.systems.fields import source
from hdica.systems.labelled import candidates, computed, described, first_of, named_method
from hdica.systems.method import Array
from hdica.systems.tensorial_ica import fluctuation
from hdica.systems.tensorial_ica.system import TensorialICA, constant_eta

Times = Iterable[float] | Mapping[str, Any]
_LEVELS = {
    "S0": "mean of tan^2 about a component, to first order in eta",
    "S_lin": "mean of tan^2 with the exact moments of one step, to first order in it",
    "S2": "mean of tan^2 to second order in it",
    "error": "error of S2, from quadrature",
    "median": "median of tan^2, S2 times that of a chi-squared law over its mean",
}


def _computed(system: TensorialICA, name: str, kind: str, times: Array | None = None) -> xr.Dataset:
    """What one of the methods gives, labelled."""
    own = named_method(name)
    return computed(system, first_of(candidates(system, "auto", kind, own, own), system), times)


@shown
@limited
def stationary_error(
    system: TensorialICA, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """How far online tensorial ICA stays from a component at a constant step size.

    Parameters
    ----------
    system
        The problem, with a constant step size.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        Means of the squared tangent of the angle to the nearest axis: ``S0`` = (d - 1) eta
        mu_6/(2 beta), which the law of Li and Jordan (2021), fluctuation stage, has as eta -> 0;
        ``S_lin`` with the exact moments of one step; ``S2`` to second order, which simulations
        meet within 0.6 % up to 0.03; its ``error``; and the ``median``.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the step size is not constant, or so large that there is no such level.

    Examples
    --------
    >>> import hdica
    >>> ten = hdica.TensorialICA(dimension=20, source="rademacher", eta=2e-3, start="axis")
    >>> float(hdica.stationary_error(ten)["S2"].round(7))
    0.0109386
    """
    own = named_method("stationary")
    candidates(system, "auto", "stationary_error", own, own)
    levels = fluctuation.stationary(source(system), system.dimension, constant_eta(system))
    data = {name: ((), getattr(levels, name), {"long_name": _LEVELS[name]}) for name in _LEVELS}
    return described(xr.Dataset(data), system)


@shown
@limited
def traverse_times(
    system: TensorialICA, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """How many steps the three stages of online tensorial ICA take at a constant step size.

    Parameters
    ----------
    system
        The problem, with a constant step size.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        In steps, each NaN where the start has no such stage. ``N1``: from a critical point, which
        noise alone leaves, to tan^2 = 1/3; ``N2``: the same from any other start by the transient
        ODE, over the starts where they are uniform; both as mean with its standard error
        ``N1_se``, ``N2_se``, as median ``N1_median``, ``N2_median`` and as quantiles over
        ``quantile``. ``N3``: from tan^2 = 1/3 to the stationary level. ``N1_order``, ``N2_order``:
        leading terms for small eta and large d.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the step size is not constant, or a moment of the source that the noise needs is not
        finite: the sixth, from a saddle or maximiser the eighth.
    """
    return _computed(system, "traverse", "traverse_times")


@shown
@limited
def landscape(
    system: TensorialICA, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """What tensorial ICA minimises, on the circle or the sphere of v.

    Parameters
    ----------
    system
        The problem, of dimension 2 or 3.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        ``value`` = -sum_k v_k^4 over the directions of v, as in Figure 1 of the slides of Li and
        Jordan (2021): over ``azimuth`` for d = 2, over ``polar`` and ``azimuth`` for d = 3.
        :func:`hdica.fixed_points` gives the critical points, for every d.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the dimension is neither 2 nor 3.
    """
    own = named_method("landscape")
    candidates(system, "auto", "landscape", own, own)
    circle = "landscape_circle" if system.dimension == 2 else "landscape"
    return _computed(system, circle, "landscape")


@shown
@limited
def bounds(
    system: TensorialICA,
    *,
    times: Iterable[float] | Mapping[str, Any],
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Theorems and lemmas of Li and Jordan (2021) as numbers, with constants of your own.

    Parameters
    ----------
    system
        The problem; its field ``bounds`` holds the constants, 1 where none is given.
    times
        Times in steps, increasing, as in :func:`hdica.simulate`.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        Bounds on the tangent of the angle to a component over ``time``: ``lemma_3``, ``lemma_6``
        after t steps at this step size, ``lemma_5`` on the deviation from the centre of the
        vessel; ``theorem_4``, ``theorem_7``, ``corollary_8`` for a training of T = t samples.
        Beside each ``..._holds``, 1 where its scaling conditions hold, and ``..._predicted``, what
        the noise leads to instead (root mean square; Lemma 5: mean). Lemmas are NaN where the step
        size is not constant, 3 and 5 where the start is random.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the tails of the source are heavier than a normal law's: B is infinite then; or if a
        constant step size is 1 or more, or one at which a lemma's factor, such as 1 - eta beta/3,
        is not positive.
    """
    return _computed(system, "bounds", "bounds", check_times(times))
