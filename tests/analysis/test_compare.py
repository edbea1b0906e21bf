"""Where trajectories side by side end: means beside their limits, the largest of words first."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate, summary
from hdica.analysis.trajectories.methods import compare_findings as findings
from hdica.show.finding import Form
from tests.analysis import toy

RULES = ["soft", "hard", "none", "log"]
MEANS = np.array([0.85, 0.91, 0.70, 0.88])


def data(dim="regularizer", values=RULES, means=MEANS):
    k = len(values)
    path = np.stack([np.zeros(k), np.asarray(means[:k])], axis=-1)[None]
    return xr.Dataset(
        {
            "mean": (("simulation", dim, "time"), path),
            "se": (("simulation", dim, "time"), np.full(path.shape, 0.003)),
            "largest_n": (("simulation", dim), np.full((1, k), 2000.0)),
            "limit_mean": (("limit", dim, "time"), path + 0.001),
        },
        {"simulation": ["vector"], "limit": ["pde"], dim: values, "time": [0.0, 10.0]},
        {"variable": "Q"},
    )


@pytest.mark.parametrize(
    ("means", "best", "second"), [(MEANS, "hard", 0.88), (MEANS[::-1], "none", 0.88)]
)
def test_the_best_of_several_words_is_first_with_its_lead(means, best, second):
    if best == "none":
        means, second = np.where(np.array(RULES) == "none", 0.95, MEANS), 0.91
    largest, lead, *every = findings(data(means=means))
    assert largest.form is Form.LARGEST
    assert largest.place == {"regularizer": best, "n": 2000, "t": 10.0}
    assert (largest.value, largest.error) == (means.max(), 0.003)
    assert lead.value == pytest.approx(means.max() - second)
    assert lead.error == pytest.approx(0.003 * 2**0.5)
    assert [one.value for one in every] == means.tolist()


@pytest.mark.parametrize(
    ("dim", "values"), [("regularizer", ["a", "b"]), ("tau", [0.1, 0.2, 0.3, 0.4])]
)
def test_two_words_and_numbers_are_not_ranked(dim, values):
    found = findings(data(dim, values))
    assert [one.place[dim] for one in found] == values
    assert {one.form for one in found} == {Form.VALUE}
    assert found[0].predicted == pytest.approx(0.851)
    # Nothing is judged: that the limit stands beside a mean does not say that they agree.
    assert not any(one.verdict for one in found)


def test_what_is_not_swept_is_no_part_of_a_place():
    found = findings(data("tau", [0.1, 0.2]).expand_dims(projection=[0]))
    assert [set(one.place) for one in found] == [{"tau", "n", "t"}] * 2


def test_the_simulation_with_the_largest_n_is_compared():
    small = data("tau", [0.1, 0.2]).assign(largest_n=lambda one: one["largest_n"] / 10)
    small = small.drop_vars("limit_mean").assign_coords(simulation=["chain"])
    both = xr.concat([data("tau", [0.1, 0.2]), small], "simulation", data_vars="minimal")
    assert {one.place["simulation"] for one in findings(both)} == {"vector"}
    assert {one.place["n"] for one in findings(both)} == {2000}


@pytest.mark.parametrize(("error", "verdict"), [(0.0, "undecided"), (0.2, "differs")])
def test_what_stands_side_by_side_is_judged_by_another_analysis(error: float, verdict: str) -> None:
    shown = {"curves": ["chain", "ode"], "variable": "Q"}
    groups = {k: v.to_dataset() for k, v in toy.store(error).children.items()}
    both = aggregate(toy.tree(groups, {"compare": shown, "convergence": toy.CONVERGENCE}))
    alone = summary(both.drop_nodes("convergence"))
    assert alone.verdict == ""
    study = json.loads(both.attrs["study_yaml"])
    asked = {**study, "question": {"text": "Where?", "analysis": "compare"}}
    both.attrs["study_yaml"] = json.dumps(asked)
    found = summary(both)
    assert found.headline.startswith(f"{alone.headline.removesuffix('.')}; ")
    assert found.verdict == verdict


def test_one_value_is_not_stated_twice_before_it_is_judged() -> None:
    shown = {"curves": ["chain", "ode"], "variable": "Q"}
    point = {"tau": [0], "Q0": [0]}
    groups = {
        k: v.to_dataset().isel(point, missing_dims="ignore")
        for k, v in toy.store(0.2).children.items()
    }
    both = toy.tree(groups, {"compare": shown, "convergence": toy.CONVERGENCE})
    study = json.loads(both.attrs["study_yaml"])
    both.attrs["study_yaml"] = json.dumps({**study, "question": {"analysis": "compare"}})
    headline = summary(aggregate(both)).headline
    assert headline.count("ean <i>Q</i>") == 1
    assert "differs from the limit" in headline
