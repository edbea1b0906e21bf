"""Long names of what the analyses return."""

from __future__ import annotations

import xarray as xr

CONVERGENCE = {
    "mean": "mean of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "sd": "standard deviation of {v} over seeds",
    "difference": "mean of {v} minus its limit",
    "z": "difference over its standard error, solver error included",
    "sd_predicted": "standard deviation of {v} by the central limit theorem",
    "sup_error": "largest |mean of {v} - limit| over time",
    "sup_error_se": "standard error of the mean where the difference is largest",
    "sup_time": "time of the largest difference",
    "rms_sd": "standard deviation of {v}, root mean square over time",
    "rms_sd_predicted": "predicted standard deviation of {v}, root mean square over time",
    "count": "seeds that are done",
    "diverged": "seeds that diverged",
    "failed": "seeds that failed",
    "pending": "seeds not yet computed",
    "bias_p": "p-value of mean = limit at this n, over all times",
    "fluctuation_exponent": "a in sd ~ n^-a",
    "fluctuation_exponent_low": "lower end of the 95 % interval of a",
    "fluctuation_exponent_high": "upper end of the 95 % interval of a",
    "fluctuation_exponent_n_from": "smallest n in the fit of a",
    "fluctuation_exponent_resolved": "1 where a is determined by the data",
    "bias_exponent": "b in |mean - limit| ~ n^-b",
    "bias_exponent_low": "lower end of the 95 % interval of b",
    "bias_exponent_high": "upper end of the 95 % interval of b",
    "bias_exponent_n_from": "smallest n in the fit of b",
    "bias_exponent_resolved": "1 where the bias stands above its noise",
    "verdict": "agrees, differs or undecided",
    "why": "reason of the verdict",
    "p_value": "p-value of mean = limit + C/n over all times",
    "score": "largest normal score over time of mean - limit - C/n",
    "control_p": "p-value of the same test against a drift wrong by 2 %",
    "control_rejected": "1 where the drift wrong by 2 % is rejected",
    "power": "chance that a drift wrong by 2 % is rejected",
    "seeds_needed": "seeds at each n that would decide an open comparison 19 times in 20",
    "seeds_needed_error": "standard error of the seeds that would decide",
    "n_from": "smallest n in the test",
    "n_count": "number of n in the test",
    "coefficient": "C in the finite-n term C/n",
    "coefficient_error": "standard error of C",
    "extrapolated": "mean of {v} extrapolated to n = infinity",
    "extrapolated_error": "standard error of the extrapolated mean",
    "limit": "limit of {v}",
    "limit_error": "solver error of the limit of {v}",
    "limit_control": "limit of {v} with a drift wrong by 2 %",
    "limit_sd": "sqrt(n) times the predicted standard deviation of {v}",
}

PHASE = {
    "overlap": "mean of |{v}| over seeds at the last time",
    "signed": "mean of {v} over seeds at the last time",
    "successes": "seeds that go to an informative state",
    "decaying": "seeds with |{v}| above the threshold at the last time that do not",
    "by_limit": "1 where the limit's steady states tell where runs go, 0 where their trend does",
    "trials": "seeds that are done",
    "diverged": "seeds that diverged",
    "probability": "share of seeds that succeed",
    "probability_low": "lower end of the 95 % Wilson interval",
    "probability_high": "upper end of the 95 % Wilson interval",
    "limit": "limit of |{v}| at the last time",
    "limit_success": "1 where the limit goes to an informative state",
    "agreement": "1 where the majority of seeds goes where the limit goes",
    "agreement_share": "share of cells whose majority goes where the limit goes",
    "agreement_share_low": "lower end of its 95 % interval over seeds, which the cells share",
    "agreement_share_high": "upper end of its 95 % interval over seeds, which the cells share",
    "boundary": "smallest unstable informative fixed point",
    "boundary_stable": "stable informative fixed point above the boundary",
    "threshold": "start with even odds (Spearman-Karber)",
    "threshold_se": "standard error of the start with even odds",
    "threshold_shift": "shift of the start with even odds since the value of x before",
    "threshold_shift_se": "standard error of the shift, over seeds that both share",
    "critical_value": "critical value",
    "critical_overlap": "overlap at the critical value",
    "critical_error": "error of the critical value",
}

FLOW = {
    "drift": "g(q) = (1/tau) dq/dt",
    "fixed_q": "q = Q^2 of the fixed point",
    "fixed_Q": "Q of the fixed point",
    "stable": "1 if stable, 0 if unstable",
}

