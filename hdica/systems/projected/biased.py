"""Bias of the densities' limits: what n leaves of the means that a point keeps, at order 1/n."""

from __future__ import annotations

import numpy as np

from hdica.ingredients.save import Save
from hdica.limits.bands.bias import Rule, biases
from hdica.limits.bands.sweep import Function, means, overlap, penalty, support
from hdica.limits.mean_field.family import MeanField
from hdica.systems.outputs import Array
from hdica.systems.projected.bands import between, chosen_times

MOST_TIMES = 12
"""Times at which the bias of trajectories is solved for; between them it is interpolated."""


def _of_means(
    field: MeanField, rule: Rule, functionals: dict[str, Function], times: Array
) -> dict[str, Array]:
    known = chosen_times(times, MOST_TIMES)
    functions = [overlap, penalty(field.phi), *functionals.values()]
    rows = [biases(field, rule, means(float(t), functions))[0] for t in known]
    columns = between(times, known, np.array(rows))
    names = ("Q", "R", *functionals)
    return {f"{name}_bias": column for name, column in zip(names, columns.T, strict=True)}


def bias_values(
    field: MeanField, rule: Rule, functionals: dict[str, Function], times: Array, save: Save
) -> dict[str, Array]:
    """``<name>_bias`` of the means and rates that a point of method ``pde`` keeps.

    A bin of the density is the mean of a functional, such as ``where((x > 0) & (x < 1), 1, 0)``.
    """
    found = _of_means(field, rule, functionals, times)
    if save.snapshots and save.thresholds:
        targets = [support(float(t), field.prior, save.thresholds) for t in save.snapshots]
        rates = np.array([biases(field, rule, one)[0] for one in targets])
        rates = rates.reshape(-1, 3, len(save.thresholds))
        names = ("tpr", "fpr", "misclassified")
        found |= {f"{name}_bias": rates[:, i] for i, name in enumerate(names)}
    return found
