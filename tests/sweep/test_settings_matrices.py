"""What analyses of escape times, single runs and matrices may name, and what they fall back on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hdica.analysis.registry import analyses_model
from hdica.analysis.settings import Gives
from hdica.errors import HdicaError
from hdica.study.study import Study, study_from
from hdica.systems.method import Output, Outputs, Scope, Size
from hdica.systems.system import system_named
from tests.sweep import toy

PAIR = ("projection", "source")
MATRIX = Output("R", ("time", *PAIR), "overlaps")
SQUARE = Output("Q", ("time", "projection", "other"), "overlaps of projections")
METHODS = {
    "chain": {"n": [10], "seeds": 2},
    "races": {"n": [10], "seeds": 2},
    "ode": {},
    "law": {},
    "rates": {"n": [10]},
    "trapping": {},
    "line": {},
    "states": {},
}


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods with matrices over time, with escape times and with a potential."""
    made = toy.make()
    alone = [Output(k, (), k) for k in ("first", "first_seen", "last", "last_seen")]
    means = [Output(k, (), k) for k in ("mean", "mean_last")]
    new = {
        "chain": replace(made["walk"], name="chain", outputs=Outputs((MATRIX, SQUARE))),
        "races": replace(made["walk"], name="races", outputs=Outputs(tuple(alone))),
        "ode": replace(made["line"], name="ode", outputs=Outputs((MATRIX,))),
        "law": replace(made["line"], name="law", outputs=Outputs(tuple(means))),
        "rates": replace(
            made["line"],
            name="rates",
            outputs=Outputs(tuple(means)),
            scope=Scope(n=Size.DIMENSION),
        ),
        "trapping": replace(
            made["line"], name="trapping", outputs=Outputs((Output("U", (*PAIR, "r"), "U"),))
        ),
        "states": replace(
            made["steady"],
            name="states",
            outputs=replace(
                made["steady"].outputs, always=(Output("R", ("fixed_point", *PAIR), "R"),)
            ),
        ),
    }
    toy.lend(monkeypatch, *new.values())
    monkeypatch.setattr(
        toy.Toy, "dims", lambda self: {"projection": (0.0,), "source": (0.0,), "other": (0.0,)}
    )
    monkeypatch.setattr(toy.Toy, "sized_by", {})


def asked(**analysis: Any) -> Study:
    return study_from(toy.study(methods=METHODS, analysis=analysis))


ALLOWED: list[dict[str, Any]] = [
    {"escape": {"x": "tau", "simulation": "races", "limits": ["law"]}},
    {"escape": {"x": "tau", "limits": "law", "event": "last", "level": 0.05}},
    {"samples": {"simulation": "races", "theory": "rates", "limit": "law"}},
    {"paths": {"simulation": "chain", "runs": 12, "threshold": 0.8}},
    {"decay": {"curves": ["chain", "ode"], "target": 0.5}},
    {"decay": {"curves": "line", "variable": "Q"}},
    {"trapping": {}},
    {"convergence": {"simulation": "chain", "limit": "ode", "variable": "R"}},
    {"compare": {"curves": ["chain", "ode"], "variable": "R"}},
    {"compare": {"curves": ["chain", "states"], "variable": "R", "steady": "states"}},
    {"steady": {"x": "tau", "limits": ["states", "ode"], "variable": "R"}},
    {"phase": {"simulation": "chain", "x": "tau", "y": "Q0", "variable": "R"}},
    {"steady": {"x": "tau", "simulation": "chain", "limits": "ode", "variable": "R"}},
]


