"""Small step sizes: drift, fluctuations, traverse times, landscape and bounds."""

VERSION = 1
