"""What a point keeps of solved densities: groups, support, potential, and what n leaves of them.

Bands are fluctuations of order n^-1/2 of what it keeps, bias is what n leaves of its means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import ORDER, panel_nodes, resolving_edges
from hdica.ingredients.save import Save
from hdica.limits.averages.expectations import ProductsAt
from hdica.limits.bands import sweep
from hdica.limits.bands.bias import Rule, biases
from hdica.limits.bands.solve import common_noise, spreads
from hdica.limits.mean_field.density.grid import Density
from hdica.limits.mean_field.density.solve import DensityPath
from hdica.limits.mean_field.family import MeanField
from hdica.limits.overlap.drift import Drift, second_order
from hdica.systems.method import Array

RATES = ("tpr", "fpr", "misclassified")
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
        hits = np.sum(density.weights[chosen, None] * above[chosen], axis=0)
        rates.append(hits / mass if np.any(chosen) and mass > 0 else empty)
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
    prior, values, count = field.prior, dict(path.functionals), len(save.snapshots)
    if count and save.x:
        shape = (count, prior.group_values.size, len(save.x) + 1)
        cdf = [by_group(prior, d.cdf(save.edges)) for d in path.densities]
        values["cdf"] = _stacked(cdf, shape)
    if count and save.thresholds:
        rates = [support_rates(d, save.thresholds) for d in path.densities]
        for k, name in enumerate(RATES):
            values[name] = _stacked([r[k] for r in rates], (count, len(save.thresholds)))
    return values


def saved_values(field: MeanField, path: DensityPath, save: Save) -> dict[str, Array]:
    """Arrays of everything that ``save`` asks of solved densities, by output name."""
    prior, values = field.prior, laws(field, path, save)
    if save.snapshots and save.x:
        x = np.asarray(save.x, dtype=float)
        shape = (len(save.snapshots), prior.group_values.size, x.size)
        values["density"] = _stacked([by_group(prior, d.at(x)) for d in path.densities], shape)
        values["xi"], values["weight"] = prior.group_values, prior.group_weights
    return values


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
        index = int(np.argmin(np.abs(times - snapshot)))
        tau = float(field.schedule.value(np.array(times[index])))
        d, b = float(path.curvature[index]), float(path.pull[index])
        if np.isfinite(d):
            out[k] = effective_potential(field, tau, d, b, x, xi)
    return out


MOST_TIMES = 48
"""Times at which the bands of trajectories are solved for; between them they are interpolated."""
MOST_BINS = 24
"""Bins and edges likewise, of what is smooth in x."""
MOST_LAWS = 24
"""Times likewise at which whole densities have theirs: each has about 100 bins and edges."""


def noise_of(products: ProductsAt, batch: int = 1) -> sweep.Noise:
    """The noise that all entries share, of a rule by the averages of its push."""
    return lambda q, tau: common_noise(products(q), q, tau, batch)


def second_of(
    products: ProductsAt, batch: int = 1, shrunk: Drift | None = None, beta: float = 0
) -> Callable[[Array, float], Array]:
    """D1 of a rule by the averages of its push, likewise.

    A linear phi = beta x that acts on the estimate before the sample does makes a step longer by
    1 + tau beta/n: ``shrunk`` is then the drift of the rule.
    """

    def second(q: Array, tau: float) -> Array:
        plain = second_order(products(q), q, tau, batch)
        if shrunk is None or not beta:
            return plain
        longer = tau * shrunk.learning(q) + 2 * tau**2 * shrunk.loss(q)
        return np.asarray(plain + beta * tau * longer)

    return second


def chosen_times(times: Array, most: int = MOST_TIMES) -> Array:
    """The times to solve for: all, or as many as there may be, the first and the last among them.

    Half of them evenly by number, half where the logarithm of time is even.
    """
    if times.size <= most:
        return times
    even = np.linspace(0, times.size - 1, most // 2)
    positive = times[times > 0]
    marks = np.geomspace(positive[0], positive[-1], most // 2)
    near = np.searchsorted(times, marks * (1 - 1e-12))
    index = np.unique([*np.rint(even).astype(int), *np.minimum(near, times.size - 1)])
    return np.asarray(times[index])


def chosen_bins(save: Save) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the bins and of the edges to solve for, evenly spaced."""

    def some(size: int) -> NDArray[np.int64]:
        return np.unique(np.rint(np.linspace(0, size - 1, min(size, MOST_BINS))).astype(np.int64))

    bins = len(save.x)
    return (some(bins), some(bins + 1)) if bins else (some(0), some(0))


def chosen_laws(save: Save) -> Array:
    """The snapshots at which to solve for the bands of whole densities."""
    return chosen_times(np.asarray(save.snapshots, dtype=float), MOST_LAWS)


