"""The answer of a report, for its head and for the gallery."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.report.page import findings


def headline(aggregate: xr.DataTree) -> Answer:
    """The first finding of an aggregate."""
    found = findings(aggregate)
    return Answer(str(found[0])) if found else Answer("")
