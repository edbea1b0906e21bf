"""Pictures of known arrays: their order, brightness and names, on the page and in print."""

import base64
import io
from typing import Any

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from hdica.analysis.aggregate import aggregate, summary
from hdica.analysis.pictures.pictures import findings
from hdica.analysis.pictures.pictures import panels as draw
from hdica.analysis.reading import settings_of
from hdica.errors import HdicaError
from hdica.report import printed
from hdica.report.interactive import figure
from hdica.report.page import panels, render
from hdica.show.panel import Pictures, mosaic, pictures_across
from hdica.show.words import words
from tests.analysis import galleries, toy
from tests.analysis.galleries import COUNT, SEEDS, SETTINGS, WIDTHS, residual, wave

pictures = toy.computed("pictures")


def _given(**changes: Any) -> dict[str, Any]:
    return {**SETTINGS, **changes}


@pytest.fixture(scope="module")
def found() -> xr.Dataset:
    return pictures(galleries.store(), SETTINGS)


def test_pictures_of_the_first_seed_stand_in_the_order_of_their_number(found):
    order = sorted(range(COUNT), key=lambda k: residual(k, 0))
    assert order != list(range(COUNT))
    for width in WIDTHS:
        here = found.sel(breadth=width, shown="waves")
        assert here["number"].values.tolist() == order
        assert here["value"].values.tolist() == [residual(k, 0) for k in order]
        for place, component in enumerate(order):
            pixels = here["picture"].isel(channel=0).sel(place=place).values[:width, :width]
            assert np.array_equal(pixels, wave(width, component, 0))


def test_of_a_first_seed_that_is_not_done_the_next_is_taken():
    data = pictures(galleries.store(undone=True), SETTINGS)
    first = int(data["number"].isel(shown=0, breadth=0, place=0))
    pixels = data["picture"].isel(shown=0, breadth=0, place=0, channel=0).values[:4, :4]
    assert np.array_equal(pixels, wave(4, first, 1))
    assert int(data["count"].isel(breadth=0)) == (SEEDS - 1) * COUNT


def test_quartiles_are_over_components_and_seeds(found):
    every = [residual(k, j) for k in range(COUNT) for j in range(SEEDS)]
    expected = np.quantile(every, [0.25, 0.5, 0.75])
    assert found["by"].isel(breadth=0).values == pytest.approx(expected)
    assert found["against"].isel(breadth=1).values == pytest.approx(expected + 0.5)
    assert int(found["count"].isel(breadth=0)) == COUNT * SEEDS
    medians = findings(found)
    assert [one.quantity.plain.removeprefix("the median ") for one in medians] == [
        *["relative residual"] * 2,
        *["chance"] * 2,
    ]
    assert [one.place for one in medians[:2]] == [{"breadth": width} for width in WIDTHS]
    assert medians[0].value == pytest.approx(expected[1])
    assert medians[3].value == pytest.approx(expected[1] + 0.5)
    assert medians[0].evidence == "of 15 pictures; middle half 0.205 to 0.415"


def test_no_more_pictures_are_drawn_than_asked_for():
    data = pictures(galleries.store(), _given(most=2))
    assert data.sizes["place"] == 2
    assert "2 of 5 are drawn." in draw(data)[0].caption


def test_without_a_number_they_stand_as_they_are():
    data = pictures(galleries.store(), {"method": "bank", "show": "waves"})
    assert data["number"].isel(shown=0, breadth=0).values.tolist() == list(range(COUNT))
    assert findings(data) == []
    assert "Sorted" not in draw(data)[0].caption


def test_what_has_an_order_of_its_own_keeps_it():
    data = pictures(galleries.store(), _given(unsorted="tinted"))
    tinted, waves = (data["number"].sel(shown=k).isel(breadth=0) for k in ("tinted", "waves"))
    assert tinted.values.tolist() == list(range(COUNT))
    assert waves.values.tolist() != tinted.values.tolist()
    captions = [panel.caption for panel in draw(data)]
    assert ["Sorted" in text for text in captions] == [True, True, False, False]
    names = draw(data)[2].items[0].names
    assert [name.plain for name in names] == [f"component {k}" for k in range(COUNT)]


