"""What lies on disk: the working store, sealed and checked, and the files beside it."""
