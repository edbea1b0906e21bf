"""Steady states over one parameter, and where simulations end."""
