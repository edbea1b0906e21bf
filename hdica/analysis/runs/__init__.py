"""What was run: points, outcomes and time by method."""
