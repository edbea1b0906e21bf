"""Hebbian ICA of one projection and one source: as online ICA, and after a source that drifts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import xarray as xr

from hdica.errors import HdicaError
from hdica.limits.averages.expectations import averages
from hdica.limits.moving.overlap import best
from hdica.limits.numerics.series import scaled
from hdica.limits.overlap.nonlinear import projected_drift
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, limited
from hdica.systems.fields import formula, resting_refusal
from hdica.systems.hebbian_ica.fields import (
    fixed_signs,
    make_motion,
    samples,
    signs,
    sources,
    start_overlap,
    unit,
    unplain,
)
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.labelled import described
from hdica.systems.online_ica.system import OnlineICA, learned_text
from hdica.systems.parameters import Parameters


def online_of(system: HebbianICA) -> OnlineICA:
    """Hebbian ICA of one projection and one source as online ICA without a regularizer."""
    shape = (system.projections, len(system.sources))
    if shape != (1, 1):
        raise HdicaError(
            f"projections = {shape[0]} with {shape[1]} sources is not allowed for OnlineICA "
            "(one of each: it has a single feature)"
        )
    if unit(system) != "mu":
        raise HdicaError(
            f"{unit(system)} is not allowed for OnlineICA (give mu = n eta, which is its tau)"
        )
    field = unplain(system)
    if field:
        raise HdicaError(
            f"{field} is not allowed for OnlineICA (fixed signs, single samples and sources that "
            "stay are)"
        )
    sigma = int(signs(system)[0])
    r0 = start_overlap(system)
    # A random start of online ICA is one whose overlap fluctuates about 0 by O(n^-1/2).
    begin = {"overlap": 0.0} if r0 is None else {"overlap": float(r0[0, 0]), "exact": True}
    return OnlineICA(
        tau=system.mu,
        source=system.sources[0],
        nonlinearity=system.nonlinearity if sigma < 0 else f"-({system.nonlinearity})",
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


@shown
@limited
def tracking(
    system: HebbianICA, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """The constant step size that holds the largest overlap with a source that drifts.

    For K = M = 1 a steady overlap R > 0 obeys mu A(R) - mu^2 B(R)/m = drift R, with the learning
    A = sigma (<phi s> - R <phi y>) and the loss B = <phi^2> R/2 of (17) and m samples an update.
    The best mu at a given R is m A/(2 B), where the drift that can be borne is largest: the best
    overlap is the largest root of

        m A(R)^2 = 2 drift <phi^2> R^2,  with mu = m A(R)/(<phi^2> R).

    For a slow drift 1 - R^2 is sqrt(2 drift <phi(s)^2>/m)/xi and mu is sqrt(2 drift m/<phi(s)^2>),
    with xi = sigma <s phi(s) - phi'(s)>.

    Parameters
    ----------
    system
        Hebbian ICA with K = M = 1, fixed signs, single samples or batches, and
        ``motion={"drift": rate}`` with a rate > 0; its step size does not matter.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    xarray.Dataset
        ``mu``, the best step size; ``R``, the overlap that it holds; ``drift``, that of the system;
        and ``drift_critical``, from which on every step size loses the source.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the system is another one, or drifts too fast for any step size.

    Examples
    --------
    >>> import hdica
    >>> moving = hdica.HebbianICA(mu=0.1, sources=["rademacher"], sigma=[-1],
    ...                           motion={"drift": 1e-3})
    >>> best = hdica.tracking(moving)
    >>> round(float(best["mu"]), 4), round(float(best["R"]), 4)
    (0.0388, 0.9867)
    """
    rate, means = _drift_of(system), averages(formula(system, "nonlinearity"), sources(system)[0])
    flow = projected_drift(means, lambda: None)
    # That is of a rule which descends along phi, as Sigma = -1 does.
    flow = replace(flow, learning=scaled(flow.learning, -float(signs(system)[0])))
    followed = best(flow.of_batch(int(samples(system))), rate)
    if not followed.q > 0:
        raise HdicaError(
            f"motion: drift = {rate:g} is not allowed for tracking (no step size holds the source "
            f"from {followed.fastest:.3g} on)",
            ["motion"],
        )
    values = {
        "mu": (followed.tau, "step size that holds the largest overlap"),
        "R": (followed.q, "overlap that it holds"),
        "drift": (rate, "rate of the drift"),
        "drift_critical": (followed.fastest, "drift from which on no step size holds the source"),
    }
    data = {k: ((), float(v), {"long_name": about}) for k, (v, about) in values.items()}
    return described(xr.Dataset(data), system)


def _drift_of(system: HebbianICA) -> float:
    """The rate of the drift, or the sentence that says what is not allowed."""
    if not isinstance(system, HebbianICA) or (system.projections, len(system.sources)) != (1, 1):
        raise HdicaError(
            "system: tracking needs HebbianICA with one projection and one source (of others no "
            "closed form is known)"
        )
    motion = make_motion(system.motion)
    if motion is None or not motion.drift > 0 or motion.times:
        raise HdicaError(
            f"motion = {system.motion!r} is not allowed for tracking ({{drift: rate > 0}} alone)",
            ["motion"],
        )
    if not fixed_signs(system) or math.isinf(samples(system)):
        raise HdicaError(
            f"sigma = {system.sigma!r} with batch = {system.batch!r} is not allowed for tracking "
            "(signs that stay, and a number of samples)",
            ["sigma", "batch"],
        )
    return motion.drift
