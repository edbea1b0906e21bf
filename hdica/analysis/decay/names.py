"""Long names of the variables."""

LONG_NAMES = {
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
