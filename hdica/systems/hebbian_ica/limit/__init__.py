"""The limit (17) and what surrounds it."""
