"""Plots and queries in Python: the accessor ``.hdica`` of xarray, and a style for print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdica.plots.canvas import style as style

__all__ = ["style"]


def __getattr__(name: str) -> Any:
    # Matplotlib is imported by who draws, not by who imports this.
    if name == "style":
        from hdica.plots.canvas import style

        return style
    raise AttributeError(f"module 'hdica.plots' has no attribute {name!r}")
