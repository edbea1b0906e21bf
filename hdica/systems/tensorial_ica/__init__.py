"""Online tensorial ICA (Li and Jordan 2021)."""

VERSION = 2
