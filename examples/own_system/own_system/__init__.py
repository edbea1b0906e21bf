"""Robust regression on the sphere, and when an overlap crosses a level."""

VERSION = 1  # raised with any change here that can change a number
