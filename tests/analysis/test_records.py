"""What every analysis promises, whichever there are: its record, its settings, its answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import hdica
from hdica.analysis import registry
from hdica.analysis.aggregate import aggregate, summary
from hdica.analysis.reading import requested, settings_of
from hdica.analysis.record import Analysis, Answer, Section
from hdica.analysis.registry import analyses, register, settings_classes
from hdica.analysis.settings import Needs, Settings, Swept, needs_of
from hdica.errors import HdicaError
from hdica.report.page import panels, render
from hdica.show.finding import Finding, grouped
from hdica.show.panel import Panel
from hdica.show.terms import speaking_of
from hdica.show.wording import MOST_ROWS, sentence, table_of
from hdica.show.words import words
from hdica.status import PENDING
from hdica.study.study import Study, study_from
from hdica.systems import system as all_systems
from hdica.systems.system import systems
from tests.analysis import (
    bifurcation,
    collapses,
    ensembles,
    escapes,
    galleries,
    laws,
    papers,
    powers,
    shared,
    spheres,
    toy,
    waves,
)
from tests.report.shown import plain
from tests.sweep import toy as cheap


def _critical() -> xr.Dataset:
    data = toy.flow_groups([0.02])["critical"].expand_dims(beta=[0.1, 0.2])
    return data.assign_attrs(method="critical")


def _overlaps() -> xr.DataTree:
    groups = {**escapes.overlaps(), "trapping": escapes.trap()}
    both = {"curves": ["chain", "ode"]}
    return toy.tree(
        groups, {"decay": both, "paths": {"simulation": "chain", "threshold": 0.5}, "trapping": {}}
    )


def _still() -> xr.DataTree:
    """A limit that stays at a start without overlap."""
    data = toy.ode([0.02], [0.0], [0.0, 1.0], 0.1)
    return toy.tree({"ode": _zeroed(data)}, {})


def _zeroed(data: xr.Dataset) -> xr.Dataset:
    return data.assign({k: data[k] * 0.0 for k in data.data_vars if str(k).startswith("Q")})


def _chosen() -> xr.DataTree:
    """A study that leaves a sign to its system."""
    found = _still()
    written = json.loads(found.attrs["study_yaml"]) | {"parameters": {"tau": 0.1, "sign": "auto"}}
    found.attrs["study_yaml"] = json.dumps(written)
    return found


STORES = {
    **dict.fromkeys(("runs", "convergence", "phase", "flow"), toy.store),
    **dict.fromkeys(
        ("condensing", "densities", "distances", "support", "potential", "compare"), laws.store
    ),
    **dict.fromkeys(("decay", "paths", "trapping"), _overlaps),
    "steady": bifurcation.store,
    "collapse": collapses.store,
    "escape": escapes.store,
    "samples": lambda: escapes.store({"samples": escapes.ENOUGH}, runs=400, end=1e9),
    "ensemble": ensembles.store,
    "dependence": powers.store,
    "exponents": powers.store,
    "pictures": galleries.store,
    "curves": waves.store,
    "sphere": spheres.store,
    "success": powers.store,
    "printed": papers.store,
    "slopes": lambda: shared.store(1),
    "learning": _still,
    "choices": _chosen,
    "transition": lambda: toy.tree({"critical": _critical()}, {"transition": {"x": "beta"}}),
}
"""A store that has what each analysis needs."""


@cache
def _made(store: Callable[[], xr.DataTree]) -> xr.DataTree:
    return store()


def test_every_analysis_has_a_store_here() -> None:
    assert set(STORES) == set(analyses())


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of data with the file that the store of ``printed`` names."""
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    papers.file(tmp_path / "reference/toy.yaml")


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("name", list(analyses()))
def test_an_answer_is_described_drawn_and_said(name: str) -> None:
    analysis, store = analyses()[name], _made(STORES[name])
    given = () if analysis.settings is None else (settings_of(store, name, _study(store)[name]),)
    data = analysis.compute(store, *given)
    assert isinstance(data, xr.Dataset)
    assert data.data_vars
    assert all(values.attrs.get("long_name") for values in data.data_vars.values())
    drawn = [section.draw(data) for section in analysis.sections]
    assert all(isinstance(panel, Panel) for found in drawn for panel in found)
    assert not analysis.sections or any(drawn)
    assert analysis.answer.findings or analysis.answer.notes
    notes = [] if analysis.answer.notes is None else analysis.answer.notes(data)
    assert all(isinstance(text, str) for text in notes)
    found = [] if analysis.answer.findings is None else analysis.answer.findings(data)
    found = [one for one in found if np.isfinite(one.value)]
    assert found or notes or analysis.answer.findings is None
    with speaking_of(str(store.attrs["system"])):
        for group in grouped(found):
            assert not re.search(r"[{}]|  |\bnan\b|\d{12}", plain([sentence(group)])[0])
        assert len(table_of(found).rows) == min(len(found), MOST_ROWS)


