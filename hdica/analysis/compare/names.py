"""Long names of the variables."""

LONG_NAMES = {
    "mean": "mean of {v} over seeds",
    "sd": "standard deviation of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "dimension": "dimension n of the simulation",
    "limit_mean": "limit of {v}",
    "steady": "{v} at a stable steady state",
}
