"""Everything a study asked to be analysed, as one tree."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.points.means import GROUP, means
from hdica.analysis.reading import requested
from hdica.analysis.registry import analyses


def aggregate(tree: xr.DataTree) -> xr.DataTree:
    """What a report is made of: all that :func:`analysed` gives, and the means at every point.

    These are in a group ``points/<method>`` for each method that has any; see
    :func:`hdica.analysis.points.means.means`.
    """
    out = analysed(tree)
    points = means(tree)
    if points is not None:
        out[GROUP] = points
    return out


def analysed(tree: xr.DataTree) -> xr.DataTree:
    """Run the analyses that the study of a published store asks for: a group for each of them.

    There is one for each other analysis that has something to say, too, as ``runs`` always has. The
    root has the store's attributes.
    """
    groups = {}
    for name, analysis in analyses().items():
        given = () if analysis.settings is None else (requested(tree, name),)
        data = None if None in given else analysis.compute(tree, *given)
        if data is not None:
            groups[name] = data
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(tree.attrs)), **groups})
