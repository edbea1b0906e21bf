"""Limits closed in the overlap alone."""

VERSION = 8
