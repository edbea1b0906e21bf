"""ICA in the principal subspace (Reduce and Conquer 2025)."""

VERSION = 1
