"""Measured against predicted: tests with a control, their errors, odds, survival and exponents."""
