"""What became of a study: published, read, verified, repaired."""
