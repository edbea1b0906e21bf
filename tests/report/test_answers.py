"""The answer of a report: the right one, with its figure and error, and none that chance made."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import xarray as xr
from markupsafe import Markup

from hdica.analysis.aggregate import aggregate
from hdica.analysis.convergence.answer import answer as convergence
from hdica.analysis.dependence.answer import answer as dependence
from hdica.analysis.dependence.compute import with_verdicts
from hdica.analysis.phase.answer import answer as phase
from hdica.analysis.show.agreement import verdict_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import points
from hdica.analysis.show.words import formula, prose, tied, typeset
from hdica.report.answers import findings, headline, told
from hdica.verdict.pooled import pooled
from tests.analysis import toy
from tests.report.shown import plain


def text(found: Any) -> str:
    return plain([found.html])[0]


def asking(tree: xr.DataTree, question: Any) -> xr.DataTree:
    """The same aggregate of a study with a question."""
    found = tree.copy()
    said = json.loads(found.attrs["study_yaml"])
    found.attrs["study_yaml"] = json.dumps({**said, "question": question})
    return found


def test_the_first_in_rank_answers_unless_the_study_names_another(aggregated: xr.DataTree) -> None:
    first = headline(aggregated)
    assert "τc = 0.06" in text(first)
    assert headline(asking(aggregated, "Where?")) == first
    named = headline(asking(aggregated, {"text": "Where?", "analysis": "convergence"}))
    assert "agrees with the limit in 3 of 4 comparisons, and 1 is undecided" in text(named)
    assert named.verdict == "undecided"


@pytest.mark.parametrize(("error", "verdict"), [(0.0, "undecided"), (0.2, "differs")])
def test_what_stands_side_by_side_is_judged_by_another_analysis(error: float, verdict: str) -> None:
    found = aggregate(toy.store(error))
    shown = {"curves": ["chain", "ode"], "variable": "Q"}
    groups = {k: v.to_dataset() for k, v in toy.store(error).children.items()}
    alone = headline(aggregate(toy.tree(groups, {"compare": shown})))
    assert alone.verdict == ""
    both = aggregate(toy.tree(groups, {"compare": shown, "convergence": toy.CONVERGENCE}))
    said = headline(asking(both, {"text": "Where?", "analysis": "compare"}))
    assert said.html.startswith(alone.html.removesuffix("."))
    assert said.verdict == verdict
    own = convergence(found["convergence"].to_dataset())
    assert own is not None
    clause = own.html.split("; the distance")[0].split("; at <i>n")[0]
    assert f"; {clause[0].lower()}{clause[1:]}; at <i>n</i>" in said.html


def test_nothing_that_is_said_is_lost(aggregated: xr.DataTree) -> None:
    found = told(aggregated)
    assert len(found.findings) <= 3
    shown = [found.headline.html, *found.findings, *found.account, *found.missing]
    shown += [text for topic in found.topics for text in topic.sentences]
    assert set(findings(aggregated)) <= set(map(str, shown))
    assert len({topic.heading for topic in found.topics}) == len(found.topics)
    assert not any("points are done" in s for s in plain(found.findings))


def test_what_is_missing_is_said_on_top() -> None:
    tree = toy.store()
    assert told(aggregate(tree)).missing == ()
    tree["chain"]["status"].values[0, 0, 0, :2] = 2
    found = told(aggregate(tree))
    assert "2 diverged" in plain(found.missing)[0]
    assert found.account == ()
    assert "diverged" not in text(found.headline)


def test_the_exponent_and_the_distance_carry_their_errors(aggregated: xr.DataTree) -> None:
    data = aggregated["convergence"].to_dataset()
    found = text(convergence(data))
    power = float(found.split("falls as n−")[1].split(" ±")[0])
    assert power == pytest.approx(0.5, abs=0.1)
    worst = float(data["sup_error"].isel(n=-1).max())
    assert float(found.split("is within ")[1].split(" ±")[0]) == pytest.approx(worst, rel=0.1)


def test_a_chance_rejection_is_never_the_headline(aggregated: xr.DataTree) -> None:
    data = aggregated["convergence"].to_dataset().copy(deep=True)
    cell = {"simulation": 0, "tau": 0, "Q0": 0}
    data["verdict"] = data["verdict"].astype(object)
    data["verdict"][cell] = "differs"
    level = data.attrs["level"] / data.attrs["tests"]
    data["p_value"][cell] = level / 2
    found = convergence(data)
    assert found.verdict == "undecided"
    assert "differs from" not in text(found)
    data["p_value"][cell] = level / 1000
    found = convergence(data)
    assert found.verdict == "differs"
    assert "differs from the limit in 1 of 4 comparisons" in text(found)


def test_without_results_there_is_no_answer(aggregated: xr.DataTree) -> None:
    data = aggregated["convergence"].to_dataset()
    assert convergence(data.assign(sup_error=np.nan * data["sup_error"])) is None
    cells = points(data, ["simulation", "tau", "Q0"])
    assert (
        verdict_of(data.assign(verdict=xr.full_like(data["verdict"], "agrees")), cells) == "agrees"
    )
    unknown = data.assign(verdict=xr.full_like(data["verdict"], "undecided"))
    assert verdict_of(unknown, cells) == "undecided"


def test_the_phase_diagram_answers_with_its_critical_value() -> None:
    taus, starts = [0.03, 0.05, 0.061, 0.07], [round(0.05 * k, 2) for k in range(1, 20)]
    times = list(np.linspace(0.0, 3.0, 13))
    chain = toy.finite("chain", taus, starts, [400], 16, times, 0.3)
    groups = {"chain": chain, "ode": toy.ode(taus, starts, times, 0.3), **toy.flow_groups(taus)}
    data = aggregate(toy.tree(groups, {"phase": toy.PHASE}))["phase"].to_dataset()
    found = phase(data)
    assert "learns up to τc = 0.06; simulation at n = 400 puts the start" in text(found)
    assert found.verdict == "agrees"
    assert phase(data.assign(boundary=data["boundary"] + 0.15)).verdict == "differs"
    # Without a boundary in the start: between which values of x the simulation stops.
    stopped = text(phase(data.drop_vars("boundary")))
    assert "stops to learn between τ = 0.05 and 0.07, within 0.01 of theory" in stopped
    bare = data.drop_vars(["boundary", "critical_value", "agreement_share"])
    assert phase(bare) is None


def _means(difference: np.ndarray, predicted: bool = True) -> xr.Dataset:
    """Means over x = 1 … with a standard error of 0.01 and fifty seeds."""
    x = np.arange(1.0, 1 + len(difference))
    dims = ("output", "simulation", "x")
    mean = (0.5 + difference)[None, None]
    full = {k: (dims, np.full_like(mean, v)) for k, v in {"se": 0.01, "predicted": 0.5}.items()}
    data = xr.Dataset(
        {"mean": (dims, mean), **full, "seeds": (dims, np.full(mean.shape, 50))},
        {"output": ["R"], "simulation": ["runs"], "x": x},
        {"over": "x", "variable": "R"},
    )
    data["predicted"] = data["predicted"] if predicted else data["predicted"] * np.nan
    return data.assign(difference=data["mean"] - data["predicted"])


def _judged(data: xr.Dataset, where: dict[str, str] | None = None) -> Answer:
    found = dependence(with_verdicts(data, 0.1, where or {}))
    assert found is not None
    return found


def test_a_mean_agrees_with_its_prediction_where_wrong_ones_are_rejected() -> None:
    right = _judged(_means(np.array([0.01, -0.012, 0.004, 0.0])))
    assert right.verdict == "agrees"
    assert "agrees with the prediction within 0.012 at all 4 points" in text(right)
    wrong = _judged(_means(np.array([0.3, 0.2, 0.3, 0.25])))
    assert wrong.verdict == "differs"
    alone = text(dependence(_means(np.array([0.1, 0.2]), predicted=False)))
    assert "0.600 ± 0.010 at x = 1 and 0.700 ± 0.010 at x = 2" in alone
    assert dependence(_means(np.full(3, np.nan))) is None


def test_no_part_is_chosen_after_looking_and_a_study_may_claim_one_before() -> None:
    late = _means(np.array([0.3, 0.2, 0.01, -0.004, 0.002]))
    found = _judged(late)
    assert found.verdict == "differs"
    assert "agrees with the prediction within 0.01 at 3 of 5 points" in text(found)
    assert "differs from it at 2 (off by up to 0.300 ± 0.010, at x = 1)" in text(found)
    claimed = _judged(late, {"x": ">= 3"})
    assert claimed.verdict == "agrees"
    assert "at all 3 points with x ≥ 3" in text(claimed)
    assert "elsewhere it is off by up to 0.300 ± 0.010, at x = 1" in text(claimed)
    assert _judged(late, {"x": ">= 2"}).verdict == "differs"


def test_few_seeds_agree_with_nothing_and_say_how_many_would() -> None:
    few = _means(np.array([0.01, 0.02]))
    few = few.assign(se=few["se"] * 5, seeds=few["seeds"] * 0 + 3)
    found = _judged(few)
    assert found.verdict == "undecided"
    assert "all 2 points are undecided (a prediction off by 10 % of its largest value" in text(
        found
    )
    needed = int(re.search(r"(\d+) seeds would decide", text(found))[1])
    assert (
        _judged(
            few.assign(se=few["se"] * (3 / needed) ** 0.5, seeds=few["seeds"] * 0 + needed)
        ).verdict
        == "agrees"
    )


def test_measurements_are_pooled_by_their_errors() -> None:
    mean, error = pooled(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    assert (mean, error) == pytest.approx((1.5, 0.5**0.5))
    assert pooled(np.array([0.0, 10.0]), np.array([1.0, 1.0]))[1] == pytest.approx(5.0)
    assert np.isnan(pooled(np.array([1.0]), np.array([np.nan]))[0])


def test_formulas_are_written_as_they_are_printed() -> None:
    assert typeset("where(abs(x) < 0.3, 6*sign(x), 0)") == "6 sign(x) if |x| < 0.3, else 0"
    assert typeset("n^-1/2, n^1/2, tau^2/2, n -> infinity") == "n^-1/2, n^1/2, τ²/2, n → ∞"
    assert typeset("x**3 - 0.27*sign(x)") == "x³ − 0.27 sign(x)"
    assert typeset("max(7 - 2.5e-3*x, -x)") == "max(7 − 2.5 × 10⁻³ x, −x)"
    assert formula("eq. (1)-(2); Dormand-Prince, tolerance 1e-12") == (
        "eq. (1)–(2); Dormand–Prince, tolerance 10⁻¹²"
    )
    assert typeset("step size tau = 0.1, beta2 stays") == "step size τ = 0.1, beta2 stays"
    assert prose("up to tau_c < x_0^2 of a_study_file") == (
        "up to τ<sub>c</sub> &lt; x<sub>0</sub>² of a_study_file"
    )
    assert prose("as n^(-2/3), (V/n)^(1/2) and x^(a + b)") == (
        "as n<sup>−2/3</sup>, (V/n)<sup>1/2</sup> and x^(a + b)"
    )


def test_a_study_that_asks_for_nothing_gets_a_phase_diagram() -> None:
    taus, starts = [0.03, 0.05, 0.07], [0.2, 0.5, 0.8]
    chain = toy.finite("chain", taus, starts, [100], 4, [0.0, 1.0, 2.0], 0.3)
    tree = toy.tree({"chain": chain, "ode": toy.ode(taus, starts, [0.0, 1.0, 2.0], 0.3)}, {})
    study = json.loads(tree.attrs["study_yaml"]) | {"grid": {"tau": taus, "Q0": starts}}
    study["parameters"] = {"source": "uniform", "nonlinearity": "x**3"}
    tree.attrs["study_yaml"] = json.dumps(study)
    found = aggregate(tree)
    assert {"phase", "convergence"} <= set(found.children)
    # The critical step size of a uniform source and x³, found though no method of the study has it.
    values = found["phase"]["critical_value"].values
    assert values[np.isfinite(values)] == pytest.approx([0.0591302], rel=1e-5)
    assert "learns up to τc = 0.05913" in text(headline(found))


def test_lines_break_within_no_figure() -> None:
    said = "at <i>n</i> = 900 it is 0.1 ± 0.2 (5 % of it, p &lt; 1)"
    bound = "at <i>n</i>~=~900 it is 0.1~±~0.2 (5~% of it, p~&lt;~1)"
    assert tied(Markup(said)) == bound.replace("~", "\u00a0")
    assert tied("a < b") == "a\u00a0&lt;\u00a0b"
    assert tied("<b>") == "&lt;b&gt;"