def _study(store: xr.DataTree) -> dict[str, Any]:
    from hdica.analysis.reading import study

    found: dict[str, Any] = study(store)["analysis"]
    return found


def _unfinished(store: xr.DataTree, method: str, share: float) -> xr.DataTree:
    """The store while this share of the points of a method, drawn at random, is pending."""
    data = store[method].to_dataset()
    draw = np.random.default_rng(1).random(data["status"].shape)
    gone = xr.DataArray(draw < share, dims=data["status"].dims)
    left = {"status": data["status"].where(~gone, PENDING).astype(np.uint8)}
    for name, values in data.data_vars.items():
        if values.dtype.kind == "f" and set(gone.dims) <= set(values.dims):
            left[str(name)] = values.where(~gone).transpose(*values.dims)
    groups = {name: node.to_dataset() for name, node in store.children.items()}
    groups[method] = data.assign({k: v.assign_attrs(data[k].attrs) for k, v in left.items()})
    return xr.DataTree.from_dict({"/": store.to_dataset(), **groups})


def _shown(analysis: Analysis, store: xr.DataTree) -> tuple[list[str], set[str]]:
    """All that an analysis says of a store, with its captions, and what is said to differ."""
    given = () if analysis.settings is None else (requested(store, analysis.name),)
    data = analysis.compute(store, *given)
    if data is None:
        return [], set()
    found = [] if analysis.answer.findings is None else list(analysis.answer.findings(data))
    found = [one for one in found if np.isfinite(one.value)]
    out = [] if analysis.answer.notes is None else list(analysis.answer.notes(data))
    out += map(sentence, grouped(found))
    off = {
        f"{one.quantity.plain} {sorted(map(str, one.place.items()))}"
        for one in found
        if one.verdict == "differs"
    }
    for name in {"verdict", "corrected_verdict"} & set(data.data_vars):
        off |= {f"{name} {at}" for at in np.flatnonzero(data[name].values == "differs")}
    for section in analysis.sections:
        out += [text for p in section.draw(data) for text in (p.caption, p.title.plain)]
    return plain(out), off


NO_NUMBER = re.compile(r"\bnan\b|\bNaN\b|\binf\b|\bNone\b|(?<!\w)–(?!\w)|\b[Oo]f 0 ")
DENIAL = re.compile(r"nothing is learned|do(es)? not (agree|change|stand)|no exponent \(")


@pytest.mark.usefixtures("numbers")
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", list(analyses()))
def test_what_is_pending_disagrees_with_nothing(name: str) -> None:
    """While a method, or half of all points, is pending, no more is denied than in the end."""
    store = _made(STORES[name])
    asked_of = json.dumps(_study(store).get(name, list(store.children)))
    half, methods = store, [m for m in store.children if f'"{m}"' in asked_of]
    for method in methods:
        half = _unfinished(half, method, 0.5)
    with speaking_of(str(store.attrs["system"])):
        whole, off = _shown(analyses()[name], store)
        for part in (half, *(_unfinished(store, method, 1.0) for method in methods)):
            said, wrong = _shown(analyses()[name], part)
            assert wrong <= off
            for text in said:
                assert not NO_NUMBER.search(text), text
                assert not DENIAL.search(text) or text in whole, text


@pytest.mark.parametrize("store", [toy.store, laws.store, _overlaps, waves.store])
def test_a_section_that_draws_some_n_says_which_it_leaves_out(
    store: Callable[[], xr.DataTree],
) -> None:
    found = aggregate(_made(store))
    every = {int(n) for text in found["runs"]["n"].values for n in str(text).split(", ") if n}
    for name, drawn in panels(found).items():
        labels = [i.label.plain for p in drawn for i in p.items]
        texts = [*plain(p.caption for p in drawn), *(p.title.plain for p in drawn), *labels]
        shown = set(re.findall(r"\bn = ([\d, \u202fand]+)", " ; ".join(texts)))
        known = {int(n) for text in shown for n in re.findall(r"\d+", text.replace("\u202f", ""))}
        assert not known or known == every, name


@pytest.mark.parametrize("name", list(settings_classes()))
def test_settings_say_what_they_are(name: str) -> None:
    kind = settings_classes()[name]
    assert kind.__doc__
    for key, field in kind.model_fields.items():
        assert field.description, key
        # A mark within a union would be found by nobody.
        assert str(field.annotation).count("Needs(") == 0
        assert str(field.annotation).count("Swept(") == 0
        marked = any(isinstance(mark, Swept) for mark in field.metadata)
        assert marked == ("swept parameter" in field.description), key
    for _, needs in needs_of(kind):
        assert isinstance(needs, Needs)
        assert needs.output != ""


