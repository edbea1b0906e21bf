"""From a study to its numbers: planning, spreading blocks, computing and committing them."""
