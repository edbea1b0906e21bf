"""Patches of images, what FastICA finds in them, and what other patches say about it."""

VERSION = 1
