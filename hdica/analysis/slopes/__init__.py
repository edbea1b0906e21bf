"""How the end of a run changes along a parameter."""
