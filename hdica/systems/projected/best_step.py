"""The best constant step size for a feature that moves: as a method, and for ``hdica``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hdica.ingredients.save import Save
from hdica.limits.mean_field.moving import Tracking, best
from hdica.limits.overlap.drift import Drift
from hdica.process.progress import USUAL, limited, shown
from hdica.systems import method
from hdica.systems.fields import F, Projected, formula, motion, optional, prior, start
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.parameters import Parameters
from hdica.systems.projected.simulation import reached
from hdica.systems.projected.steady import moving_refusal

if TYPE_CHECKING:
    import xarray as xr

_SAME = 1e-7
"""Share by which mirror images of a fold differ at most."""


def outputs(step: str, overlap: str, moving: str, fastest: Output) -> tuple[Output, ...]:
    """What a method ``best_step`` gives, by the names of a step size, an overlap and what moves."""
    return (
        Output(f"best_{step}", (), "constant step size that holds the largest overlap of all"),
        Output(f"best_{overlap}", (), "the overlap that it holds"),
        Output(f"lowest_{step}", (), f"smallest step size that tracks the {moving} at all"),
        Output(f"largest_{step}", (), f"largest step size that tracks the {moving} at all"),
        fastest,
    )


_FASTEST = "largest rate delta at which any step size tracks the feature"
_OUTPUTS = outputs("tau", "Q", "feature", Output("largest_delta", (), _FASTEST))


def point_of(declared: tuple[Output, ...], step: Tracking, side: float = 1.0) -> PointResult:
    """The numbers of :func:`outputs`, on one side of an overlap of 0."""
    values = (step.tau, side * step.q, step.low, step.high, step.fastest)
    pairs = zip(declared, values, strict=True)
    return PointResult({output.name: np.array(value) for output, value in pairs})


def _refusal(system: Projected) -> str:
    if motion(system).rate == 0:
        return (
            f"motion = {optional(system, 'motion')!r} is not allowed for the best step size (a "
            "rate of exchange > 0, such as {'exchange': 0.01}: a feature that stays is found the "
            "better the smaller the step size)"
        )
    if formula(system, "regularizer").slope_if_linear is None:
        return (
            f"regularizer = {system.regularizer!r} is not allowed for the best step size (allowed: "
            "0 and beta*x)"
        )
    return moving_refusal(system)


def best_step_method(
    drift_of: Callable[[F], Drift],
    equations: str,
    uses: tuple[str, ...] = (),
    without_limit: method.Refuses[F] = method.always,
) -> method.Limit[F]:
    """Method ``best_step``: the constant step size that tracks a feature best, and what it holds.

    ``drift_of`` is the drift without motion; ``without_limit`` is empty if a system has a limit.
    """

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        # The side of the overlap that the start is nearer to; + for a start at 0.
        side = -1.0 if start(system).overlap(prior(system)) < 0 else 1.0
        return point_of(_OUTPUTS, best(drift_of(system), motion(system).rate, side), side)

    return method.Limit[F](
        name="best_step",
        role=method.Role.OTHER,
        about=method.About(
            text="the best constant step size for a feature that moves, and the fastest tracked",
            accuracy="converged",
            equations=f"{equations}, with -delta Q; the largest root over all step sizes",
            engines=reached(drift_of, uses, method.NUMERICS, method.OVERLAP, method.MEAN_FIELD),
        ),
        outputs=method.Outputs(_OUTPUTS),
        cost=method.Cost(seconds=lambda system, n, last: 0.02),
        scope=method.Scope(
            refuses=lambda system: without_limit(system) or _refusal(system),
            ignores=frozenset({"tau"}),
        ),
        run=run,
    )


def tracked_transitions(drift: Drift, delta: float) -> dict[str, Array]:
    """Columns of the folds in tau between which a feature that moves is tracked.

    Two with Q > 0, and two with Q < 0 unless they are mirror images, as for odd f: the start of a
    system does not matter.
    """
    folds: list[tuple[float, float]] = []
    for side in (1.0, -1.0):
        step = best(drift, delta, side)
        pairs = ((step.high, step.q_high), (step.low, step.q_low))
        new = [(tau, side * q) for tau, q in pairs if np.isfinite(tau)]
        if len(new) != len(folds) or not np.allclose(new, [(t, -q) for t, q in folds], rtol=_SAME):
            folds += new
    tau, q = (np.array([pair[k] for pair in folds], dtype=float) for k in range(2))
    return {"value": tau, "Q": q, "kind": np.zeros(tau.size), "error": 1e-7 * tau}


@shown
@limited
def best_step(
    system: Parameters, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """The constant step size that tracks a moving feature best, as n -> infinity.

    The steady overlap is a root of dQ/dt = tau D1(Q) + tau^2 D2(Q) - delta Q: a small step size
    lags behind, a large one is noisy. For Oja's method all is in closed form,
    Q^2 = 1 + (delta - sqrt(delta^2 + 2 delta (1 + omega)))/omega at tau = omega (1 - Q^2)/(1 +
    omega Q^2), up to delta = omega^2/2; for slow drifts tau goes as sqrt(2 delta/Lambda), Lambda
    being 1 + omega, or E[c^6] for x^3 of online ICA and of Hebbian ICA.

    Parameters
    ----------
    system
        :class:`hdica.OnlineICA` or :class:`hdica.SparsePCA` with a regularizer 0 or beta*x, a prior
        of mean 0 and ``motion={"exchange": delta}``, or :class:`hdica.HebbianICA` with one
        projection, one source and ``motion={"drift": rate}``; its own step size does not matter.
    timeout, progress
        As in :func:`hdica.limit`.

    Returns
    -------
    xarray.Dataset
        ``best_tau`` and ``best_Q``, the overlap that it holds; ``lowest_tau`` and ``largest_tau``,
        between which the feature is tracked at all; ``largest_delta``, beyond which no step size
        tracks it and the others are NaN. Q has the sign of the start. Of Hebbian ICA ``best_mu``,
        ``best_R``, ``lowest_mu``, ``largest_mu`` and ``largest_drift``.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the system has no such feature, or its overlap alone does not close the limit.

    Examples
    --------
    >>> import hdica
    >>> turning = hdica.HebbianICA(mu=0.1, sources=["rademacher"], sigma=[-1],
    ...                            motion={"drift": 1e-3})
    >>> best = hdica.best_step(turning)
    >>> round(float(best["best_mu"]), 4), round(float(best["best_R"]), 4)
    (0.0388, 0.9867)
    """
    # Labelled data take longer to load than a study to check, and methods of this file are in all.
    from hdica.systems.labelled import by_method, candidates, named_method

    own = named_method("best_step")
    candidates(system, "auto", "best_step", own, own)
    return by_method(system, "best_step")
