"""What analyses may name: methods of the right kind, with the outputs that they need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.study.study import Study, study_from
from tests.sweep import toy

METHODS = {
    "walk": {"n": [10], "seeds": 2},
    "line": {},
    "profile": {},
    "steady": {},
    "branches": {},
}
SAVE = {
    "snapshots": [0.5, 2],
    "x": [-1, 0, 1],
    "thresholds": [0.1, 0.2],
    "functionals": {"mse": "(x - xi)**2"},
}


def asked(save: Any = SAVE, **analysis: Any) -> Study:
    return study_from(toy.study(methods=METHODS, save=save, analysis=analysis))


ALLOWED: list[dict[str, Any]] = [
    {"distances": {"simulation": ["walk"], "limit": "profile", "level": 0.05}},
    {"densities": {"simulation": "walk", "limit": "profile"}},
    {"densities": {"limit": "profile"}},
    {"distances": {"simulation": ["walk"]}},
    {"support": {"simulation": "walk", "limit": "shares"}},
    {"support": {"simulation": None, "limit": "shares"}},
    {"potential": {"limit": "profile"}},
    {"steady": {"x": "tau", "limits": "line", "simulation": ["walk"], "series": "Q0"}},
    {"steady": {"x": "tau", "branches": "branches"}},
    {"compare": {"curves": ["walk", "line", "profile"], "band": 2}},
    {"convergence": {"simulation": "walk", "limit": "line", "band": 1.5}},
    {"phase": {"simulation": "walk", "x": "tau", "y": "Q0", "variable": "mse"}},
    {"compare": {"curves": "walk", "variable": "mse"}},
]


@pytest.fixture(autouse=True)
def shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that keeps support recovery."""
    method = toy.make()["profile"]
    object.__setattr__(method, "name", "shares")
    object.__setattr__(method.outputs, "keeps", frozenset({"support"}))
    toy.lend(monkeypatch, method)
    monkeypatch.setitem(METHODS, "shares", {})


@pytest.mark.parametrize("analysis", ALLOWED, ids=[json.dumps(a)[:60] for a in ALLOWED])
def test_an_analysis_that_the_study_can_give(analysis: dict[str, Any]) -> None:
    study = asked(**analysis)
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert study.content_hash() == asked().content_hash()
    (name,) = analysis
    assert [asked for asked, _ in study.analysis.items()] == [name]


def test_defaults_are_those_that_the_analyses_expect() -> None:
    found = asked(
        convergence={"simulation": "walk", "limit": "line"},
        support={"limit": "shares"},
        steady={"x": "tau", "limits": "line"},
    ).analysis.model_dump(mode="json", exclude_none=True)
    assert found["convergence"] == {
        "simulation": ["walk"], "limit": "line", "variable": "Q", "level": 0.01,
        "control": 0.02, "band": 1.0,
    }  # fmt: skip
    assert found["support"] == {"limit": "shares", "level": 0.01, "control": 0.02}
    assert found["steady"] == {"x": "tau", "limits": ["line"], "simulation": [], "variable": "Q"}


def test_a_method_left_open_is_the_first_that_has_what_is_needed() -> None:
    found = asked(distances={"simulation": "walk"}, support={}, potential={}).analysis
    assert [settings.limit for _, settings in found.items()] == ["profile", "shares", "profile"]
    kept = Study.model_validate_json(asked(support={}).model_dump_json())
    assert kept.analysis.model_dump()["support"]["limit"] == "shares"


