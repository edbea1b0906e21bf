"""Long names of the variables."""

LONG_NAMES = {
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

LONG_TIMES = (
    *("exposure", "longest", "theory", "kramers", "printed"),
    *(f"{k}{end}" for k in ("mean", "restricted", "median") for end in ("", "_low", "_high")),
)
UNITS = dict.fromkeys(LONG_TIMES, "n^3 steps")
