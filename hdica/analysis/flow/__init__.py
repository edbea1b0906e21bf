"""The drift as a curve, with its zeros."""