@pytest.mark.parametrize("analysis", ALLOWED, ids=[json.dumps(a)[:60] for a in ALLOWED])
def test_an_analysis_that_the_study_can_give(analysis: dict[str, Any]) -> None:
    study = asked(**analysis)
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert study.content_hash() == asked().content_hash()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"escape": {"simulation": "races"}}, "analysis.escape.x is missing"),
    ({"escape": {"x": "tau"}}, "analysis.escape: it needs simulation or limits (something to dr"),
    ({"samples": {"simulation": "races", "theory": "law"}}, "(one with n is needed)"),
    (
        {"escape": {"x": "nu", "limits": "law"}},
        "analysis.escape.x = 'nu' is not swept (allowed: tau, Q0)",
    ),
    ({"escape": {"x": "tau", "limits": "races"}}, "(one without seeds is needed)"),
    ({"escape": {"x": "tau", "simulation": "law"}}, "(a stochastic method is needed)"),
    ({"escape": {"x": "tau", "simulation": "chain"}}, "(it has no 'first'"),
    ({"escape": {"x": "tau", "limits": "ode", "event": "last"}}, "(it has no 'mean_last'"),
    ({"escape": {"x": "tau", "limits": "law", "event": "some"}}, "analysis.escape.event"),
    ({"paths": {"simulation": "races"}}, "analysis.paths.variable = 'Q' is no output of races"),
    ({"paths": {"simulation": "chain", "runs": 13}}, "analysis.paths.runs = 13 is not allowed"),
    ({"paths": {"simulation": "chain", "threshold": 0}}, "analysis.paths.threshold = 0 is not"),
    ({"decay": {"curves": []}}, "analysis.decay.curves = [] is not allowed"),
    (
        {"decay": {"curves": "chain", "variable": "Q"}},
        "(it has no 'Q' over time)",
    ),
    ({"trapping": {"limit": "ode"}}, "(it has no 'U' over r)"),
    (
        {"convergence": {"simulation": "chain", "limit": "ode", "variable": "S"}},
        "analysis.convergence.variable = 'S' is no output of chain",
    ),
]


@pytest.mark.parametrize(("analysis", "message"), REFUSED, ids=[m[-44:] for _, m in REFUSED])
def test_an_analysis_that_the_study_cannot_give_is_refused_in_one_sentence(
    analysis: dict[str, Any], message: str
) -> None:
    with pytest.raises(HdicaError) as caught:
        asked(**analysis)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


OUTPUTS = {
    "chain": {"R": MATRIX.dims, "Q": SQUARE.dims},
    "ode": {"R": MATRIX.dims},
    "walk": {"Q": ("time",)},
    "points": {"Q": ("fixed_point",)},
    "law": {"mean": ()},
}


@pytest.mark.parametrize(
    ("name", "given", "variable"),
    [
        ("convergence", {"simulation": "chain", "limit": "ode"}, "R"),
        ("convergence", {"simulation": "walk", "limit": "ode"}, "Q"),
        ("convergence", {"simulation": "chain", "limit": "ode", "variable": "Q"}, "Q"),
        ("convergence", {"simulation": "law", "limit": "law"}, "Q"),
        ("compare", {"curves": ["chain", "ode"]}, "R"),
        ("compare", {"curves": ["chain"], "steady": "points"}, "Q"),
        ("phase", {"simulation": "chain", "x": "tau", "y": "Q0"}, "R"),
        ("steady", {"x": "tau", "limits": "ode"}, "R"),
        ("decay", {"curves": "walk"}, "Q"),
        ("decay", {"curves": ["chain", "ode"]}, "R"),
        ("paths", {"simulation": "chain"}, "R"),
    ],
)
def test_a_variable_left_open_is_the_first_order_parameter_that_a_method_has(
    name: str, given: dict[str, Any], variable: str
) -> None:
    system, known = system_named("Toy"), {k: Gives(False, v) for k, v in OUTPUTS.items()}
    analysis: Any = analyses_model().model_validate({name: given, "flow": {"method": "drift"}})
    settled: Any = analysis.settled(system, known)
    assert getattr(settled, name).variable == variable
    assert settled.flow == analysis.flow
    assert settled.settled(system, known) == settled
    again: Any = analyses_model().model_validate_json(settled.model_dump_json())
    assert again.settled(system, known) == settled
