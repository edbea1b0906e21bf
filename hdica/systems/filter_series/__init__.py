"""First-layer filters of networks over their training, beside what ICA finds."""

VERSION = 1
