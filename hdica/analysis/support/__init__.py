"""Recovery of the feature's support by thresholding."""
