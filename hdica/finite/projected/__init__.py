"""Rules that bring the estimate back to |x|^2 = n: all coordinates, and the overlap alone."""

VERSION = 4
