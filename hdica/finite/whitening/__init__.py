"""Sample mean, leading principal components and whitened scores, from samples in any blocks."""

VERSION = 1
