"""Whether a limit condenses: mass that no density can hold."""
