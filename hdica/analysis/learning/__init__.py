"""Whether the limits of a study learn anything at all."""
