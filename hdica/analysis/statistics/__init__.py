"""Tests, errors and exponents."""
