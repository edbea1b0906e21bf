"""From solved densities to what a point keeps: by group of the feature, support, potential."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import ORDER, panel_nodes, resolving_edges
from hdica.ingredients.save import Save
from hdica.limits.mean_field.density.grid import Density
from hdica.limits.mean_field.density.solve import DensityPath
from hdica.limits.mean_field.family import MeanField

Array = NDArray[np.float64]
_PROBE = np.linspace(-20.0, 20.0, 4001)


def by_group(prior: Prior, values: Array) -> Array:
    """Weighted mean over the nodes of each group, (nodes, points) -> (groups, points)."""
    # A sum and no product of matrices, whose rounding may follow the number of BLAS threads.
    weighted = prior.nodes.weights[:, None] * values
    sums = [np.sum(weighted[prior.groups == g], axis=0) for g in range(prior.group_values.size)]
    return np.stack(sums) / prior.group_weights[:, None]


def support_rates(density: Density, thresholds: Sequence[float]) -> tuple[Array, Array, Array]:
    """True and false positive rate and misclassified share at each threshold on abs(x).

    The support is where xi != 0; the false positive rate is NaN if it is everywhere.
    """
    theta = np.asarray(thresholds, dtype=float)
    above = 1 - density.cdf(theta) + density.cdf(-theta[::-1])[:, ::-1]
    active = density.xi != 0
    share = float(np.sum(density.weights[active]))
    empty = np.full(theta.size, np.nan)
    rates = []
    for chosen, mass in ((active, share), (~active, 1 - share)):
        known = bool(np.any(chosen)) and mass > 0
        hits = np.sum(density.weights[chosen, None] * above[chosen], axis=0)
        rates.append(hits / mass if known else empty)
    tpr, fpr = rates
    wrong = share * (1 - tpr) + (1 - share) * np.nan_to_num(fpr)
    return tpr, fpr, wrong


def effective_potential(
    field: MeanField, tau: float, curvature: float, pull: float, x: Array, xi: Array
) -> Array:
    """E_t(x, xi) = d (x - b xi)^2/2 + B Phi(x), of which the drift is minus the slope.

    Wang and Lu 2017, eq. (16), with d_t = Lambda/2 - Q G - tau R, the ``curvature``, and
    b_t = -G/d_t corrected; ``pull`` is d_t b_t = -G(Q) (tau omega Q for sparse PCA). Where d = 0
    the constant d b^2 xi^2/2, which is then infinite, is left out. Shape (groups, x); Phi(0) = 0.
    """
    phi = antiderivative(field, x)
    constant = pull**2 / (2 * curvature) if curvature != 0 else 0.0
    square = curvature * x**2 / 2 - pull * xi[:, None] * x + constant * xi[:, None] ** 2
    return np.asarray(square + field.strength(tau) * phi)


def antiderivative(field: MeanField, x: Array) -> Array:
    """Phi(x), the integral of phi from 0, by Gauss-Legendre panels that resolve it."""
    kinks = np.asarray(field.phi.kinks, dtype=float)
    ends = np.concatenate([x, [0.0]])
    inside = kinks[(kinks > ends.min()) & (kinks < ends.max())]
    first = np.unique(np.concatenate([ends, inside]))
    edges = resolving_edges(lambda t: field.phi.value(t)[None], first)
    points, weights = panel_nodes(edges, ORDER)
    panels = np.sum((weights * field.phi.value(points)).reshape(-1, ORDER), axis=1)
    total = np.concatenate([[0.0], np.cumsum(panels)])
    return np.asarray(total[np.searchsorted(edges, x)] - total[np.searchsorted(edges, 0.0)])


@lru_cache(maxsize=64)
def _bends(phi: Formula) -> tuple[float, bool]:
    """Smallest slope of phi between its kinks, and whether it jumps upwards only."""
    kinks = np.asarray(phi.kinks, dtype=float)
    jumps = phi.value(kinks + 1e-9) - phi.value(kinks - 1e-9)
    return float(np.min(phi.derivative.value(_PROBE))), bool(np.all(jumps >= -1e-6))


def is_convex(field: MeanField, tau: float, curvature: float) -> bool:
    """Whether E_t is convex in x: d + B phi' >= 0 everywhere and phi jumps upwards only."""
    strength = field.strength(tau)
    if strength == 0 or field.phi.is_zero:
        return bool(curvature >= 0)
    slope, upwards = _bends(field.phi)
    return upwards and curvature + strength * slope >= -1e-12 * (1 + abs(curvature))


def laws(field: MeanField, path: DensityPath, save: Save) -> dict[str, Array]:
    """Distribution functions and support recovery that ``save`` asks for, by output name."""
    prior, found, count = field.prior, dict(path.functionals), len(save.snapshots)
    if count and save.x:
        shape = (count, prior.group_values.size, len(save.x) + 1)
        found["cdf"] = _stacked([by_group(prior, d.cdf(save.edges)) for d in path.densities], shape)
    if count and save.thresholds:
        rates = [support_rates(d, save.thresholds) for d in path.densities]
        for k, name in enumerate(("tpr", "fpr", "misclassified")):
            found[name] = _stacked([r[k] for r in rates], (count, len(save.thresholds)))
    return found


def kept_values(field: MeanField, path: DensityPath, save: Save) -> dict[str, Array]:
    """Arrays of everything that ``save`` asks of solved densities, by output name."""
    prior, found = field.prior, laws(field, path, save)
    if save.snapshots and save.x:
        x = np.asarray(save.x, dtype=float)
        shape = (len(save.snapshots), prior.group_values.size, x.size)
        found["density"] = _stacked([by_group(prior, d.at(x)) for d in path.densities], shape)
        found["xi"], found["weight"] = prior.group_values, prior.group_weights
    return found


def _stacked(parts: list[Array], shape: tuple[int, ...]) -> Array:
    """Snapshots as one array, NaN for those that were not reached."""
    out = np.full(shape, np.nan)
    for k, part in enumerate(parts):
        out[k] = part
    return out


def potentials(field: MeanField, path: DensityPath, save: Save, times: Array) -> Array:
    """Effective potential of each snapshot, shape (snapshots, groups, x); NaN if not reached."""
    x, xi = np.asarray(save.x, dtype=float), field.prior.group_values
    out = np.full((len(save.snapshots), xi.size, x.size), np.nan)
    for k, snapshot in enumerate(save.snapshots):
        here = int(np.argmin(np.abs(times - snapshot)))
        tau = float(field.schedule.value(np.array(times[here])))
        d, b = float(path.curvature[here]), float(path.pull[here])
        if np.isfinite(d):
            out[k] = effective_potential(field, tau, d, b, x, xi)
    return out
