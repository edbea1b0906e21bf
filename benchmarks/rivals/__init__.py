"""The rivals' code, as an expert would write it in each library."""
