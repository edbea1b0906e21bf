"""What a page holds to look around in: its numbers, its size, and the page without it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import analysed
from hdica.analysis.points import Axis
from hdica.report.explored import Explored, Table, explored, fitting, packed, planes
from hdica.report.page import panels, render
from tests.analysis import toy

WORD = 4


def numbers(body: bytes, begin: int, size: int, width: int) -> np.ndarray:
    """What the page's script makes of planes of bytes."""
    own = np.frombuffer(body, np.uint8, width * size, begin).reshape(width, size)
    bits = np.zeros((size, WORD), np.uint8)
    bits[:, :width] = own.T
    return bits.view(">f4").ravel().astype(float)


def unpacked(text: str) -> tuple[dict[str, Any], bytes]:
    raw = gzip.decompress(base64.b64decode(text))
    end = WORD + int.from_bytes(raw[:WORD], "big")
    return json.loads(raw[WORD:end]), raw[end:]


@pytest.mark.parametrize(("width", "within"), [(4, 2.0**-24), (3, 2.0**-16), (2, 2.0**-8)])
def test_leading_bytes_keep_so_many_digits(width: int, within: float) -> None:
    values = np.array([0.0, 1.0, -3.14159265, 1e-30, 6.02e23, np.nan, 0.99999999, -1e-7])
    again = numbers(planes(values, width), 0, values.size, width)
    assert np.array_equal(np.isnan(again), np.isnan(values))
    known = np.isfinite(values)
    assert (np.abs(again - values)[known] <= within * np.abs(values)[known]).all()


def test_every_grid_point_is_in_the_page(aggregated: xr.DataTree) -> None:
    found = explored(aggregated)
    assert found is not None
    header, body = unpacked(packed(found))
    seen = set()
    for table in header["tables"]:
        data = aggregated["points"][table["method"]].to_dataset()
        mean = data[table["variable"]]
        axes = [header["axes"][k] for k in table["axes"]]
        assert [axis["name"] for axis in axes] == list(mean.dims)
        assert [len(axis["shown"]) for axis in axes] == list(mean.shape)
        got = numbers(body, **table["mean"]).reshape(mean.shape)
        np.testing.assert_allclose(got, mean.values, rtol=2.0**-16)
        if table["error"]:
            error = data[f"{table['variable']}_error"].values.ravel()
            np.testing.assert_allclose(numbers(body, **table["error"]), error, rtol=2.0**-8)
        seen.add((table["method"], table["variable"]))
    assert {("chain", "Q"), ("ode", "Q")} <= seen
    first = header["tables"][header["first"]]
    assert (first["method"], first["variable"]) == ("chain", "Q")
    assert found.left == ""


def made(method: str, variable: str, seeds: int, times: int, own: int = 1) -> Table:
    axes = (
        Axis("tau", np.linspace(0.1, 1, 10)),
        *((Axis("x", np.arange(float(own))),) if own > 1 else ()),
        Axis("time", np.arange(float(times))),
    )
    shape = tuple(axis.size for axis in axes)
    values = np.arange(float(np.prod(shape))).reshape(shape)
    error = values / 100 if seeds else None
    return Table(method, variable, axes, ("tau",), "time", seeds, (), "", values, error)


EVERY = [
    made("chain", "Q", 4, 50),
    made("chain", "density", 4, 50, own=20),
    made("chain", "R", 4, 50),
    made("ode", "Q", 0, 50),
]


@pytest.mark.parametrize(
    ("budget", "tables", "times", "left"),
    [
        (10**6, 4, 50, ""),
        (30_000, 4, 26, "26 of 50 times"),
        (6_600, 3, 50, "no densities"),
        (4_000, 3, 30, "30 of 50 times, no densities"),
        (1_000, 2, 12, "12 of 50 times, no densities, of the variables only <i>Q</i>"),
        (300, 2, 3, "3 of 50 times, no densities, of the variables only <i>Q</i>"),
    ],
)
def test_less_is_kept_until_it_fits(budget: int, tables: int, times: int, left: str) -> None:
    found, told = fitting(EVERY, budget, 50, set())
    assert sum(table.size(times) for table in found) <= budget
    assert len(found) == tables
    assert told == left
    for table in found:
        time = table.axes[-1].values
        assert time.size == times == table.mean.shape[-1]
        assert (time[0], time[-1]) == (0, 49)
        assert table.axes[0].size == 10
        before = next(one for one in EVERY if one.key == table.key)
        at = time.astype(int)
        assert np.array_equal(table.mean, before.mean.take(at, axis=-1))
        if before.error is not None:
            assert table.error is not None
            assert np.array_equal(table.error, before.error.take(at, axis=-1))