def test_a_picture_alone_is_drawn_too():
    data = pictures(galleries.store(), {"method": "bank", "show": "mean"})
    (first, second) = draw(data)
    assert first.items[0].pixels.shape == (1, 4, 4)
    assert second.items[0].pixels.shape == (1, 6, 6)


def test_grey_zero_lies_between_black_and_white(found):
    panel = draw(found)[0]
    (item,) = panel.items
    assert item.pixels.shape[:3] == (COUNT, 4, 4)
    one = wave(4, int(found["number"].isel(shown=0, breadth=0, place=0)), 0)
    assert item.pixels[0][..., 0] == pytest.approx(0.5 + 0.5 * one / np.abs(one).max())
    both = draw(pictures(galleries.store(), _given(show="tinted", scale="together")))[0].items[0]
    assert both.pixels.shape == (COUNT, 4, 4, 3)
    assert both.pixels[..., 1] - 0.5 == pytest.approx(0.5 * (both.pixels[..., 0] - 0.5))
    sizes = np.abs(both.pixels - 0.5).max(axis=(1, 2, 3))
    assert sizes.max() == 0.5
    assert sizes.min() < 0.5


def test_a_raster_has_every_pixel_and_transparent_edges():
    rng = np.random.default_rng(0)
    pixels = rng.uniform(size=(6, 2, 3))
    pixels[1, 0, 0] = np.nan
    raster = mosaic(Pictures(pixels, (words(""),) * 6))
    assert pictures_across(6) == 3
    assert raster.shape == (2 * 3 + 1, 3 * 4 + 1, 4)
    assert (raster[0] == 0).all()
    assert (raster[:, ::4] == 0).all()
    for k in range(6):
        top, left = (k // 3) * 3 + 1, (k % 3) * 4 + 1
        here = raster[top : top + 2, left : left + 3]
        known = np.isfinite(pixels[k])
        assert (here[..., 3] == 255 * known).all()
        assert (here[..., 2] == np.round(255 * np.nan_to_num(pixels[k]))).all()


@pytest.mark.parametrize(("count", "across"), [(1, 1), (2, 2), (5, 3), (12, 4), (32, 8), (64, 8)])
def test_rows_are_nearly_full(count, across):
    assert pictures_across(count) == across


def test_the_page_has_the_raster_and_names(found):
    panel = draw(found)[0]
    drawn = figure(panel)
    image, names = drawn["data"]
    lead = "data:image/png;base64,"
    assert image["source"].startswith(lead)
    inside = Image.open(io.BytesIO(base64.b64decode(image["source"].removeprefix(lead))))
    assert np.array_equal(np.asarray(inside), mosaic(panel.items[0]))
    assert names["text"][0] == "component 0, residual = 0.1"
    assert (names["x"][0], names["y"][0]) == (2.5, 2.5)
    assert drawn["layout"]["yaxis"]["range"][0] > drawn["layout"]["yaxis"]["range"][1]


def test_printed_pictures_have_no_axes_and_the_same_bytes_twice(found):
    panel = draw(found)[0]
    (axes,) = printed.draw(panel).axes
    assert not axes.axison
    assert np.array_equal(axes.images[0].get_array(), mosaic(panel.items[0]))
    assert printed.files(panel) == printed.files(panel)


def test_a_report_has_a_section_of_pictures():
    tree = aggregate(galleries.store())
    drawn = panels(tree)
    assert [panel.key for panel in drawn["pictures"]] == [f"pictures_{k}" for k in (1, 2, 3, 4)]
    assert drawn["pictures"][0].title.html == "Waves &amp; more · breadth = 4"
    assert "median relative residual" in summary(tree).headline
    assert 'id="plot-pictures_1"' in render(tree, drawn)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"show": []}, "at least one output, each only once"),
        ({"show": ["waves", "waves"]}, "at least one output, each only once"),
        ({"most": 0}, "analysis.pictures.most"),
        ({"scale": "some"}, "analysis.pictures.scale"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, sentence):
    with pytest.raises(HdicaError, match=sentence):
        settings_of(galleries.store(), "pictures", _given(**changes))


@pytest.mark.parametrize("changes", [{"show": "nothing"}, {"by": "nothing"}])
def test_an_output_that_is_not_there_is_said(changes):
    with pytest.raises(HdicaError, match="method 'bank' has no variable 'nothing'"):
        pictures(galleries.store(), _given(**changes))
