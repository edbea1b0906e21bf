"""What became of a point, as results say it: the codes of the variable ``status``."""

from __future__ import annotations

PENDING, DONE, DIVERGED, FAILED = range(4)
STATUS_NAMES = ("pending", "done", "diverged", "failed")
"""By code."""
