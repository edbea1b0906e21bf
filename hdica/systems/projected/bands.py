"""Bands of the densities' limits: what a point keeps of the fluctuations of a mean field."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.save import Save
from hdica.limits.averages.expectations import ProductsAt
from hdica.limits.bands.solve import common_noise, spreads
from hdica.limits.bands.sweep import (
    Function,
    Noise,
    Target,
    histogram,
    means,
    overlap,
    penalty,
    support,
)
from hdica.limits.mean_field.family import MeanField
from hdica.limits.overlap.drift import Drift, second_order
from hdica.systems.outputs import Array

MOST_TIMES = 48
"""Times at which the bands of trajectories are solved for; between them they are interpolated."""
MOST_BINS = 24
"""Bins and edges likewise, of what is smooth in x."""
MOST_LAWS = 24
"""Times likewise at which whole densities have theirs: each has about 100 bins and edges."""


def noise_of(products: Callable[[], ProductsAt], batch: int = 1) -> Noise:
    """The noise that all entries share, of a rule by the averages of its push.

    They are found when a band is asked for, and not before.
    """
    return lambda q, tau: common_noise(products()(q), q, tau, batch)


def second_of(
    products: Callable[[], ProductsAt], batch: int = 1, shrunk: Drift | None = None, beta: float = 0
) -> Callable[[Array, float], Array]:
    """D1 of a rule by the averages of its push, likewise.

    A linear phi = beta x that acts on the estimate before the sample does makes a step longer by
    1 + tau beta/n: ``shrunk`` is then the drift of the rule.
    """

    def second(q: Array, tau: float) -> Array:
        found = second_order(products()(q), q, tau, batch)
        if shrunk is None or not beta:
            return found
        longer = tau * shrunk.learning(q) + 2 * tau**2 * shrunk.loss(q)
        return np.asarray(found + beta * tau * longer)

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


def between(at: Array, known: Array, columns: Array) -> Array:
    """Columns at all points from those at some of them; NaN beyond the last that is known."""
    if known.size == at.size:
        return columns
    found = np.full((at.size, columns.shape[1]), np.nan)
    there = np.isfinite(columns).all(axis=1)
    if np.count_nonzero(there) > 1:
        from scipy.interpolate import PchipInterpolator

        inside = at <= known[there][-1]
        found[inside] = PchipInterpolator(known[there], columns[there])(at[inside])
    return found


def _asked(
    field: MeanField, functions: list[Function], times: Array, save: Save
) -> list[tuple[str, Target]]:
    """What is solved for and of what kind it is, by increasing time."""
    prior, found = field.prior, [("means", means(float(t), functions)) for t in times]
    if save.thresholds:
        found += [("support", support(float(t), prior, save.thresholds)) for t in save.snapshots]
    if save.x:
        bins, edges = chosen_bins(save)
        low, high = save.edges[:-1][bins], save.edges[1:][bins]
        for t in chosen_laws(save):
            found.append(("histogram", histogram(float(t), prior, low, high, save.edges[edges])))
    return sorted(found, key=lambda one: one[1].time)


def band_values(
    field: MeanField,
    noise: Noise,
    functionals: dict[str, Function],
    times: Array,
    save: Save,
    values: dict[str, Array],
) -> dict[str, Array]:
    """``<name>_sd`` of everything that a point of method ``pde`` keeps, ``values``.

    Trajectories have theirs at every time, interpolated where there are many; what is kept at the
    snapshots has it there, whole densities likewise.
    """
    known = chosen_times(times)
    functions = [overlap, penalty(field.phi), *functionals.values()]
    asked = _asked(field, functions, known, save)
    solved = spreads(field, noise, [target for _, target in asked])
    parts: dict[str, list[Array]] = {"means": [], "support": [], "histogram": []}
    for (kind, _), one in zip(asked, solved, strict=True):
        parts[kind].append(one.value - one.squares if kind == "histogram" else one.value)
    columns = between(times, known, np.array(parts["means"]))
    names = ("Q", "R", *functionals)
    found = {f"{name}_sd": column for name, column in zip(names, columns.T, strict=True)}
    if parts["support"]:
        rates = np.array(parts["support"]).reshape(-1, 3, len(save.thresholds))
        found |= {f"{k}_sd": rates[:, i] for i, k in enumerate(("tpr", "fpr", "misclassified"))}
    if parts["histogram"]:
        found |= _of_laws(field, save, np.array(parts["histogram"]), values)
    return {name: np.sqrt(np.maximum(one, 0.0)) for name, one in found.items()}


def _of_laws(
    field: MeanField, save: Save, rows: Array, values: dict[str, Array]
) -> dict[str, Array]:
    """Variances of densities and distribution functions, from what is smooth in x of some."""
    share = field.prior.group_weights[:, None]
    bins, edges = chosen_bins(save)
    x, ends = np.asarray(save.x, dtype=float), save.edges
    groups, count = share.size, share.size * bins.size

    def whole(part: Array, at: Array, known: Array) -> Array:
        flat = part.reshape(-1, known.size).T
        return between(at, known, flat).T.reshape(part.shape[0], groups, at.size)

    rows = between(np.asarray(save.snapshots, dtype=float), chosen_laws(save), rows)
    smooth = whole(rows[:, :count], x, x[bins]), whole(rows[:, count:], ends, ends[edges])
    inside = np.diff(values["cdf"], axis=-1) / np.diff(ends) ** 2
    return {
        "density_sd": smooth[0] + inside / share,
        "cdf_sd": smooth[1] + values["cdf"] / share,
    }
