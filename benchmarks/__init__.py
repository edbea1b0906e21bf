"""Questions about speed, answered with ratios against a named rival in the same run."""
