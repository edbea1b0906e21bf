"""Online tensorial ICA step by step, in d dimensions."""

VERSION = 1
"""The rule of Li and Jordan (2021) on all d coordinates, and the samples that it is shown."""
