"""The trapping potential: its barrier at every grid point, and overlaps that nothing frees."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.landscapes.landscapes import trapping_findings as findings
from hdica.analysis.landscapes.landscapes import trapping_notes as notes
from hdica.show.terms import speaking_of
from tests.analysis import escapes, toy
from tests.report.shown import plain

trapping = toy.computed("trapping")


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    found: xr.Dataset = trapping(toy.tree({"trapping": escapes.trap()}, {}), {})
    return found


def test_barriers_and_summits_have_their_places(data: xr.Dataset) -> None:
    found = [one for one in findings(data) if np.isfinite(one.value)]
    free = data.isel(projection=0, source=0)
    assert [one.value for one in found] == [*free["barrier"].values, *free["summit"].values]
    assert [one.place["nu"] for one in found] == [0.5, 1.0] * 2
    assert {one.place["source"] for one in found} == {0.0}
    assert len({one.quantity.plain for one in found}) == 2


def test_overlaps_without_a_barrier_are_noted(data: xr.Dataset) -> None:
    with speaking_of("HebbianICA"):
        (text,) = plain(notes(data))
    assert text.startswith("The potential of R12 has no barrier")
    assert not notes(data.isel(source=[0]))


def test_nothing_is_found_where_nothing_is_done(data: xr.Dataset) -> None:
    pending = data * np.nan
    assert not findings(pending)
    assert not notes(pending)
