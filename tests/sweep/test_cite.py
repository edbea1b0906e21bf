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
from hdica.store.provenance import KEPT, bibtex, cite, cited, of_results, software
from hdica.store.results import open_results
from hdica.study.study import load_study, study_from
from hdica.systems.system import Paper, System, systems, works
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


def test_every_paper_of_a_system_is_one_of_the_works() -> None:
    for record in RECORDS.values():
        assert set(record.papers) <= set(works().values())
        assert not record.works


@pytest.mark.parametrize("paper", works().values(), ids=lambda paper: paper.cite)
def test_every_work_says_who_what_when_and_where(paper: Paper) -> None:
    ((key, entry),) = entries(paper.bibtex).items()
    assert key == paper.key
    assert paper.bibtex.isascii()
    assert entry["title"] == "{" + paper.title + "}"
    assert {"author", "year"} < set(entry)
    assert {"journal", "booktitle", "publisher", "note"} & set(entry)
    assert entry["year"] in paper.cite


@pytest.mark.parametrize("record", RECORDS.values(), ids=lambda record: record.name)
def test_whatever_paper_a_method_names_is_cited_for_it(record: System) -> None:
    for method in record.methods:
        of_it = cited(record, {method.name: method.about.equations})
        years = set(re.findall("[0-9]{4}", " ".join(paper.cite for paper in of_it)))
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
    ours = entries(software().bibtex)["hdica"]
    assert ours["title"] == "{" + kept["title"] + "}"
    assert ours["version"] == str(kept["version"])
    assert ours["author"] == "{" + kept["authors"][0]["name"] + "}"
    titles = {paper.title for record in RECORDS.values() for paper in record.papers}
    assert {one["title"] for one in kept["references"]} <= titles


def test_keys_stay_apart() -> None:
    entry = "@article{angstrom1999uber,\n  title = {{Over}}\n}"
    one, other = Paper("Angstrom 1999", "Over", entry), Paper("Angstrom 1999b", "Over", entry)
    text = bibtex({one: "a", other: "b"})
    assert set(entries(text)) == {"angstrom1999uber", "angstrom1999uberb"}


def test_a_paper_without_an_entry_is_cited_by_its_title() -> None:
    text = bibtex({Paper("nobody 1900", "Nothing"): "system Toy"})
    assert entries(text) == {"nobody1900": {"kind": "misc", "title": "{Nothing}"}}


def test_what_is_cited_is_the_same_in_json(out: Path) -> None:
    made(study_from(toy.study()), out)
    root = json.loads((out / "zarr.json").read_text())
    assert root["attributes"][KEPT].startswith("% system Toy\n@")