def between(at: Array, solved: Array, columns: Array) -> Array:
    """Columns at all points from those at some of them; NaN beyond the last that is finite."""
    if solved.size == at.size:
        return columns
    values = np.full((at.size, columns.shape[1]), np.nan)
    there = np.isfinite(columns).all(axis=1)
    if np.count_nonzero(there) > 1:
        from scipy.interpolate import PchipInterpolator

        inside = at <= solved[there][-1]
        values[inside] = PchipInterpolator(solved[there], columns[there])(at[inside])
    return values


def _targets(
    field: MeanField, functions: list[sweep.Function], times: Array, save: Save
) -> list[tuple[str, sweep.Target]]:
    """What is solved for and of what kind it is, by increasing time."""
    prior = field.prior
    targets = [("means", sweep.means(float(t), functions)) for t in times]
    if save.thresholds:
        targets += [
            ("support", sweep.support(float(t), prior, save.thresholds)) for t in save.snapshots
        ]
    if save.x:
        bins, edges = chosen_bins(save)
        low, high = save.edges[:-1][bins], save.edges[1:][bins]
        for t in chosen_laws(save):
            targets.append(
                ("histogram", sweep.histogram(float(t), prior, low, high, save.edges[edges]))
            )
    return sorted(targets, key=lambda pair: pair[1].time)


def band_values(
    field: MeanField,
    noise: sweep.Noise,
    functionals: dict[str, sweep.Function],
    times: Array,
    save: Save,
    values: dict[str, Array],
) -> dict[str, Array]:
    """``<name>_sd`` of everything that a point of method ``pde`` keeps, ``values``.

    Trajectories have theirs at every time, interpolated where there are many; what is kept at the
    snapshots has it there, whole densities likewise.
    """
    chosen = chosen_times(times)
    functions = [sweep.overlap, sweep.penalty(field.phi), *functionals.values()]
    targets = _targets(field, functions, chosen, save)
    parts: dict[str, list[Array]] = {"means": [], "support": [], "histogram": []}
    solved = spreads(field, noise, [target for _, target in targets])
    for (kind, _), one in zip(targets, solved, strict=True):
        parts[kind].append(one.value - one.squares if kind == "histogram" else one.value)
    columns = between(times, chosen, np.array(parts["means"]))
    names = ("Q", "R", *functionals)
    squares = {f"{name}_sd": column for name, column in zip(names, columns.T, strict=True)}
    if parts["support"]:
        rates = np.array(parts["support"]).reshape(-1, 3, len(save.thresholds))
        squares |= {f"{name}_sd": rates[:, i] for i, name in enumerate(RATES)}
    if parts["histogram"]:
        squares |= _of_laws(field, save, np.array(parts["histogram"]), values)
    return {name: np.sqrt(np.maximum(square, 0.0)) for name, square in squares.items()}


def _of_laws(
    field: MeanField, save: Save, rows: Array, values: dict[str, Array]
) -> dict[str, Array]:
    """Variances of densities and distribution functions, from what is smooth in x of some."""
    share = field.prior.group_weights[:, None]
    bins, edges = chosen_bins(save)
    x, ends = np.asarray(save.x, dtype=float), save.edges
    groups, count = share.size, share.size * bins.size

    def whole(part: Array, at: Array, solved: Array) -> Array:
        flat = part.reshape(-1, solved.size).T
        return between(at, solved, flat).T.reshape(part.shape[0], groups, at.size)

    rows = between(np.asarray(save.snapshots, dtype=float), chosen_laws(save), rows)
    smooth = whole(rows[:, :count], x, x[bins]), whole(rows[:, count:], ends, ends[edges])
    inside = np.diff(values["cdf"], axis=-1) / np.diff(ends) ** 2
    return {"density_sd": smooth[0] + inside / share, "cdf_sd": smooth[1] + values["cdf"] / share}


BIAS_TIMES = 12
"""Times at which the bias of trajectories is solved for; between them it is interpolated."""


def bias_values(
    field: MeanField, rule: Rule, functionals: dict[str, sweep.Function], times: Array, save: Save
) -> dict[str, Array]:
    """``<name>_bias`` of the means and rates that a point of method ``pde`` keeps.

    A bin of the density is the mean of a functional, such as ``where((x > 0) & (x < 1), 1, 0)``.
    """
    chosen = chosen_times(times, BIAS_TIMES)
    functions = [sweep.overlap, sweep.penalty(field.phi), *functionals.values()]
    rows = [biases(field, rule, sweep.means(float(t), functions))[0] for t in chosen]
    columns = between(times, chosen, np.array(rows))
    names = ("Q", "R", *functionals)
    values = {f"{name}_bias": column for name, column in zip(names, columns.T, strict=True)}
    if save.snapshots and save.thresholds:
        targets = [sweep.support(float(t), field.prior, save.thresholds) for t in save.snapshots]
        rates = np.array([biases(field, rule, one)[0] for one in targets])
        rates = rates.reshape(-1, 3, len(save.thresholds))
        values |= {f"{name}_bias": rates[:, i] for i, name in enumerate(RATES)}
    return values
