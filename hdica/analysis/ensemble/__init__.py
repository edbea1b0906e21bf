"""The whole ensemble of runs in time, beside theory."""
