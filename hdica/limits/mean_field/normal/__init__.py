"""Limits whose estimate is normal given the feature: regularizers 0 and beta*x."""

VERSION = 1
