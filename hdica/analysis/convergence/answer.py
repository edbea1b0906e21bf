"""Whether simulations tend to the limit, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import grid_of
from hdica.analysis.show.agreement import agreement, law, verdict_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import at_largest_n, points
from hdica.analysis.show.sentences import N, among, cell
from hdica.analysis.show.words import count, with_error
from hdica.verdict.cells import AGREES, together


def answer(data: xr.Dataset) -> Answer | None:
    """Agreement over all comparisons, how the scatter falls with n, and the largest distance."""
    cells = points(data, ["simulation", *grid_of(data)])
    if not bool(data["sup_error"].notnull().any()):
        return None
    text = agreement(data, cells, "The simulation", cell)
    power, usual = law(data, "fluctuation") if data.sizes["n"] > 1 else ("", AGREES)
    if power:
        text += (
            f"{';' if usual == AGREES else ', but'} the distance of a run from it falls as {power}"
        )
    largest = _largest(data)
    verdict = together([verdict_of(data, cells), usual])
    return Answer(f"{text}{largest}.", verdict, 2 if largest else 1)


def decides(data: xr.Dataset) -> Answer | None:
    """Agreement over all comparisons, as a clause that ends another answer."""
    cells = points(data, ["simulation", *grid_of(data)])
    if not bool(data["sup_error"].notnull().any()):
        return None
    text = agreement(data, cells, "The simulation", cell)
    return Answer(f"{text[0].lower()}{text[1:]}{_largest(data)}", verdict_of(data, cells))


def _largest(data: xr.Dataset) -> str:
    """The largest distance of a mean at the largest n."""
    known = data["sup_error"].notnull().any([d for d in data["sup_error"].dims if d != "n"])
    top = at_largest_n(data, known)
    size, error = (top[name].values.ravel() for name in ("sup_error", "sup_error_se"))
    if not np.isfinite(size).any():
        return ""
    worst = int(np.nanargmax(size))
    return (
        f"; at {N} = {count(float(top['n']))}{among()} the mean is within "
        f"{with_error(float(size[worst]), float(error[worst]))} of it at all times"
    )
