"""Learning curves: how the distance to a target falls with time."""
