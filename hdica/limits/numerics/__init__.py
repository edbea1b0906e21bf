"""Series, integrators, zeros: what every limit is solved with."""

VERSION = 4
