"""Grid points of results: what can be chosen, slices of it, and the table of all means."""
