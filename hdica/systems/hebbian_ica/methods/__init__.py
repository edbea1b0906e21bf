"""The ways to compute Hebbian ICA."""
