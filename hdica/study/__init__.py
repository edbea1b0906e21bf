"""Studies: what a study file may say, its grid, and the content keys of its points."""