def test_reading_order_is_told_for_everything_that_is_shown() -> None:
    sections = [section for one in analyses().values() for section in one.sections]
    answers = [one.answer for one in analyses().values()]
    ranks = [one.rank for one in answers if one.findings or one.notes]
    assert len({section.rank for section in sections}) == len(sections)
    assert len({section.name for section in sections}) == len(sections)
    assert len(set(ranks)) == len(ranks)


@pytest.mark.deep
def test_a_study_is_checked_without_what_computes_and_draws() -> None:
    code = (
        "import sys; from hdica.analysis.registry import analyses; analyses(); "
        "print(*{'plotly', 'matplotlib', 'hdica.show.panel'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""


class Ends(Settings):
    """Where runs end."""

    simulation: str
    least: float = 0.0


def _ends(tree: xr.DataTree, settings: Ends) -> xr.Dataset:
    data = xr.Dataset({"end": tree[settings.simulation]["Q"].isel(time=-1).mean("seed")})
    data["end"].attrs["long_name"] = "mean at the last time"
    return data


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Analysis:
    """An analysis of a plug-in, until the end of a test."""
    record = Analysis(
        "ends",
        _ends,
        Ends,
        (Section("ends", "Where runs end", lambda data: [_panel()], 99),),
        Answer(findings=lambda data: [Finding(words("the end"), {}, float(data["end"].mean()))]),
    )
    known = analyses()
    monkeypatch.setitem(known, "ends", record)
    monkeypatch.setitem(systems(), "Toy", cheap.record(cheap.make()))
    return register(record)


def _panel() -> Panel:
    return Panel("ends", words("Ends"), words("x"), words("y"), ())


def test_a_plug_in_is_validated_computed_and_shown(ends: Analysis) -> None:
    study = study_from(cheap.study(analysis={"ends": {"simulation": "walk"}}))
    assert study.analysis.model_dump()["ends"] == {"simulation": "walk", "least": 0.0}
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert "Ends" in Study.model_json_schema()["$defs"]
    with pytest.raises(HdicaError, match=r"analysis\.ends\.simulation is missing"):
        study_from(cheap.study(analysis={"ends": {}}))
    tree = toy.tree({"chain": toy.store()["chain"].to_dataset()}, {"ends": {"simulation": "chain"}})
    found = aggregate(tree)
    assert "ends" in panels(found)
    assert summary(found).headline.startswith("The end is ")
    assert "Where runs end" in render(found, panels(found))


def test_what_packages_bring_is_loaded_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> Analysis:
        raise ImportError("no such module")

    point = SimpleNamespace(name="ends", value="other:ENDS", load=load)
    monkeypatch.setattr(all_systems, "entry_points", lambda group: [point])
    with pytest.warns(UserWarning, match="analysis ends of other:ENDS cannot be loaded"):
        registry._load.__wrapped__()
    assert "ends" not in registry.analyses()


def test_a_name_is_taken_by_one_analysis_only(ends: Analysis) -> None:
    with pytest.raises(HdicaError, match="the name phase is taken"):
        register(Analysis("phase", _ends, Ends))
    with pytest.raises(HdicaError, match="a dict is not allowed"):
        register({})


def test_the_schema_of_a_study_has_every_analysis() -> None:
    schema = Study.model_json_schema()
    fields = schema["properties"]["analysis"]["properties"]
    assert list(fields) == list(settings_classes())
    level = schema["$defs"]["Convergence"]["properties"]["level"]
    assert level["default"] == 0.01
    assert level["description"]


def test_a_store_of_a_system_that_is_not_known_is_reported_or_refused_in_one_sentence() -> None:
    tree = toy.store()
    tree.attrs["system"] = "Unknown"
    given = {"convergence": toy.CONVERGENCE, "phase": {**toy.PHASE, "variable": "Q"}}
    whole = toy.tree({k: v.to_dataset() for k, v in tree.children.items()}, given)
    whole.attrs["system"] = "Unknown"
    found = aggregate(whole)
    assert np.isfinite(found["convergence"]["mean"]).any()
    assert render(found, panels(found))
    with pytest.raises(HdicaError, match="phase.variable is missing .*'Unknown' is not known"):
        aggregate(tree)


def test_one_function_registers_a_system_and_an_analysis_of_ones_own() -> None:
    for record in (systems()["OnlineICA"], analyses()["runs"]):
        assert hdica.register(record) is record
    with pytest.raises(HdicaError, match="register: a str is not allowed"):
        hdica.register("OnlineICA")
