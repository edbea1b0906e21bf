"""Whether runs of every n lie on one curve at a transition, with no exponent fitted."""
