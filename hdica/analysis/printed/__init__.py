"""Results beside the numbers that a paper prints."""
