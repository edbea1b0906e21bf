"""Escape times: runs that ended too early included, against theory."""
