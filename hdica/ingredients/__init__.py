"""What a problem is made of: sources, priors, nonlinearities, regularizers, schedules, starts."""

VERSION = 5
