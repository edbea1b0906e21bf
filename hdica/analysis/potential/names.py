"""Long names of the variables."""

from hdica.analysis.densities.names import FEATURE

LONG_NAMES = {
    "potential": "effective potential E_t(x, xi) - E_t(0, xi)",
    "convex": "1 where the effective potential is convex",
    "curvature": "d_t = 2h, curvature of the effective potential",
    "xi": FEATURE,
}
