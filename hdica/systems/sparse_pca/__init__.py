"""Online sparse PCA (Wang and Lu 2016)."""

VERSION = 4
