"""Everything a study asked to be analysed, as one tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from hdica.analysis.compare.compute import compare
from hdica.analysis.condensing.compute import condensing
from hdica.analysis.convergence.compute import convergence
from hdica.analysis.decay.compute import decay
from hdica.analysis.densities.compute import densities
from hdica.analysis.distances.compute import distances
from hdica.analysis.escape.compute import escape
from hdica.analysis.flow.compute import flow
from hdica.analysis.learning.compute import learning
from hdica.analysis.paths.compute import paths
from hdica.analysis.phase.compute import phase
from hdica.analysis.potential.compute import potential
from hdica.analysis.reading import asked
from hdica.analysis.runs.compute import runs
from hdica.analysis.slopes.compute import slopes
from hdica.analysis.steady.compute import steady
from hdica.analysis.support.compute import support
from hdica.analysis.transition.compute import transition
from hdica.analysis.trapping.compute import trapping

ANALYSES: dict[str, Callable[[xr.DataTree, Mapping[str, Any]], xr.Dataset]] = {
    "convergence": convergence,
    "phase": phase,
    "flow": flow,
    "densities": densities,
    "distances": distances,
    "support": support,
    "potential": potential,
    "steady": steady,
    "compare": compare,
    "transition": transition,
    "escape": escape,
    "paths": paths,
    "decay": decay,
    "trapping": trapping,
}


def aggregate(tree: xr.DataTree) -> xr.DataTree:
    """Run the analyses that the study of a store asks for.

    Parameters
    ----------
    tree
        A published store.

    Returns
    -------
    xarray.DataTree
        Group ``runs`` always, ``condensing`` if a method keeps the curvature, ``learning`` if a
        limit learns nothing, ``slopes`` if points share their noise, and one group for each
        analysis asked for. The root carries the store's attributes.

    Raises
    ------
    HdicaError
        If the store lacks what an analysis needs.
    """
    groups = {"runs": runs(tree)}
    unasked_for = (("condensing", condensing), ("learning", learning), ("slopes", slopes))
    for name, unasked in unasked_for:
        found = unasked(tree)
        if found is not None:
            groups[name] = found
    for name, analysis in ANALYSES.items():
        settings = asked(tree, name)
        if settings is not None:
            groups[name] = analysis(tree, settings)
    root = xr.Dataset(attrs=dict(tree.attrs))
    return xr.DataTree.from_dict({"/": root, **groups})
