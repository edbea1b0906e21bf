"""What there is to cite: of systems, studies and results, as BibTeX that is complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hdica
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.inputs.plain_yaml import read_yaml
from hdica.store.cite import KEPT, cite, of_results
from hdica.store.results import open_results
from hdica.study.study import load_study, study_from
from hdica.systems.paper import Paper
from hdica.systems.registry import systems
from hdica.systems.system import System
from hdica.systems.works import WORKS, bibtex, cited, software
from tests.sweep import toy
from tests.sweep.conftest import made

ROOT = Path(__file__).parents[2]
RECORDS = {name: one for name, one in systems().items() if name != "Toy"}
NAMED = re.compile(r"[A-Z][a-z]+(?:,? (?:and |Ben )*[A-Z][a-z]+)* \(?(?:19|20)[0-9]{2}\)?")
"""How equations name a paper: families and a year."""


def entries(text: str) -> dict[str, dict[str, str]]:
    """Entries of BibTeX by their keys, read by a grammar of its own: braces must balance."""
    found: dict[str, dict[str, str]] = {}
    for kind, key, rest in re.findall(r"^@(\w+)\{([a-z0-9]+),\n(.*?)\n\}", text, re.M | re.S):
        assert rest.count("{") == rest.count("}")
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", rest, re.M))
        assert key not in found
        found[key] = {"kind": kind, **fields}
    assert text.count("\n@") + text.startswith("@") == len(found)
    return found


def every_paper() -> list[Paper]:
    of_systems = [p for one in RECORDS.values() for p in (*one.papers, *one.works)]
    return [*dict.fromkeys((*of_systems, *WORKS))]


@pytest.mark.parametrize("paper", every_paper(), ids=lambda paper: paper.cite)
def test_every_paper_says_who_what_when_and_where(paper: Paper) -> None:
    assert paper.title
    assert paper.authors
    assert paper.year
    assert paper.venue
    assert str(paper.year) in paper.cite
    found = entries(paper.bibtex())[paper.key]
    assert {"author", "title", "year"} < set(found)
    assert paper.bibtex().isascii()
    assert found["kind"] == paper.kind


@pytest.mark.parametrize("record", RECORDS.values(), ids=lambda record: record.name)
def test_whatever_paper_a_method_names_is_cited_for_it(record: System) -> None:
    for method in record.methods:
        of_it = cited(record, {method.name: method.about.equations})
        years = {str(paper.year) for paper in of_it}
        named = NAMED.findall(method.about.equations)
        assert {re.search("[0-9]{4}", one)[0] for one in named} <= years  # type: ignore[index]


def test_works_are_cited_for_the_methods_that_rest_on_them_alone() -> None:
    grid = {"study": "probe", "system": "SparsePCA", "parameters": {"omega": 2.0},
            "grid": {"tau": [0.1]}, "times": [0, 1]}  # fmt: skip
    alone = cite(study_from({**grid, "methods": {"chain": {"n": [100], "seeds": 1}}}))
    assert set(entries(alone)) == {"wang2016online", "hdica"}
    more = cite(study_from({**grid, "methods": {"pde": {}, "sample_pca_limit": {}}}))
    assert {"scharfetter1969large", "alexander1977diagonally", "paul2007asymptotics"} < set(
        entries(more)
    )
    assert "% method sample_pca_limit\n@article{paul2007asymptotics," in more


def test_results_carry_what_to_cite_and_say_it(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(study_from(toy.study()), out)
    tree = open_results(out)
    assert tree.attrs[KEPT] == hdica.cite(tree) == hdica.cite(out)
    assert call(["cite", str(out)]) == 0
    assert capsys.readouterr().out == tree.attrs[KEPT]
    older = tree.copy()
    del older.attrs[KEPT]
    older.attrs["hdica_version"] = "0.0.9"
    assert entries(of_results(older))["hdica"]["version"] == "0.0.9"


def test_a_study_file_and_what_is_computed_without_a_store_are_cited_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = ROOT / "config" / "studies" / "tiny.yaml"
    assert call(["cite", str(tiny)]) == 0
    assert capsys.readouterr().out == cite(load_study(tiny)) == cite(hdica.Study.load(tiny))
    system = hdica.OnlineICA(tau=0.1, start={"overlap": 0.5})
    of_point = hdica.cite(hdica.limit(system, times=[0, 1]))
    assert {"wang2017scaling", "hairer1993solving", "hdica"} == set(entries(of_point))
    assert hdica.cite(system) == hdica.cite(hdica.OnlineICA) == hdica.cite("OnlineICA")
    assert set(entries(hdica.cite(system))) == {"wang2017scaling", "hdica"}


@pytest.mark.parametrize("what", [3, None, [1], int, {"system": "OnlineICA"}])
def test_what_cannot_be_cited_is_one_sentence(what: object) -> None:
    with pytest.raises(HdicaError, match=r"cite: a \w+ is not allowed \(a system, a study,"):
        hdica.cite(what)


def test_a_path_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["cite", "absent.zarr"]) == 2
    assert capsys.readouterr().err.startswith("hdica: absent.zarr does not exist")


def test_hdica_is_cited_as_its_citation_file_has_it() -> None:
    kept = read_yaml(ROOT / "CITATION.cff")
    ours = entries(software().bibtex())["hdica"]
    assert ours["title"] == "{" + kept["title"] + "}"
    assert ours["version"] == str(kept["version"])
    assert ours["author"] == "{" + kept["authors"][0]["name"] + "}"
    titles = {paper.title for record in RECORDS.values() for paper in record.papers}
    assert {one["title"] for one in kept["references"]} <= titles


def test_names_become_ascii_and_keys_stay_apart() -> None:
    one = Paper("Ångström and Søren 1999", "Über 5 % & more", ("Ångström, Ö.",), 1999, "J. Ł")
    other = Paper("Ångström 1999", "Über 5 % again", ("Ångström, Ö.",), 1999, "J. Ł")
    text = bibtex({one: "a", other: "b"})
    assert text.isascii()
    assert set(entries(text)) == {"angstrom1999uber", "angstrom1999uberb"}
    assert r"{\r A}ngstr{\"o}m, {\"O}." in text
    assert r"{{\"U}ber 5 \% \& more}" in text
    assert r"J. {\L}" in text


def test_what_is_cited_is_the_same_in_json(out: Path) -> None:
    made(study_from(toy.study()), out)
    root = json.loads((out / "zarr.json").read_text())
    assert root["attributes"][KEPT].startswith("% system Toy\n@")
