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
    "successes": "seeds with |{v}| above the threshold at the last time",
    "trials": "seeds that are done",
    "diverged": "seeds that diverged",
    "probability": "share of seeds that succeed",
    "probability_low": "lower end of the 95 % Wilson interval",
    "probability_high": "upper end of the 95 % Wilson interval",
    "limit": "limit of |{v}| at the last time",
    "limit_success": "1 where the limit ends above the threshold",
    "agreement": "1 where the majority of seeds ends on the limit's side",
    "agreement_share": "share of cells whose majority ends on the limit's side",
    "boundary": "smallest unstable informative fixed point",
    "boundary_stable": "stable informative fixed point above the boundary",
    "threshold": "start with even odds (Spearman-Karber)",
    "threshold_se": "standard error of the start with even odds",
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

UNITS = {"sup_time": "samples per dimension (k/n)"}
TEXT = {"verdict", "why"}


def described(
    data: xr.Dataset, variable: str = "Q", table: dict[str, str] = CONVERGENCE
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
            values.attrs["units"] = UNITS.get(str(name), "1")
    return data
