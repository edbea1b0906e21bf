"""Single runs of a simulation."""
