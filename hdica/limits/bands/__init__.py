"""Fluctuations of order n^-1/2 about a mean-field limit, and its derivatives, by adjoints."""

VERSION = 6
