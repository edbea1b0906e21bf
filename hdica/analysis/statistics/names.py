"""Long names of what a verdict on a law consists of."""

from hdica.analysis.convergence.names import LONG_NAMES

AGREEMENT = {
    k: LONG_NAMES[k]
    for k in (
        *("verdict", "why", "control_p", "control_rejected", "power"),
        *("seeds_needed", "seeds_needed_error", "n_from", "n_count"),
    )
} | {
    "p_value": "p-value of mean = limit + C/n over all places of the law",
    "score": "largest normal score over the places of the law",
    "count": "seeds that are done",
}
