"""Independent component analysis of patches of natural images."""

VERSION = 1