def test_at_the_least_one_variable_at_one_time_is_kept_and_then_none() -> None:
    (found,), told = fitting(EVERY, 50, 50, set())
    assert (found.key, found.axes[-1].values.tolist()) == ("chain/Q", [49])
    assert told.endswith("of the methods only chain")
    assert fitting(EVERY, 49, 50, set()) == ([], "")


def test_what_was_too_large_before_is_told() -> None:
    _, told = fitting(EVERY[:1], 10**6, 400, {"chain/density", "chain/R"})
    assert told == "50 of 400 times, no densities, of the variables only <i>Q</i>"


def page(aggregate: xr.DataTree) -> str:
    return render(aggregate, panels(aggregate))


def test_a_page_has_its_explorer_and_maps_lead_to_it(aggregated: xr.DataTree) -> None:
    text = page(aggregated)
    assert text.count('<section id="explore"') == 1
    nav = re.search(r"<nav.*?</nav>", text, re.DOTALL)
    assert nav is not None
    assert '<a href="#explore">Explore</a>' in nav[0]
    assert text.count("A click on a cell shows its point") >= 2
    figures = json.loads(re.search(r'id="figure-data">([^<]*)<', text)[1])  # type: ignore[index]
    cells = figures["phase_overlap"]["layout"]["meta"]["cells"]
    assert cells["axes"] == {"x": "tau", "y": "Q0"}
    assert cells["values"]["x"] == aggregated["phase"]["tau"].values.tolist()


def test_nothing_that_a_user_wrote_ends_the_data(aggregated: xr.DataTree) -> None:
    data = re.search(r'id="explore-data">(.*?)</script>', page(aggregated), re.DOTALL)
    assert data is not None
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", data[1])


def test_a_page_without_anything_to_choose_has_no_explorer() -> None:
    text = page(analysed(toy.store()))
    assert 'id="explore' not in text
    assert "#explore" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def test_too_many_points_are_shown_by_the_server(aggregated: xr.DataTree) -> None:
    tree = aggregated.copy()
    tree["points"] = xr.DataTree(xr.Dataset(attrs={"left": "chain/Q", "times": 5}))
    text = page(tree)
    assert '<section id="explore"' not in text
    assert "<code>hdica explore results/toy.zarr</code>" in text
    assert 'id="explore-data"' not in text


def test_hostile_words_on_axes_are_escaped() -> None:
    hostile = "</script><b>"
    values = np.array([hostile, "laplace"], dtype=object)
    axes, values = (Axis("source", values),), np.array([1.0, 2.0])
    one = Table("m", "Q", axes, ("source",), "", 0, (), "", values)
    text = packed(Explored((one,), {}, ""))
    assert "<" not in text
    header, _ = unpacked(text)
    assert header["axes"][0]["shown"][0] == hostile


@pytest.mark.parametrize(
    ("kept", "words", "none"),
    [
        ("chain", "Bands: ± 2 standard errors of the mean over seeds.", "theory at the same"),
        ("ode", "Lines: theory.", "standard errors"),
    ],
)
def test_the_explorer_speaks_of_runs_and_of_theory_where_there_are_such(
    aggregated: xr.DataTree, kept: str, words: str, none: str
) -> None:
    whole = page(aggregated)
    assert "the mean over seeds; lines without a band: theory." in whole
    alone = aggregated.copy()
    alone["points"].children = {kept: alone["points"].children[kept]}
    text = page(alone)
    text = text[text.index('id="explore"') : text.index('id="explore-data"')]
    assert f"<figcaption>{words}</figcaption>" in text
    assert none not in text
