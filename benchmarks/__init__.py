"""Questions about speed, answered with ratios against named rivals in the same run."""

REGISTRY = {
    "vector": "a step of the rule, all n entries",
    "shared_noise": "the same at 32 parameters at once",
    "chain": "a step of the overlap alone",
    "hebbian": "a step of Hebbian ICA",
    "tensorial": "a step of tensorial ICA",
    "fastica": "an iteration of FastICA",
    "pde": "a limiting density over time",
    "bands": "bands of a limit at every n",
    "fold": "a critical parameter",
    "sweep": "a sweep of 10 000 short points",
    "overhead": "a study of a minute and of ten",
    "scaling": "growth with n, points and workers",
}
"""Modules with ``NAME`` and ``rows(small, repeats)``, in the order shown, and what they time."""
