"""The effective potential of one entry."""
