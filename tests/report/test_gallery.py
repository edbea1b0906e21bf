"""The gallery of a folder: whose report it shows, what it believes, and reports at once."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr

from hdica.errors import HdicaError
from hdica.report import parts
from hdica.report.drawn import card_of, write_aggregate
from hdica.report.gallery import (
    Card,
    Shown,
    assets,
    check_gallery,
    gallery_of,
    harmless,
    index,
    place_script,
    update,
)
from hdica.report.page import panels
from hdica.report.place import ALONE, CARD, DATA, PAGE, place
from tests.faults.crash import forked
from tests.report.conftest import HOSTILE
from tests.report.test_page import Page

PLAIN = Card(
    study="first", title="First", description="", system="OnlineICA", about="a rule", headline="",
    verdict="agrees", missing="", created="", figure="bias", figure_title="Bias", thumbnail="",
    findings=[{"quantity": "the bias", "value": 0.1, "error": None}],
)  # fmt: skip


def put(folder: Path, name: str, card: Card = PLAIN, page: bytes = b"page") -> None:
    """A report that is nothing but its card and a page."""
    card = replace(card, study=name)
    place(folder / name, page, b"data", {}, {CARD: card.written()})


def links(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [a["href"] for tag, a in Page(text).tags if tag == "a" and "#" not in a["href"]]


@pytest.fixture(scope="module")
def card(aggregated: xr.DataTree) -> Card:
    return card_of(aggregated, panels(aggregated))


def test_every_link_of_a_card_leads_to_a_file(written: list[Path]) -> None:
    top = written[-1].parent
    found = links(written[-1])
    names = {Path(link).name for link in found}
    assert {PAGE, DATA, ALONE} <= names
    assert {Path(link).suffix for link in found} == {".html", ".pdf", ".svg", ".nc"}
    assert all((top / link).is_file() for link in found)
    page = Page(written[0].read_text(encoding="utf-8"))
    shared = next(a["src"] for tag, a in page.tags if tag == "script" and "src" in a)
    assert (top / shared).read_bytes() == parts.shared()
    assert [p.name for p in (top / "assets").iterdir()] == [parts.file_name()]


def test_a_card_has_picture_headline_and_verdict(card: Card) -> None:
    assert card.thumbnail.startswith(parts.START)
    assert len(card.thumbnail) < 60_000
    assert card.figure == "phase_overlap"
    assert card.headline
    assert Card.read(card.written()) == replace(card, headline=harmless(card.headline))


def test_hostile_text_stays_text(card: Card) -> None:
    bad = replace(card, headline=f"<i>x</i>{HOSTILE}", about=HOSTILE, missing=HOSTILE)
    read = Card.read(bad.written())
    assert read is not None
    assert read.headline.startswith("<i>x</i>&") or read.headline.startswith("<i>x</i>document")
    page = Page(index([Shown(read, "toy/", False)]))
    assert HOSTILE in "".join(page.text)
    assert [a["src"] for tag, a in page.tags if tag == "img"] == [card.thumbnail]
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


@pytest.mark.parametrize(
    ("html", "left"),
    [
        ("τ<sub>c</sub> = <i>1</i>", "τ<sub>c</sub> = <i>1</i>"),
        ("a &lt; b &amp; c", "a &lt; b &amp; c"),
        ('<a href="javascript:x">y</a>', "y"),
        ('<i onclick="x">y', "<i>y</i>"),
        ("</main><b><i>x</b>y", "<b><i>x</i></b>y"),
        ("<!-- x --><svg/onload=x>y", "y"),
    ],
)
def test_of_a_headline_harmless_marks_are_left(html: str, left: str) -> None:
    assert harmless(html) == left


@pytest.mark.parametrize(
    "change",
    [
        {"thumbnail": "https://example.org/x.png"},
        {"thumbnail": parts.START + 'x" onerror="alert(1)'},
        {"figure": "../../secret"},
        {"verdict": "certain"},
        {"findings": "none"},
        {"findings": [{"value": [1]}]},
        {"title": 3},
        {"headline": "x" * 10_000},
    ],
)
def test_what_is_no_card_is_not_shown(tmp_path: Path, change: dict[str, object]) -> None:
    put(tmp_path, "first")
    file = tmp_path / "first" / CARD
    file.write_text(json.dumps(json.loads(file.read_bytes()) | change))
    assert links(update(tmp_path)) == []
    for raw in (b"", b"[1]", b"{", b"\xff", b"[" * 100_000):
        assert Card.read(raw) is None


def test_cards_are_sorted_by_system_and_name_and_a_page_makes_one(tmp_path: Path) -> None:
    for name, system in (("b", "Second"), ("c", "First"), ("a", "Second"), ("gone", "First")):
        put(tmp_path, name, replace(PLAIN, system=system))
    (tmp_path / "gone" / PAGE).unlink()
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("")
    put(tmp_path, "odd name: #?", replace(PLAIN, system="Third"))
    shown = [link for link in links(update(tmp_path)) if link.endswith(PAGE)]
    pages = list(dict.fromkeys(shown))
    assert pages == [
        "c/report.html",
        "a/report.html",
        "b/report.html",
        "odd%20name%3A%20%23%3F/" + PAGE,
    ]


def test_the_search_comes_with_many_cards() -> None:
    few = [Shown(replace(PLAIN, study=f"s{k}"), f"s{k}/", False) for k in range(3)]
    many = few * 3
    assert 'id="search"' not in index(few)
    assert 'id="search"' in index(many)
    assert "3 reports" in index(few)
    assert "1 report<" in index(few[:1])
    assert "no report here" in index([])


def test_reports_at_once_are_all_in_the_gallery(tmp_path: Path) -> None:
    def writing(who: int) -> int:
        for k in range(8):
            put(tmp_path, f"s{who}_{k}")
            update(tmp_path)
        return 0

    children = []
    for who in range(3):
        child = os.fork()
        if not child:
            os._exit(forked(lambda who=who: writing(who)))
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    pages = {link for link in links(tmp_path / "index.html") if link.endswith(PAGE)}
    assert pages == {f"s{who}_{k}/{PAGE}" for who in range(3) for k in range(8)}
    assert not [p for p in tmp_path.rglob("*") if p.name.endswith(".partial")]


def test_the_gallery_is_above_beside_a_store_or_where_one_is(tmp_path: Path) -> None:
    out = tmp_path / "results" / "first"
    assert gallery_of(out, tmp_path / "results/first.zarr") == tmp_path / "results"
    assert gallery_of(out, tmp_path / "elsewhere/first.zarr") == out
    assert gallery_of(out, None) == out
    (tmp_path / "results").mkdir()
    update(tmp_path / "results")
    assert gallery_of(out, None) == tmp_path / "results"
    assert assets(out, tmp_path / "results") == "../assets/"
    assert assets(out, out) == "assets/"


def test_here_and_above_are_places_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "results" / "first"
    inner.mkdir(parents=True)
    update(tmp_path / "results")
    monkeypatch.chdir(inner)
    for here in (".", "../first", str(inner)):
        assert gallery_of(Path(here), None).resolve() == tmp_path / "results"
    assert gallery_of(Path("figures/.."), None).resolve() == tmp_path / "results"


def test_an_index_of_somebody_else_stays(tmp_path: Path) -> None:
    mine = tmp_path / "index.html"
    mine.write_text("mine")
    out = tmp_path / "first"
    assert gallery_of(out, tmp_path / "first.zarr") == out
    for attempt in (check_gallery, update):
        with pytest.raises(HdicaError, match=r"index\.html was not written by hdica"):
            attempt(tmp_path)
    assert mine.read_text() == "mine"


def test_the_shared_script_is_mended_and_not_written_again(tmp_path: Path) -> None:
    path = place_script(tmp_path)
    before = path.stat().st_ino
    assert place_script(tmp_path).stat().st_ino == before
    path.write_bytes(path.read_bytes()[:1000])
    assert place_script(tmp_path).read_bytes() == parts.shared()
    assert re.fullmatch(r"plotly-[\d.]+\.js", path.name)
    assert path.stat().st_size < 2.5e6


@pytest.mark.deep
def test_a_page_as_one_file_goes_with_the_report_that_had_it(
    aggregated: xr.DataTree, tmp_path: Path
) -> None:
    parts = {name: aggregated[name].to_dataset() for name in ("runs", "flow")}
    found = xr.DataTree.from_dict(parts)
    found.attrs = aggregated.attrs
    written = write_aggregate(found, tmp_path / "out", one_file=True)
    assert tmp_path / "out" / ALONE in written
    assert written[-1] == tmp_path / "out/index.html"
    assert all(path.is_file() for path in written)
    write_aggregate(found, tmp_path / "out")
    assert not (tmp_path / "out" / ALONE).exists()
