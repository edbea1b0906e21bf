"""A local server to look around in results: slices are read and drawn as they are asked for."""
