"""Exact dynamics at finite n: random streams, compiled kernels, reduced chains."""
