"""Diffusions of one variable: first passages, densities, paths."""

VERSION = 4
