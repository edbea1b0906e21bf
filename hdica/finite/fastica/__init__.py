"""FastICA: one component from many starts at once, and several components of the same samples."""

VERSION = 1
