"""Limits of projected rules with an element-wise regularizer."""
