"""Fields, and ways to compute, that several systems share."""
