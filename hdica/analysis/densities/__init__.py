"""Densities of the estimate's entries, given the feature."""
