"""Averages over a source and a normal number."""

VERSION = 6
