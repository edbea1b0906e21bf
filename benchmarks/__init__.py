"""Questions about speed, answered with ratios against named rivals in the same run."""

REGISTRY = (
    "vector",
    "shared_noise",
    "chain",
    "hebbian",
    "tensorial",
    "fastica",
    "pde",
    "fold",
    "sweep",
    "overhead",
    "scaling",
)
"""Modules of this package with ``NAME`` and ``rows(small, repeats)``, as shown."""
