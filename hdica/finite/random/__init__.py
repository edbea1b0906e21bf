"""Random streams and normal numbers, eight lanes side by side."""

VERSION = 4
LANES = 8
"""Numbers in one vector of the kernels, and chains that run side by side: part of the definition
of every result, as sums add lane by lane."""
