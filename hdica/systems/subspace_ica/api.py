"""The reduced model of subspace ICA, as labelled data: losses, flows, thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.contrasts import Contrast, make_contrast
from hdica.ingredients.sources import Source, make_source
from hdica.process.progress import USUAL, limited, shown
from hdica.systems.arguments import check_constants, check_times, finite, listed, scalar, text
from hdica.systems.method import Array
from hdica.systems.subspace_ica.loss import (
    Flow,
    Loss,
    bound,
    bound_time,
    direction_of,
    information_exponent,
)
from hdica.systems.subspace_ica.prediction import Reduction, best_strength
from hdica.systems.subspace_ica.system import SubspaceModel, strengths, weights

GROWN = 101  # overlaps of a path whose times are not given
_SIGNS = {"ascent": 1, "descent": -1}


def _contrast(contrast: object, constants: object) -> Contrast:
    formula = text(contrast, "contrast", "a name or a formula in s")
    return make_contrast(formula, check_constants(constants))


def _ratio(gamma: object) -> float:
    ratio = finite(gamma, "gamma")
    if not 0 < ratio <= 1:
        raise HdicaError(f"gamma = {ratio:.12g} is not allowed (0 < gamma <= 1)")
    return ratio


def _overlaps(alpha: object) -> Array:
    """One overlap as an array without dimensions, or a list of them."""
    number = scalar(alpha, "alpha")
    overlaps = listed(alpha, "alpha") if number is None else np.array(finite(number, "alpha"))
    if np.any(np.abs(overlaps) > 1):
        worst = float(overlaps.flat[np.argmax(np.abs(overlaps))])
        raise HdicaError(f"alpha = {worst:.12g} is not allowed (overlaps are from -1 to 1)")
    return overlaps


@shown
@limited
def population_loss(
    source: str | dict[str, Any],
    contrast: str,
    gamma: float,
    alpha: float | Iterable[float] | Mapping[str, Any],
    *,
    constants: Mapping[str, float] | None = None,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """What ICA makes extreme, for infinitely many samples of the reduced model.

    L(a) = E G(s) with s = gamma^1/2 a h + (1 - gamma a^2)^1/2 N: Lemma 5 of "Reduce and Conquer"
    (2025), corrected, and for any law and contrast. In closed form for polynomials and for
    ``"exp"`` with random signs, else by quadrature that refines itself.

    Parameters
    ----------
    source
        Law of h, as in :class:`hdica.SubspaceModel`.
    contrast
        G: ``"exp"``, ``"logcosh"``, ``"kurtosis"``, ``"he4"`` or a formula in ``s``.
    gamma
        Signal-to-noise ratio, 0 < gamma <= 1; 1 is the feature without noise.
    alpha
        Overlap of the filter with the feature, from -1 to 1, or a list of them.
    constants
        Numbers for named constants in the contrast.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        ``L`` and its slope ``dL`` with their errors ``L_error``, ``dL_error``, over ``alpha`` if
        that is a list; ``exponent``: the information exponent, the k of L(a) - L(0) ~ a^k.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If an argument is not allowed, or an average is infinite.

    Examples
    --------
    >>> import hdica
    >>> result = hdica.population_loss("rademacher", "exp", 0.5, alpha=0.6)
    >>> round(float(result["L"]), 6), round(float(result["dL"]), 6)
    (-0.705486, 0.011501)
    """
    formula, law = _contrast(contrast, constants), make_source(source)
    a = _overlaps(alpha)
    at = Loss(formula, law, _ratio(gamma)).at(a)
    dims = ("alpha",) * a.ndim
    exponent = information_exponent(formula, law)
    data = _named(
        L=(dims, at.loss, "population loss"),
        dL=(dims, at.slope, "slope of the population loss"),
        L_error=(dims, at.loss_error, "error of L"),
        dL_error=(dims, at.slope_error, "error of dL"),
        exponent=((), math.nan if exponent is None else float(exponent), "information exponent"),
    )
    coords = _named(alpha=(dims, a, "overlap with the feature"))
    return xr.Dataset(data, coords, _attributes(law, formula, gamma))


def _named(
    **variables: tuple[tuple[str, ...], Array | float, str],
) -> dict[str, tuple[tuple[str, ...], Array | float, dict[str, str]]]:
    """Variables of a dataset, from their dimensions, values and names."""
    return {k: (dims, value, {"long_name": words}) for k, (dims, value, words) in variables.items()}


def _attributes(law: Source, contrast: Contrast, gamma: float) -> dict[str, object]:
    return {"source": law.label, "contrast": contrast.formula.text, "gamma": float(gamma)}


@shown
@limited
def gradient_flow(
    source: str | dict[str, Any],
    contrast: str,
    gamma: float,
    alpha0: float,
    *,
    until: float = 0.9,
    times: Iterable[float] | Mapping[str, Any] | None = None,
    direction: str = "auto",
    constants: Mapping[str, float] | None = None,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Overlap under gradient flow on the population loss: da/dt = L'(a)(1 - a^2).

    Theorem 4 of "Reduce and Conquer" (2025) with its bound f(t) = tanh(C t + artanh a0), where C is
    the least slope on the way; (B.5) follows it at t = eta k as eta -> 0.

    Parameters
    ----------
    source, contrast, gamma, constants
        As in :func:`hdica.population_loss`.
    alpha0
        Overlap at first, 0 < alpha0 < 1.
    until
        Overlap up to which time is measured, and the bound holds: alpha0 < until < 1.
    times
        Where the overlap is wanted, increasing; None for times from 0 to when it is ``until``, at
        which it grows evenly.
    direction
        ``"ascent"``, ``"descent"``, or ``"auto"`` for the one that leads to the feature: the sign
        of c_4 kappa_4 for even contrasts or symmetric laws.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        ``alpha(time)``, without ``times`` up to ``until``, so that the last ``time`` is when it is
        reached; its ``alpha_error`` and ``bound(time)``, f, NaN unless C > 0. ``reached`` is the
        time to ``until``, infinite if it never is (then alpha is given at 0 alone), with
        ``reached_error``, and ``reached_bound`` the time at which f is there; ``C`` as above.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If an argument is not allowed, an average is infinite, or ``"auto"`` finds no direction.

    Examples
    --------
    >>> import hdica
    >>> result = hdica.gradient_flow("rademacher", "exp", 0.5, alpha0=0.1, until=0.9)
    >>> round(float(result["time"][-1]), 3), round(float(result["alpha"][-1]), 6)
    (1153.033, 0.9)
    """
    formula, law = _contrast(contrast, constants), make_source(source)
    ratio, start, end = _ratio(gamma), finite(alpha0, "alpha0"), finite(until, "until")
    if not 0 < start < 1:
        raise HdicaError(f"alpha0 = {start:g} is not allowed (0 < alpha0 < 1)")
    if not start < end < 1:
        raise HdicaError(f"until = {end:g} is not allowed (alpha0 = {start:g} < until < 1)")
    if direction not in ("auto", *_SIGNS):
        raise HdicaError(
            f"direction = {direction!r} is not allowed ({suggestion(direction, ('auto', *_SIGNS))})"
        )
    sign = _SIGNS.get(direction) or direction_of(formula, law, ratio)
    moves = Flow(Loss(formula, law, ratio), sign)
    took, error = moves.times(start, np.array([end]))
    least, reached = moves.least_slope(start, end), took[0]
    if times is None:
        at, alpha, missed = _grown(moves, start, end if math.isfinite(reached) else start)
    else:
        at = check_times(times)
        alpha, missed = moves.path(start, at)
    below = bound(least, start, at) if least > 0 else np.full(at.shape, math.nan)
    to, time = f"time to overlap {end:g}", ("time",)
    data = _named(
        reached=((), reached, to),
        reached_error=((), error[0], f"error of the {to}"),
        reached_bound=((), bound_time(least, start, np.array(end)), f"bound on the {to}"),
        C=((), least, "least slope of the loss on the way"),
        alpha=(time, alpha, "overlap with the feature"),
        alpha_error=(time, missed, "error of the overlap"),
        bound=(time, below, "bound of Theorem 4"),
    )
    shown_sign = "ascent" if sign > 0 else "descent"
    attrs = _attributes(law, formula, ratio) | {"direction": shown_sign}
    return xr.Dataset(data, _named(time=(time, at, "time t = eta k")), attrs)


