"""Long names of the variables."""

LONG_NAMES = {"path": "{v} of a single run"}
