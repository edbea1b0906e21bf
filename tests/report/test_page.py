import json
import re
from html.parser import HTMLParser

import pytest

from hdica.analysis.aggregate import aggregate
from hdica.report.page import panels, render
from tests.analysis import toy
from tests.report.conftest import HOSTILE


class Page(HTMLParser):
    """Start tags with attributes, scripts by id, and the visible text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.text, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = dict(attrs)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data):
        if self._inside is None:
            self.text.append(data)
        else:
            self.scripts.append((self._inside.get("id"), data))


@pytest.fixture(scope="module")
def text(written):
    return written[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def embedded(page, name):
    return json.loads("".join(data for key, data in page.scripts if key == name))


def test_the_page_is_one_file_of_less_than_ten_megabytes(written):
    assert written[0].name == "report.html"
    assert written[0].stat().st_size < 10e6


def test_nothing_is_loaded_from_elsewhere(page):
    for tag, attrs in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            target = attrs.get(name) or ""
            assert not re.match(r"\s*([a-z][a-z0-9+.-]*:|//)", target, re.I), (tag, name, target)
        assert tag not in ("link", "iframe", "object", "embed", "base")
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]


def test_a_hostile_title_stays_text(page, text):
    assert HOSTILE in "".join(page.text)
    assert not any(tag == "img" for tag, _ in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 4
    assert 'document.body.id="stolen"</script>' not in text.split("</title>")[0]


def test_a_hostile_parameter_value_stays_text():
    tree = toy.store()
    bad = "<img src=x onerror=alert(1)>"
    groups = {
        name: node.to_dataset().assign_coords(Q0=[bad, "fine"])
        for name, node in tree.children.items()
        if name in ("chain", "ode")
    }
    found = aggregate(toy.tree(groups, {"convergence": toy.CONVERGENCE}))
    text = render(found, panels(found))
    assert bad not in text
    assert "&lt;img src=x" in text
    assert not any(tag == "img" for tag, _ in Page(text).tags)


def test_embedded_data_hold_the_numbers(page, aggregated):
    tables = embedded(page, "table-data")
    columns = tables["convergence by simulation, tau, Q0"]["columns"]
    assert columns["tau"] == [0.02, 0.02, 0.07, 0.07]
    assert columns["verdict"] == list(aggregated["convergence"]["verdict"].values.ravel())
    assert {len(c) for c in columns.values()} == {4}
    phase = tables["phase by tau, Q0, n"]["columns"]
    assert phase["trials"] == [24] * 16


def test_every_panel_has_its_place_and_its_figure(page, aggregated):
    figures = embedded(page, "figure-data")
    places = {a["id"] for _, a in page.tags if a.get("class") == "plot"}
    keys = [p.key for found in panels(aggregated).values() for p in found]
    assert places == {f"plot-{k}" for k in keys}
    assert set(figures) == set(keys)
    assert {"trajectories_1", "fluctuation", "bias", "phase_overlap", "flow"} <= set(keys)
    for figure in figures.values():
        assert figure["data"]
        assert figure["layout"]["xaxis"]["title"]["text"]
        assert figure["layout"]["yaxis"]["title"]["text"]


def test_tables_and_provenance_are_there(page):
    text = " ".join("".join(page.text).split())
    for words in ("exact in law", "a" * 64, "b" * 64, "toy, chain", "BSD-3-Clause", "study: toy"):
        assert words in text
    assert text.count("agrees") >= 3


def test_a_study_without_analysis_has_a_page():
    found = aggregate(toy.tree({"ode": toy.store()["ode"].to_dataset()}, {}))
    text = render(found, panels(found))
    assert "What was run" in text
    assert 'class="plot"' not in text


def test_a_table_too_large_for_the_page_is_named(aggregated, monkeypatch):
    monkeypatch.setattr("hdica.report.export.BUDGET", 2_000)
    text = render(aggregated, panels(aggregated))
    assert "in aggregate.nc only" in text
    tables = embedded(Page(text), "table-data")
    assert "convergence by simulation, tau, Q0, n, time" not in tables
