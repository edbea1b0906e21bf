"""Long names of the variables."""

FEATURE = "value of xi of the group"

LONG_NAMES = {
    "limit": "limit of the density of x given xi",
    "density": "histogram density of x given xi, mean over seeds",
    "density_se": "standard error of the histogram density",
    "count": "seeds that are done",
    "xi": FEATURE,
}