X, THRESHOLDS = ({k: SAVE[k] for k in ("snapshots", part)} for part in ("x", "thresholds"))
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (SAVE, {"trapping": {}}, "analysis.trapping.limit is missing (no method of this study has 'U'"),
    (THRESHOLDS, {"distances": {"simulation": "walk"}}, "needs save.snapshots and save.x"),
    (SAVE, {"distances": {"simulation": [], "limit": "line"}}, "analysis.distances.simulation"),
    (SAVE, {"distances": {"limit": "profile"}}, "analysis.distances.simulation is missing"),
    (
        SAVE,
        {"distances": {"simulation": "profile", "limit": "profile"}},
        "analysis.distances.simulation = 'profile' is not allowed (a stochastic method is needed)",
    ),
    (
        SAVE,
        {"distances": {"simulation": "walk", "limit": "line"}},
        "analysis.distances.limit = 'line' is not allowed (it has no 'cdf' over snapshot, feature,",
    ),
    (
        THRESHOLDS,
        {"distances": {"simulation": "walk", "limit": "profile"}},
        "analysis.distances needs save.snapshots and save.x",
    ),
    (THRESHOLDS, {"densities": {"limit": "profile"}}, "densities needs save.snapshots and save.x"),
    (THRESHOLDS, {"potential": {"limit": "profile"}}, "potential needs save.snapshots and save.x"),
    (
        {"functionals": {"density": "x"}},
        {"densities": {"limit": "profile"}},
        "analysis.densities needs save.snapshots and save.x",
    ),
    (X, {"support": {"limit": "shares"}}, "support needs save.snapshots and save.thresholds"),
    (SAVE, {"support": {"limit": "profile"}}, "support.limit = 'profile' is not allowed (it has"),
    (SAVE, {"potential": {"limit": "shares"}}, "(it has no 'potential' over snapshot, feature, x)"),
    (SAVE, {"potential": {"limit": "walk"}}, "(one without seeds is needed)"),
    (SAVE, {"densities": {"simulation": ["walk"]}}, "densities.simulation = ['walk'] is not allow"),
    (SAVE, {"steady": {"limits": "line"}}, "analysis.steady.x is missing"),
    (SAVE, {"steady": {"x": "tau"}}, "analysis.steady: it needs limits, branches or simulation"),
    (
        SAVE,
        {"steady": {"x": "omega", "limits": "line"}},
        "analysis.steady.x = 'omega' is not swept (allowed: tau, Q0)",
    ),
    (
        SAVE,
        {"steady": {"x": "tau", "limits": "line", "series": "start"}},
        "analysis.steady.series = 'start' is not swept",
    ),
    (
        SAVE,
        {"steady": {"x": "tau", "limits": "line", "series": "tau"}},
        "analysis.steady: series = 'tau' is not allowed (it is x already)",
    ),
    (SAVE, {"steady": {"x": "tau", "limits": "walk"}}, "analysis.steady.limits = 'walk' is not al"),
    (SAVE, {"steady": {"x": "tau", "limits": "steady"}}, "variable = 'Q' is no output of steady"),
    (
        SAVE,
        {"steady": {"x": "tau", "branches": "line"}},
        "analysis.steady.branches = 'line' is not allowed (it has no 'Q' over branch_point)",
    ),
    (
        SAVE,
        {"steady": {"x": "tau", "limits": "line", "critical": "branches"}},
        "steady.critical = 'branches' is not allowed (it has no 'value' over transition)",
    ),
    (SAVE, {"transition": {"x": "tau"}}, "transition.critical is missing (no method of this study"),
    (SAVE, {"compare": {"curves": ["walk", "lien"]}}, "(did you mean 'line'?"),
    (SAVE, {"compare": {"curves": []}}, "analysis.compare.curves = [] is not allowed"),
    (SAVE, {"compare": {"curves": ["walk", "line"], "variable": "twice"}}, "no output of walk"),
    (SAVE, {"compare": {"curves": "branches"}}, "(it has no 'Q' over time or fixed_point)"),
    (
        SAVE,
        {"compare": {"curves": "walk", "variable": "density"}},
        "(it has no 'density' over time",
    ),
    (SAVE, {"compare": {"curves": "walk", "band": 0}}, "analysis.compare.band = 0 is not allowed"),
    (
        None,
        {"compare": {"curves": "walk", "variable": "mse"}},
        "analysis.compare.variable = 'mse' is no output of walk",
    ),
    (
        SAVE,
        {"convergence": {"simulation": "walk", "limit": "branches"}},
        "analysis.convergence.limit = 'branches' is not allowed (it has no 'Q' over time)",
    ),
]


@pytest.mark.parametrize(
    ("save", "analysis", "message"), REFUSED, ids=[m[-44:] for *_, m in REFUSED]
)
def test_an_analysis_that_the_study_cannot_give_is_refused_in_one_sentence(
    save: Any, analysis: dict[str, Any], message: str
) -> None:
    with pytest.raises(HdicaError) as caught:
        asked(save, **analysis)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_parameter_on_which_no_method_of_an_analysis_depends_is_refused() -> None:
    content = {
        "study": "critical",
        "system": "OnlineICA",
        "parameters": {"source": "rademacher", "nonlinearity": "x**3"},
        "grid": {"tau": [0.1, 0.2]},
        "methods": {"critical": {}},
        "analysis": {"transition": {"x": "tau"}},
    }
    message = r"analysis\.transition\.x = 'tau' is not allowed \(a parameter on which critical dep"
    with pytest.raises(HdicaError, match=message):
        study_from(content)
