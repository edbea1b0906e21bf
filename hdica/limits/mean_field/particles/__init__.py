"""The same limit by particles that see each other through Q and R alone."""

VERSION = 4
