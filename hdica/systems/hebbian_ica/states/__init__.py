"""Fixed points of (17): searched for, and proved complete where that is possible."""
