"""What a system chose of itself."""
