"""Collapse at the transitions of one overlap: what every n has in common there."""

VERSION = 2
