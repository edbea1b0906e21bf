"""The variables that methods return: of points, densities, lists of states, laws of escapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.save import Save

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Output:
    """One variable that a method returns.

    Parameters
    ----------
    name
        Name in datasets.
    dims
        Dimensions beyond the grid, ``n`` and ``seed``: ``("time",)`` for a trajectory.
    long_name, units
        CF attributes of the variable.
    """

    name: str
    dims: tuple[str, ...]
    long_name: str
    units: str = "1"


@dataclass(frozen=True)
class PointResult:
    """What one point gave.

    Parameters
    ----------
    values
        By output name, float64, shaped like the output's dims; NaN where not reached.
    diverged
        Empty, or one sentence that says why, at which step and time the point diverged.
    """

    values: dict[str, Array]
    diverged: str = ""


_BY_X = ("snapshot", "feature", "x")
_BY_THRESHOLD = ("snapshot", "threshold")
DENSITIES = (
    Output("density", _BY_X, "density of the estimate given the feature, at x"),
    Output(
        "cdf",
        ("snapshot", "feature", "edge"),
        "distribution function of the estimate x given the feature",
    ),
    Output("xi", ("feature",), "mean of xi over a group of the feature's entries"),
    Output("weight", ("feature",), "share of the feature's entries in a group"),
)
BY_STATE = ("fixed_point", "feature", "x")
STEADY_DENSITIES = (
    Output(
        "density",
        BY_STATE,
        "steady density of the estimate given the feature, at x; of a condensed state that of all "
        "but o(n) entries, whose E[x^2] is bulk < 1",
    ),
    Output(
        "cdf",
        (*BY_STATE[:2], "edge"),
        "steady distribution function of the estimate given the feature; of a condensed state that "
        "of all but o(n) entries",
    ),
    *DENSITIES[2:],
)
HISTOGRAM = Output(
    "density", _BY_X, "density of the estimate given the feature, mean over the bin around x"
)
"""What entries give in place of a density at x; over the same bins a limit has the differences of
its ``cdf`` at their edges."""
SUPPORT = (
    Output("tpr", _BY_THRESHOLD, "true positive rate: share of xi != 0 with abs(x) above"),
    Output("fpr", _BY_THRESHOLD, "false positive rate: share of xi = 0 with abs(x) above"),
    Output("misclassified", _BY_THRESHOLD, "share of entries on the wrong side of the threshold"),
)
ESTIMATE = (
    Output("estimate", ("snapshot", "entry"), "entry of the estimate x, with |x|^2 = n"),
    Output("xi_entry", ("entry",), "entry of the feature xi, with |xi|^2 = n"),
)
CONTROL = "with the pull b towards the feature wrong by 2 % (negative control)"
DENSITY_CONTROLS = (
    Output("cdf_control", ("snapshot", "feature", "edge"), f"distribution function {CONTROL}"),
)
SUPPORT_CONTROLS = (
    Output("tpr_control", _BY_THRESHOLD, f"true positive rate {CONTROL}"),
    Output("fpr_control", _BY_THRESHOLD, f"false positive rate {CONTROL}"),
)
POTENTIAL = Output("potential", _BY_X, "effective potential E_t(x, xi) of one entry")


def band_of(output: Output) -> Output:
    """How far runs of a finite n are from a variable of a limit."""
    words = f"limit of sqrt(n) times the standard deviation of: {output.long_name}"
    return Output(f"{output.name}_sd", output.dims, words)


def bias_of(output: Output) -> Output:
    """What n leaves of the mean of runs beyond a variable of a limit."""
    words = f"limit of n times (mean of runs - limit) of: {output.long_name}"
    return Output(f"{output.name}_bias", output.dims, words)


def saved_outputs(save: Save) -> list[tuple[str, Output]]:
    """What a study saves: pairs of what a method must be able to keep, and the variable."""
    kept: list[tuple[str, Output]] = []
    if save.x:
        kept += [("steady densities", o) for o in STEADY_DENSITIES]
    if save.snapshots and save.x:
        kept += [("densities", o) for o in DENSITIES]
        kept += [("controls", o) for o in DENSITY_CONTROLS]
        kept.append(("potential", POTENTIAL))
        if save.bands:
            kept += [("bands", band_of(o)) for o in (HISTOGRAM, DENSITIES[1])]
    if save.snapshots and save.thresholds:
        kept += [("support", o) for o in SUPPORT]
        kept += [("controls", o) for o in SUPPORT_CONTROLS]
        if save.bands:
            kept += [("bands", band_of(o)) for o in SUPPORT]
        if save.bias:
            kept += [("bias", bias_of(o)) for o in SUPPORT]
    if save.snapshots and save.estimate:
        kept += [("estimate", o) for o in ESTIMATE]
    for name, formula in save.functionals.items():
        mean = Output(name, ("time",), f"mean of {formula}")
        kept.append(("functionals", mean))
        if save.bands:
            kept.append(("bands", band_of(mean)))
        if save.bias:
            kept.append(("bias", bias_of(mean)))
        error = Output(f"{name}_error", ("time",), f"error of the mean of {formula}")
        wrong = Output(f"{name}_control", ("time",), f"mean of {formula} {CONTROL}")
        kept += [("controls", error), ("controls", wrong)]
    return kept


STATE_KINDS = ("informative", "uninformative", "condensed")
TRANSITION_KINDS = ("fold", "transcritical", "junction")
INFORMATIVE, FOLD = 0, 0
"""Codes of the first of each."""
ZERO = 1e-9
"""An overlap closer to 0 than this is 0 with rounding; such a steady state is uninformative."""


def codes(kinds: Iterable[object], names: tuple[str, ...]) -> Array:
    """Position of each kind among its names, as numbers that a store holds."""
    return np.array([names.index(str(kind)) for kind in kinds], dtype=float)


def words(values: Array, names: Sequence[str]) -> NDArray[np.object_]:
    """Kinds by their codes."""
    return np.array([names[int(code)] for code in values], dtype=object)


def padded(columns: Mapping[str, Array], size: int, what: str) -> dict[str, Array]:
    """Columns of a list of states, with NaN up to ``size``."""
    count = max(column.size for column in columns.values())
    if count > size:
        raise HdicaError(f"{count} {what} were found, more than the {size} a store holds")
    rest = np.full(size - count, np.nan)
    return {name: np.concatenate([column, rest]) for name, column in columns.items()}


AGES = 2.0 ** (np.arange(-64, 25) / 8)
"""Times at which survival is given, in multiples of the mean, of the first escape or the last."""
UNIT = "n^3 steps"


def over_age(times: Array) -> dict[str, Array]:
    """Coordinates of a survival, whatever the times of a study."""
    return {"age": AGES}


def at_ages(survival: Callable[[Array], Array], mean: float) -> Array:
    """A survival at the ages; that of an exponential law where the mean is no number above 0."""
    return survival(AGES * mean) if 0 < mean < math.inf else np.exp(-AGES)
