"""Simulation against limit as n grows."""
