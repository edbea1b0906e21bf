"""Ways to compute points of online tensorial ICA."""
