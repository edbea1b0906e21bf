"""Limits closed in the overlap alone."""
