"""Sweeps: a validated study, its grid, its stores and the runner that fills them."""
