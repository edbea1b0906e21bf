"""Steady states as a parameter varies: branches, and where they end."""

VERSION = 6
