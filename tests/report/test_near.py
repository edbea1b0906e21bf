"""What a report says of a comparison that is open, and of one that chance may have rejected."""

import re

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.convergence.say import table
from hdica.report.answers import findings
from hdica.report.page import render
from tests.analysis import toy


def said(tree):
    return [re.sub(r"<[^>]+>", "", str(s)) for s in findings(tree)]


def single(p, needed=24.6, verdict="differs"):
    """One comparison with this outcome."""
    groups = toy.store().children
    one = {k: groups[k].to_dataset().isel(tau=0, Q0=1, drop=True) for k in ("chain", "ode")}
    tree = aggregate(toy.tree(one, {"convergence": toy.CONVERGENCE}))
    outcome = {"p_value": p, "seeds_needed": needed, "seeds_needed_error": 8.7}
    data = tree["convergence"].to_dataset()
    for name, value in {**outcome, "verdict": verdict, "why": "too far"}.items():
        data[name] = data[name].copy(data=np.full(data[name].shape, value))
    tree["convergence"] = xr.DataTree(data)
    return tree


def test_a_chance_rejection_does_not_open_the_page():
    first = said(single(0.0087))[0]
    assert "differs" not in first
    assert first.startswith("Whether the simulation tends to the limit is open: p = 0.0087")
    assert "a right limit gives one so small by chance one time in 115" in first
    assert "about 25 ± 9 seeds at each n would decide 19 times in 20" in first


def test_a_clear_rejection_does():
    assert said(single(1e-5))[0].startswith("The simulation differs from the limit: ")


def test_an_open_verdict_says_how_many_seeds_would_decide():
    first = said(single(0.4, 409.8, "undecided"))[0]
    assert first.startswith("Whether the simulation tends to the limit is open: too far (p = 0.4;")
    assert "about 410 ± 9 seeds" in first
    assert "no number of seeds would" in said(single(0.4, np.inf, "undecided"))[0]


@pytest.fixture(scope="module")
def several():
    tree = aggregate(toy.store())
    data = tree["convergence"].to_dataset()
    assert data.attrs["tests"] == 4
    data["verdict"], data["why"] = data["verdict"].astype(object), data["why"].astype(object)
    data["verdict"].values[0] = [["differs", "undecided"], ["undecided", "differs"]]
    data["why"].values[0] = [["too little", "blind"], ["blind", "too far"]]
    data["p_value"].values[0] = [[0.002, 0.5], [0.6, 1e-7]]
    data["seeds_needed"].values[0] = [[60, 87.4], [409.8, np.nan]]
    tree["convergence"] = xr.DataTree(data)
    return tree


def test_rejections_near_the_level_are_counted_apart(several):
    sentences = said(several)
    first = next(s for s in sentences if s.startswith("Of 4 comparisons"))
    assert "0 agree, 1 differ, 1 is rejected near the level and 2 are undecided" in first
    near = next(s for s in sentences if s.startswith("Open, because too little"))
    assert "4 right limits give one so small by chance one time in 125" in near
    assert "about 60" in near
    blind = next(s for s in sentences if s.startswith("Undecided, because blind"))
    assert "about 88 to 410 seeds at each n would decide each 19 times in 20" in blind


def test_the_table_shows_them_apart_with_the_seeds(several):
    rows = table(several["convergence"].to_dataset()).rows
    outcome = sorted((row[3], row[7]) for row in rows)
    assert outcome == [
        *[("differs", "–"), ("near the level", "60")],
        *[("undecided", "410"), ("undecided", "88")],
    ]


def test_the_page_marks_them_as_open(several):
    page = render(several, {})
    assert '<span class="verdict undecided">? near the level</span>' in page
    assert '<span class="verdict differs">✗ differs</span>' in page
