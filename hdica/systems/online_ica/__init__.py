"""Online ICA (Wang and Lu 2017)."""
