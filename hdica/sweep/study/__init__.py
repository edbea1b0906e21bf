"""What a study says: its settings, its grid and the content keys of its points."""
