"""Random streams and normal numbers, eight lanes side by side."""

VERSION = 4
