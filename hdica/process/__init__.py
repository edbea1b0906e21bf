"""The process that computes: its caches, its threads, its private folders, its time."""
