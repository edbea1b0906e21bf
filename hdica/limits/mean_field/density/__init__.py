"""The density of the estimate, by its Fokker-Planck equation."""

VERSION = 5
