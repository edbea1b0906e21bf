"""Samples of the subspace model, and what is estimated from them."""

VERSION = 1
