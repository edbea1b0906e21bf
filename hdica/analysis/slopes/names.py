"""Long names of the variables."""

LONG_NAMES = {
    "": "change of the mean of {v} at the last time per unit of {p}",
    "_low": "lower end of the 95 % interval of the change per unit of {p}",
    "_high": "upper end of the 95 % interval of the change per unit of {p}",
    "_se": "standard error of the change per unit of {p}, over seeds that both ends share",
    "_se_apart": "the same with independent noise at both ends",
    "_count": "seeds that are done at both ends",
}
"""By ending of the name; the slope itself is ``slope_p``."""
