"""Escape from R = 0."""
