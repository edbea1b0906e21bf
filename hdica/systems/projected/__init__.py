"""The family of rules that bring the estimate back to |x|^2 = n: its ways to compute a point."""

VERSION = 7
