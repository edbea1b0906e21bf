"""Trajectories of several methods side by side."""
