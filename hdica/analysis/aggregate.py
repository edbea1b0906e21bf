"""Everything a study asked to be analysed, as one tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from hdica.analysis.compare import compare
from hdica.analysis.condensing import condensing
from hdica.analysis.convergence import convergence
from hdica.analysis.decay import decay
from hdica.analysis.densities import densities
from hdica.analysis.distances import distances
from hdica.analysis.escape import escape
from hdica.analysis.flow import flow
from hdica.analysis.learning import learning
from hdica.analysis.paths import paths
from hdica.analysis.phase import phase
from hdica.analysis.potential import potential
from hdica.analysis.reading import asked
from hdica.analysis.runs import runs
from hdica.analysis.slopes import slopes
from hdica.analysis.steady import steady
from hdica.analysis.support import support
from hdica.analysis.transition import transition
from hdica.analysis.trapping import trapping

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
