"""What a page says: the answer of its study first, one verdict for all that it claims."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from hdica.analysis.aggregate import COLUMNS, about, aggregate, frame, summary
from hdica.analysis.registry import analyses
from hdica.report.page import render
from hdica.show.finding import Finding, grouped, verdict_of
from hdica.show.wording import sentence
from hdica.show.words import count
from hdica.status import DONE, PENDING
from hdica.verdict.cells import NEAR
from tests.analysis import bifurcation, escapes, laws, toy
from tests.report.shown import plain

CONVERGENCE = analyses()["convergence"].answer.findings


@pytest.fixture(scope="module")
def aggregated() -> xr.DataTree:
    return aggregate(toy.store())


def asking(tree: xr.DataTree, question: Any) -> xr.DataTree:
    """The same aggregate of a study with a question."""
    found = tree.copy()
    written = json.loads(found.attrs["study_yaml"])
    found.attrs["study_yaml"] = json.dumps({**written, "question": question})
    return found


def headline(tree: xr.DataTree) -> str:
    return plain([summary(tree).headline])[0]


def test_the_first_in_rank_answers_unless_the_study_names_another(aggregated: xr.DataTree) -> None:
    first = headline(aggregated)
    assert first.startswith("The step size τc up to which")
    assert headline(asking(aggregated, "Where?")) == first
    named = asking(aggregated, {"text": "Where?", "analysis": "convergence"})
    assert "agrees with the limit in 3 of 4 comparisons, and 1 is undecided" in headline(named)
    assert next(iter(summary(named).findings)) == "convergence"


def test_the_finding_that_decides_the_verdict_stands_in_the_headline() -> None:
    """Nothing is ticked while something on the page does not agree."""
    shown = {"curves": ["chain", "ode"], "variable": "Q"}
    for error, verdict in ((0.0, "undecided"), (0.2, "differs")):
        groups = {k: v.to_dataset() for k, v in toy.store(error).children.items()}
        both = aggregate(toy.tree(groups, {"compare": shown, "convergence": toy.CONVERGENCE}))
        found = summary(asking(both, {"text": "Where?", "analysis": "compare"}))
        assert found.verdict == verdict
        clause = "differs from the limit in" if verdict == "differs" else "agrees with the limit in"
        assert f"; mean Q {clause}" in plain([found.headline])[0]


def test_of_two_analyses_of_one_quantity_the_second_is_named() -> None:
    slices = {"variable": "Q", "over": "tau", "simulation": "chain", "theory": "ode"}
    groups = {k: v.to_dataset() for k, v in toy.store().children.items()}
    both = {"convergence": toy.CONVERGENCE, "dependence": slices}
    found = asking(aggregate(toy.tree(groups, both)), {"text": "Where?", "analysis": "dependence"})
    assert re.fullmatch(
        r"Mean Q agrees with the limit in all 4 comparisons.*; but under “Trajectories and their "
        r"limit” mean Q agrees .* in 3 of 4 comparisons, and 1 is undecided.*",
        headline(found),
    )


def test_every_finding_is_in_the_table_the_frame_and_the_page(aggregated: xr.DataTree) -> None:
    found = summary(aggregated)
    total = sum(map(len, found.findings.values()))
    rows = frame(aggregated)
    assert len(rows) == total
    assert tuple(rows.columns[: len(COLUMNS)]) == COLUMNS
    assert {"tau", "n"} <= set(rows.columns)
    judged = rows[rows["verdict"] != ""]
    cells = judged[(judged["analysis"] == "convergence") & judged["Q0"].notna()]
    assert sorted(cells["verdict"]) == sorted(aggregated["convergence"]["verdict"].values.ravel())
    assert (cells["value"] - cells["predicted"]).abs().max() < 5 * cells["error"].max()
    page = render(aggregated, {})
    assert page.count("<tr>") > total
    assert "All findings" in page
    assert f"({total})" in page


def test_the_accessor_returns_the_same_frame() -> None:
    store = toy.store()
    pd.testing.assert_frame_equal(store.hdica.findings(), frame(aggregate(store)))


def test_an_empty_study_has_no_finding_and_no_verdict() -> None:
    tree = toy.store()
    for name in ("chain", "ode"):
        tree[name]["status"].values[...] = 0
    only = {k: tree[k].to_dataset() for k in ("chain", "ode")}
    found = aggregate(toy.tree(only, {"convergence": toy.CONVERGENCE}))
    assert summary(found).headline == ""
    assert summary(found).verdict == ""
    assert list(frame(found).columns) == list(COLUMNS)


def test_what_is_missing_stands_in_the_account() -> None:
    tree = toy.store()
    assert summary(aggregate(tree)).whole
    tree["chain"]["status"].values[0, 0, 0, :2] = 2
    tree["chain"]["status"].values[0, 0, 0, 2:5] = 0
    found = summary(aggregate(tree))
    assert not found.whole
    assert "2 diverged and 3 pending" in plain(found.account)[0]
    assert "diverged" not in plain([found.headline])[0]


def changed(tree: xr.DataTree, **values: Any) -> xr.Dataset:
    """The comparison with another outcome in its first cell."""
    data = tree["convergence"].to_dataset().copy(deep=True)
    for name, value in values.items():
        data[name] = data[name].astype(object if isinstance(value, str) else float)
        data[name][{"simulation": 0, "tau": 0, "Q0": 0}] = value
    return data


def comparisons(data: xr.Dataset) -> list[Finding]:
    return [one for one in CONVERGENCE(data) if one.verdict and one.quantity.plain == "mean Q"]


def test_a_chance_rejection_is_undecided_and_a_clear_one_differs(aggregated: xr.DataTree) -> None:
    data = aggregated["convergence"]
    level = data.attrs["level"] / data.attrs["tests"]
    near = comparisons(
        changed(aggregated, verdict="undecided", why=NEAR, p_value=level / 2, seeds_needed=60)
    )
    assert near[0].verdict == "undecided"
    assert "too close to the level to decide" in near[0].evidence
    assert near[0].seeds == 60
    assert verdict_of(near) == "undecided"
    clear = comparisons(changed(aggregated, verdict="differs", p_value=level / 1000))
    assert clear[0].verdict == "differs"
    assert verdict_of(clear) == "differs"


def test_a_comparison_stands_where_its_mean_is_farthest_from_the_limit(
    aggregated: xr.DataTree,
) -> None:
    data = aggregated["convergence"].to_dataset()
    for one in comparisons(data):
        here = data.sel(tau=one.place["tau"], Q0=one.place["Q0"]).isel(simulation=0)
        top = here.sel(n=one.place["n"])
        assert one.place["n"] == int(data["n"][-1])
        assert abs(one.off) == pytest.approx(float(top["sup_error"]))
        assert one.error == pytest.approx(float(top["sup_error_se"]))
        assert one.place["t"] == float(top["sup_time"])


def test_scatter_falls_by_the_square_root_of_n(aggregated: xr.DataTree) -> None:
    data = aggregated["convergence"].to_dataset()
    (power,) = [f for f in CONVERGENCE(data) if f.predicted == -0.5]
    assert power.value == pytest.approx(-0.5, abs=0.1)
    for value, error, verdict in (
        (0.5, 0.01, "agrees"),
        (0.5, 0.3, "undecided"),
        (0.6, 0.01, "undecided"),
    ):
        fits = {"fluctuation_exponent": value, "fluctuation_exponent_error": error}
        one = data.assign({name: data[name] * 0 + fit for name, fit in fits.items()})
        (power,) = [f for f in CONVERGENCE(one) if f.predicted == -0.5]
        assert power.verdict == verdict
    assert np.isnan(data["sup_error"]).sum() == 0


EXTREME = re.compile(
    r"is (largest|smallest)|on the grid|lies between|\bagrees with .* in (all|both) "
)


def _critical() -> xr.DataTree:
    found = bifurcation.critical().expand_dims(rho=[0.1, 0.2, 0.3, 0.4]).copy(deep=True)
    found["value"].values[:, 0] = [0.3, 0.3, 0.2, 0.25]
    found = found.assign_attrs(bifurcation.critical().attrs)
    return toy.tree({"critical": found}, {"transition": {"x": "rho"}})


STORES = {
    "escape": lambda: escapes.store(runs=40),
    "convergence and phase": toy.store,
    "steady": bifurcation.store,
    "distances": laws.store,
    "transition": _critical,
}


@pytest.mark.deep
@pytest.mark.parametrize("name", STORES)
def test_extremes_are_of_the_points_that_are_done_where_others_are_missing(name: str) -> None:
    tree = STORES[name]()
    whole = _sentences(aggregate(tree))
    every = [node["status"].values for node in tree.children.values()]
    every[0].flat[0] = PENDING
    done, total = sum(int((one == DONE).sum()) for one in every), sum(one.size for one in every)
    part = _sentences(aggregate(tree))
    clause = f"among the {count(done)} of {count(total)} points that are done"
    for said, has in ((whole, False), (part, True)):
        extreme = [text for text in said if EXTREME.search(text)]
        assert extreme
        assert not [text for text in extreme if (clause in text) != has]


def _sentences(found: xr.DataTree) -> list[str]:
    """Every sentence on findings of an aggregate."""
    with about(found):
        several = summary(found).findings.values()
        return plain([sentence(group) for some in several for group in grouped(some)])


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
    assert "is 0.0591302" in headline(found)
