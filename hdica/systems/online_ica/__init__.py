"""Online ICA (Wang and Lu 2017)."""

VERSION = 5
