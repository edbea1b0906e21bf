"""A landscape on the circle or the sphere, with its critical points."""