EXPONENT = {
    "": "a in {d} ~ n^-a",
    "_low": "lower end of the 95 % interval of a for {d}",
    "_high": "upper end of the 95 % interval of a for {d}",
    "_n_from": "smallest n in the fit of a for {d}",
    "_resolved": "1 where a for {d} is determined by the data",
}

AGREEMENT = {
    k: CONVERGENCE[k]
    for k in (
        *("verdict", "why", "control_p", "control_rejected", "power"),
        *("seeds_needed", "seeds_needed_error", "n_from", "n_count"),
    )
} | {
    "p_value": "p-value of mean = limit + C/n over all places of the law",
    "score": "largest normal score over the places of the law",
    "count": "seeds that are done",
}

FEATURE = "value of xi of the group"


def _distance(name: str, words: str) -> dict[str, str]:
    return {
        name: f"{words} distance of one run, mean over seeds",
        f"{name}_se": f"standard error of the {words} distance",
        f"{name}_expected": f"{words} distance of as many independent entries",
        f"{name}_pooled": f"{words} distance of the law pooled over seeds",
        f"{name}_pooled_expected": f"{words} distance of as many pooled independent entries",
        **{f"{name}_exponent{k}": text.format(d=words) for k, text in EXPONENT.items()},
    }


DISTANCES = {
    **AGREEMENT,
    **_distance("ks", "Kolmogorov-Smirnov"),
    **_distance("w1", "Wasserstein-1"),
    "outside": "share of entries outside the edges",
    "outside_limit": "share of the limit's mass outside the edges",
    "xi": FEATURE,
}

DENSITIES = {
    "limit": "limit of the density of x given xi",
    "density": "histogram density of x given xi, mean over seeds",
    "density_se": "standard error of the histogram density",
    "count": "seeds that are done",
    "xi": FEATURE,
}

SUPPORT = {
    **AGREEMENT,
    "tpr": "true positive rate, mean over seeds",
    "tpr_se": "standard error of the true positive rate",
    "tpr_limit": "limit of the true positive rate",
    "fpr": "false positive rate, mean over seeds",
    "fpr_se": "standard error of the false positive rate",
    "fpr_limit": "limit of the false positive rate",
    "misclassified": "misclassified share, mean over seeds",
    "misclassified_se": "standard error of the misclassified share",
    "misclassified_limit": "limit of the misclassified share",
    "area_limit": "area under the limit's true against false positive rate",
}

POTENTIAL = {
    "potential": "effective potential E_t(x, xi) - E_t(0, xi)",
    "convex": "1 where the effective potential is convex",
    "curvature": "d_t = 2h, curvature of the effective potential",
    "xi": FEATURE,
}

CONDENSING = {
    "curvature": "d_t = 2h at the last time",
    "least": "least d_t = 2h over time",
    "end": "last time with a curvature",
}

COMPARE = {
    "mean": "mean of {v} over seeds",
    "sd": "standard deviation of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "dimension": "dimension n of the simulation",
    "limit_mean": "limit of {v}",
    "steady": "{v} at a stable steady state",
}

TRANSITION = {
    "value": "critical value",
    "Q": "{v} at the transition",
    "error": "error of the critical value",
    "kind": "0 fold, 1 transcritical, 2 junction",
}


def _columns(prefix: str, where: str) -> dict[str, str]:
    return {
        f"{prefix}_Q": f"{{v}} {where}",
        f"{prefix}_h": f"h, half the curvature of the effective potential, {where}",
        f"{prefix}_bulk": f"E[x^2] of the bulk {where}",
        f"{prefix}_stable": f"1 if stable, 0 if unstable, {where}",
        f"{prefix}_kind": f"0 informative, 1 uninformative, 2 condensed, {where}",
    }


STEADY = {
    **_columns("fixed", "at the fixed point"),
    **_columns("branch", "along the branch"),
    "branch_value": "parameter along the branch",
    "branch_index": "index of the branch",
    "transition_value": "parameter at the transition",
    "transition_Q": "{v} at the transition",
    "transition_error": "error of the transition",
    "transition_kind": "0 fold, 1 transcritical, 2 junction",
    "limit_end": "limit of |{v}| at the last time",
    "overlap": "mean of |{v}| over seeds at the last time",
    "overlap_se": "standard error of the mean of |{v}|",
    "count": "seeds that are done",
    "largest": "share of |x|^2 on the largest entry at the last time, mean over seeds",
    "largest_se": "standard error of the share on the largest entry",
    "state": "|{v}| of a stable state",
    "state_kind": "kind of a stable state: 0 informative, 1 uninformative, 2 condensed",
    "nearest": "|{v}| of the stable state nearest to the simulation",
    "nearest_kind": "kind of the stable state nearest to the simulation",
    "on_branch": "1 where the simulation is within 3 standard errors and 3/sqrt(n) of it",
    "bistable_from": "lower end of a range with several stable states",
    "bistable_to": "upper end of a range with several stable states",
}

