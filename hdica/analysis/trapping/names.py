"""Long names of the variables."""

LONG_NAMES = {
    "U": "potential U/D of r = sqrt(n) R, D the variance of its noise in a unit of time",
    "barrier": "height of the barrier of U/D",
    "summit": "r at the top of the barrier",
}
