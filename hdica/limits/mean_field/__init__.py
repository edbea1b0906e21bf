"""Limits of projected rules with an element-wise regularizer."""

VERSION = 4
