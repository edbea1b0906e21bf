"""Hebbian ICA and its stochastic trapping (Rattray 2002)."""

VERSION = 5
