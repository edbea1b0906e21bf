import base64
import gzip
import json
import re
from html.parser import HTMLParser

import pytest
from plotly.offline import get_plotlyjs

from hdica.analysis.aggregate import aggregate
from hdica.report import parts
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


def embedded_text(page, name):
    return "".join(data for key, data in page.scripts if key == name)


def embedded(page, name):
    return json.loads(embedded_text(page, name))


def test_the_page_is_small_and_as_one_file_can_be_sent(written, aggregated):
    assert written[0].name == "report.html"
    assert written[0].stat().st_size < 0.5e6
    assert len(render(aggregated, panels(aggregated), None).encode()) < 6e6


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


def scripts(page):
    """The scripts of a page that run, or hold one, without its data."""
    kinds = [attrs for tag, attrs in page.tags if tag == "script"]
    data = ("application/json", "explore-data")
    return [one for one in kinds if one.get("type") not in data and one.get("id") not in data]


def test_the_shared_script_alone_is_asked_for_by_a_nonce_of_the_whole_page(page, aggregated):
    shared, explorer, own = scripts(page)
    assert shared["src"] == f"assets/{parts.file_name()}"
    assert "defer" in shared
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert f"'nonce-{shared['nonce']}'" in policy
    assert not own
    assert not explorer
    other = aggregated.copy()
    other.attrs["title"] = "Another title"
    again, *_ = scripts(Page(render(other, panels(other))))
    assert again["nonce"] != shared["nonce"]


def test_a_page_as_one_file_asks_for_nothing(aggregated):
    text = render(aggregated, panels(aggregated), None)
    alone = Page(text)
    packed, explorer, own = scripts(alone)
    assert (packed, explorer, own) == ({"type": "text/plain", "id": "packed"}, {}, {})
    policy = next(a["content"] for t, a in alone.tags if a.get("http-equiv"))
    assert "nonce" not in policy
    assert not any("src" in attrs for _, attrs in alone.tags)
    assert ("html", {"lang": "en", "class": "alone"}) in alone.tags
    unpacked = gzip.decompress(base64.b64decode(embedded_text(alone, "packed")))
    assert unpacked.decode() == get_plotlyjs()


@pytest.mark.deep
def test_a_run_that_has_not_finished_says_so_on_top():
    tree = toy.store()
    tree["chain"]["status"].values[..., :3] = 0
    found = aggregate(tree)
    text = " ".join("".join(Page(render(found, panels(found))).text).split())
    total, left = int(found["runs"]["points"].sum()), int(found["runs"]["pending"].sum())
    assert left > 0
    said = f"This run has not finished: {left} of {total} points are pending (chain {left} of "
    assert text.index(said) < text.index("Findings", text.index("All reports") + 80)
    whole = aggregate(toy.store())
    assert "has not finished" not in render(whole, panels(whole))


def test_a_hostile_title_stays_text(page, text):
    assert HOSTILE in "".join(page.text)
    assert not any(tag == "img" for tag, _ in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 6
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


def test_a_study_without_analysis_has_a_page_with_what_suits_it():
    found = aggregate(toy.tree({"ode": toy.store()["ode"].to_dataset()}, {}))
    text = render(found, panels(found))
    assert "What was run" in text
    assert re.findall(r'class="plot" id="([a-z-]+)"', text) == ["plot-compare"]


def test_a_table_too_large_for_the_page_is_named(aggregated, monkeypatch):
    monkeypatch.setattr("hdica.report.page.BUDGET", 2_000)
    text = render(aggregated, panels(aggregated))
    assert "in aggregate.nc only" in text
    tables = embedded(Page(text), "table-data")
    assert "convergence by simulation, tau, Q0, n, time" not in tables
