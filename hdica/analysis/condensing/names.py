"""Long names of the variables."""

LONG_NAMES = {
    "curvature": "d_t = 2h at the last time",
    "least": "least d_t = 2h over time",
    "end": "last time with a curvature",
}
