"""Densities over time as an animation on Matplotlib axes."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib import rcParams

from hdica.analysis.densities.densities import WHAT, over_time
from hdica.errors import HdicaError, suggestion
from hdica.plots import densities
from hdica.plots.canvas import MARK, legend_on, style
from hdica.plots.source import Source, matching
from hdica.report.animated import Animation, animated
from hdica.report.printed import STYLE
from hdica.show.choose import evenly
from hdica.show.panel import FRAMES, Film, film
from hdica.show.terms import speaking_of
from hdica.show.words import titled, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KEY = "densities"


def animate(
    source: Source, limit: xr.Dataset | None, point: dict[str, Any], ax: Axes | None, legend: bool
) -> Animation:
    """Densities over time on axes, by default those of a new figure of one column."""
    with speaking_of(source.system):
        shown = _film(source, limit, point)
    if ax is not None:
        made = Animation(shown, ax)
        if legend:
            legend_on(ax)
        return made
    import matplotlib.pyplot as plt

    ours = rcParams[MARK] == STYLE[MARK]
    with nullcontext() if ours else style():
        return animated(shown, plt.figure(layout="constrained"), legend)


def _film(source: Source, limit: xr.Dataset | None, point: dict[str, Any]) -> Film:
    if not densities.holds(source):
        known = ", ".join(str(k) for k in source.data.data_vars) or "nothing"
        raise HdicaError(f"animate: this result has no densities (it holds {known})")
    own = at_point(source, point)
    theory = matching(limit, "limit")
    there = {k: v for k, v in point.items() if theory is not None and k in theory.grid}
    curves = None if theory is None else at_point(theory, there).data
    times = evenly(own.data["snapshot"].values.astype(float).tolist(), FRAMES)
    if len(times) < 2:
        raise HdicaError("animate: 1 snapshot is no animation (two or more are needed)")
    densities.one_point(own, densities.DENSITY)
    panels = over_time(densities.both(own, curves, times), point)
    return film(KEY, titled(words(WHAT), point), panels)


def at_point(source: Source, point: dict[str, Any]) -> Source:
    """A result at values of some of its parameters, or a sentence which there are."""
    data = source.data
    for name, value in point.items():
        if name not in data.dims or name in ("seed", "snapshot", "feature", "x"):
            able = suggestion(
                name, [d for d in (*source.grid, "n") if d in data.dims], what="there"
            )
            raise HdicaError(f"{name} is no parameter that was swept ({able})")
        known = data[name].values
        found = np.flatnonzero(_same(known, value))
        if not found.size:
            near = suggestion(value, map(str, known[:8].tolist()), what="there")
            raise HdicaError(f"{name} = {value!r} is not there ({near})")
        data = data.isel({name: [int(found[0])]})
    return Source(data, source.record)


def _same(known: Any, value: Any) -> Any:
    if known.dtype.kind in "fiu" and isinstance(value, int | float):
        return np.isclose(known, value, rtol=1e-9, atol=1e-12)
    return known == value
