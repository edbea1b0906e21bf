"""Points and grids of a system as labelled data."""
