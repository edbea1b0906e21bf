"""The ways to compute a point of independent component analysis of patches."""
