"""Long names of the variables."""

LONG_NAMES = {
    "drift": "g(q) = (1/tau) dq/dt",
    "fixed_q": "q = Q^2 of the fixed point",
    "fixed_Q": "Q of the fixed point",
    "stable": "1 if stable, 0 if unstable",
}
