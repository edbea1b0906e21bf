"""Everything a study asked to be analysed, as one tree."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.reading import asked
from hdica.analysis.record import Analysis
from hdica.analysis.registry import analyses


def aggregate(tree: xr.DataTree) -> xr.DataTree:
    """Run the analyses that the study of a published store asks for.

    A group for each of them; ``runs`` always, ``condensing`` if a method keeps the curvature,
    ``learning`` if a limit learns nothing, ``slopes`` if points share their noise. The root carries
    the store's attributes.
    """
    found = {name: _computed(tree, analysis) for name, analysis in analyses().items()}
    groups = {name: data for name, data in found.items() if data is not None}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(tree.attrs)), **groups})


def _computed(tree: xr.DataTree, analysis: Analysis) -> xr.Dataset | None:
    """What one analysis finds; None if it was not asked for or has nothing to say."""
    given = () if analysis.settings is None else (asked(tree, analysis.name),)
    found: xr.Dataset | None = None if None in given else analysis.compute(tree, *given)
    return found
