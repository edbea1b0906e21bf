"""The version of the numerical code: part of every study's hash and of every point's key."""

from __future__ import annotations

# Raise it with any change to ingredients, finite, limits or systems that can change a number,
# and record the new digest with it: a test compares both with the sources.
KERNEL_VERSION = "4"
