"""Steady states of the density, and their stability."""

VERSION = 7