def _grown(moves: Flow, start: float, end: float) -> tuple[Array, Array, Array]:
    """Times at which the overlap has grown evenly to an end, the overlap, and its error there."""
    alpha = np.linspace(start, end, GROWN) if end > start else np.array([start])
    at, error = moves.times(start, alpha[1:])
    speed = np.abs(moves.speed(alpha[1:])) * alpha[1:] * (1 - alpha[1:] ** 2)
    return np.append(0.0, at), alpha, np.append(0.0, error * speed)


def reduced_model(
    beta: float | Iterable[float],
    alpha: str | Iterable[float] = "equal",
    samples_per_dimension: float | None = None,
) -> xr.Dataset:
    """The reduced model y = gamma^1/2 h vt + noise of spikes, and what n/D leaves of it.

    Theorem 2 and (4) of "Reduce and Conquer" (2025), with the covariance of the noise corrected;
    for finite n/D the thresholds of Baik, Ben Arous and Peche (2005) in the place of its Lemma 3.

    Parameters
    ----------
    beta
        Strengths of the spikes: a list, or one number for all.
    alpha
        Coefficients of v: ``"equal"`` or a list, scaled to length one; a list where ``beta`` is a
        number.
    samples_per_dimension
        n/D > 0; None for infinitely many samples.

    Returns
    -------
    xarray.Dataset
        ``gamma``; over ``component``: ``vtilde`` = Sv/abs(Sv), ``filter`` = C^-1 v scaled to length
        one, ``eigenvalue`` and ``phi``, the overlap of the spike with its principal component (of
        equal spikes: of both subspaces), ``vtilde_c``; ``noise`` over ``component`` and ``other``:
        the covariance of the noise; ``gamma_c`` of estimated components, ``pca_overlap``, the
        length of the projection of v on them, ``threshold``, the strength above which a spike is
        found, and ``best_beta``, that of equal spikes with the largest gamma_c (0 for infinitely
        many samples).

    Raises
    ------
    HdicaError
        If an argument is not allowed.

    Examples
    --------
    >>> import hdica
    >>> result = hdica.reduced_model([2.0, 2.0], samples_per_dimension=2)
    >>> round(float(result["gamma"]), 6), round(float(result["gamma_c"]), 6)
    (0.333333, 0.291667)
    """
    model = _model(beta, alpha)
    ratio = samples_per_dimension
    ratio = None if ratio is None else finite(ratio, "samples_per_dimension")
    if ratio is not None and ratio <= 0:
        raise HdicaError(f"samples_per_dimension = {ratio:g} is not allowed (a number > 0)")
    c = 0.0 if ratio is None else 1 / ratio
    reduced = Reduction(strengths(model), weights(model), c)
    inverse = reduced.alpha / (1 + reduced.beta)
    each, both = ("component",), ("component", "other")
    data = _named(
        gamma=((), reduced.gamma, "signal-to-noise ratio"),
        vtilde=(each, reduced.direction, "feature of the reduced model"),
        filter=(each, inverse / np.linalg.norm(inverse), "best filter, along C^-1 v"),
        noise=(both, reduced.noise, "covariance of the noise"),
        eigenvalue=(each, reduced.eigenvalues, "eigenvalue of the sample covariance"),
        phi=(each, np.sqrt(reduced.phi2), "overlap of a spike with its principal component"),
        gamma_c=((), reduced.gamma_c, "signal-to-noise ratio of estimated components"),
        vtilde_c=(each, reduced.direction_c, "feature of the estimated components"),
        pca_overlap=((), reduced.length, "length of the projection of v on them"),
        threshold=((), math.sqrt(c), "strength above which a spike is found"),
        best_beta=((), best_strength(c), "strength of equal spikes with the largest gamma_c"),
    )
    numbers = np.arange(model.rank)
    return xr.Dataset(data, {"component": numbers, "other": numbers})


def _model(beta: object, alpha: object) -> SubspaceModel:
    """A model of these spikes, in just enough dimensions."""
    one = scalar(beta, "beta")
    if one is not None and isinstance(alpha, str):
        raise HdicaError(
            f"beta = {one!r} is not allowed with alpha = {alpha!r} (a list of one of them, which "
            "says how many spikes there are)"
        )
    strength = one if one is not None else listed(beta, "beta").tolist()
    direction = alpha if isinstance(alpha, str) else listed(alpha, "alpha").tolist()
    rank = len(strength) if isinstance(strength, list) else len(direction)
    return SubspaceModel(
        dimension=max(2, rank), rank=rank, beta=strength, alpha=direction, latent="rademacher"
    )
