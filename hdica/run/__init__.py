"""From a study to its points on disk: what is to compute, and the workers that compute it."""
