"""Online ICA with several features (Wang and Lu 2017, section 2)."""

VERSION = 5
