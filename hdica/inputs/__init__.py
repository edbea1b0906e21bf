"""Data that somebody measured: where it lies, what it is by its content, images and patches."""

VERSION = 1