SLOPES = {
    "": "change of the mean of {v} at the last time per unit of {p}",
    "_low": "lower end of the 95 % interval of the change per unit of {p}",
    "_high": "upper end of the 95 % interval of the change per unit of {p}",
    "_se": "standard error of the change per unit of {p}, over seeds that both ends share",
    "_se_apart": "the same with independent noise at both ends",
    "_count": "seeds that are done at both ends",
}
"""By ending of the name; the slope itself is ``slope_p``."""

ESCAPE = {
    "runs": "runs that are done",
    "escapes": "runs that escaped",
    "diverged": "runs that diverged, which are not counted as runs",
    "exposure": "time for which all runs together were observed",
    "mean": "mean escape time: exposure over escapes for the first, of all runs for the last",
    "mean_low": "lower end of the 95 % interval of the mean escape time",
    "mean_high": "upper end of the 95 % interval of the mean escape time",
    "restricted": "mean of the smaller of the escape time and the longest run",
    "restricted_low": "lower end of the 95 % interval of the restricted mean",
    "restricted_high": "upper end of the 95 % interval of the restricted mean",
    "longest": "time of the longest run",
    "median": "median escape time (Kaplan-Meier)",
    "median_low": "lower end of the 95 % interval of the median",
    "median_high": "upper end of the 95 % interval of the median",
    "exponential_p": "p-value of escapes having a constant rate",
    "survival": "share of runs that have not escaped (Kaplan-Meier)",
    "survival_low": "lower end of the 95 % interval of the share that has not escaped",
    "survival_high": "upper end of the 95 % interval of the share that has not escaped",
    "theory": "mean escape time in theory",
    "theory_survival": "probability of no escape in theory",
    "at_n": "1 where the theory is for the same n, 0 where it is for n = infinity",
    "kramers": "Kramers' formula for the pair that escapes first",
    "printed": "Kramers' formula with the exponent as printed, for the pair that escapes first",
    "expected": "escapes expected by theory while the runs were observed",
    "p_value": "p-value of the runs following the theory",
    "verdict": "agrees, differs or undecided",
    "why": "reason of the verdict",
    "seeds_needed": "runs that would decide an open comparison",
    "seeds_needed_error": "standard error of the runs that would decide",
}

PATHS = {"path": "{v} of a single run"}

DECAY = {
    "gap": "mean of {v} over seeds minus its target",
    "gap_se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "dimension": "dimension n of the simulation",
    "slope": "d log |mean of {v} - target| / d log t over the last decade",
    "slope_se": "standard error of the slope, over seeds",
    "scaled": "t (mean of {v} - target) at the last time",
    "scaled_se": "standard error of t (mean of {v} - target) at the last time",
    "limit_gap": "limit of {v} minus its target",
    "limit_slope": "d log |limit of {v} - target| / d log t over the last decade",
    "limit_scaled": "t (limit of {v} - target) at the last time",
}

TRAPPING = {
    "U": "potential U/D of r = sqrt(n) R, D the variance of its noise in a unit of time",
    "barrier": "height of the barrier of U/D",
    "summit": "r at the top of the barrier",
}

LONG_TIMES = (
    *("exposure", "longest", "theory", "kramers", "printed"),
    *(f"{k}{end}" for k in ("mean", "restricted", "median") for end in ("", "_low", "_high")),
)
ESCAPE_UNITS = dict.fromkeys(LONG_TIMES, "n^3 steps")

UNITS = dict.fromkeys(("sup_time", "end"), "samples per dimension (k/n)")
TEXT = {"verdict", "why"}


def described(
    data: xr.Dataset,
    variable: str = "Q",
    table: dict[str, str] = CONVERGENCE,
    units: dict[str, str] = UNITS,
) -> xr.Dataset:
    """The dataset with ``long_name`` and ``units`` on every variable.

    Raises
    ------
    KeyError
        If a variable has no long name: a new one must be described here.
    """
    for name, values in data.data_vars.items():
        values.attrs["long_name"] = table[str(name)].format(v=variable)
        if name not in TEXT:
            values.attrs["units"] = units.get(str(name), "1")
    return data
