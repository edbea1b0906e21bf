"""The problems, each with its mathematics and the ways to compute it."""

VERSION = 4
