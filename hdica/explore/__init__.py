"""A local server behind the explorer of pages: it answers slices of results."""
