"""Infinitely many samples, or as many per dimension as given: losses, thresholds, flows."""

VERSION = 1
