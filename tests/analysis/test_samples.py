"""Samples that are enough: of known laws, of runs that end too early, and by a wrong theory."""

import numpy as np
import pytest

from hdica.analysis.escape.samples import findings, panels
from hdica.analysis.registry import settings_classes
from hdica.errors import HdicaError
from hdica.show.panel import Line, Points
from tests.analysis import escapes, toy
from tests.analysis.escapes import ENOUGH, LADDER, NUS, mean

CHANCES = (0.95, 0.5)
samples = toy.computed("samples")


def of(**settings):
    return samples(escapes.store(**settings), ENOUGH)


@pytest.fixture(scope="module")
def many():
    """Two thousand runs a cell, all of which escape."""
    return of(runs=2000, end=1e9)


def test_enough_are_the_quantiles_of_the_law(many):
    for k, p in enumerate(CHANCES):
        known = [[-np.log1p(-p) * mean(nu, n) for n in LADDER] for nu in NUS]
        assert many["needed"].isel(probability=k).values == pytest.approx(np.array(known), rel=2e-3)
        limit = [-np.log1p(-p) * mean(nu) for nu in NUS]
        assert many["limit"].isel(probability=k).values == pytest.approx(np.array(limit), rel=2e-3)


def test_runs_of_the_law_agree_and_their_intervals_cover(many):
    assert (many["verdict"] == "agrees").all()
    assert many["share"].values == pytest.approx(
        np.broadcast_to(CHANCES, many["share"].shape), abs=0.05
    )
    inside = (many["measured_low"] <= many["needed"]) & (many["needed"] <= many["measured_high"])
    assert inside.mean() > 0.8  # 95 % intervals, 16 of 8 independent cells


@pytest.mark.parametrize("error", [0.8, 1.25])
def test_a_theory_with_a_fifth_too_many_or_too_few_samples_differs(error):
    assert (of(runs=2000, end=1e9, error=error)["verdict"] == "differs").any()
    assert not (of(runs=2000, end=1e9, error=error)["verdict"] == "agrees").any()


def test_few_runs_decide_nothing():
    found = of(runs=12, end=1e9)
    assert (found["verdict"] == "undecided").all()
    assert (found["seeds_needed"] > 12).all()


def test_where_runs_end_before_the_share_is_not_known():
    found = of(runs=400, end=2.0)
    late = found["needed"] > 2.0
    assert late.any()
    assert found["share"].where(late, drop=True).isnull().sum() >= late.sum() - 1
    assert (found["verdict"].values[late.values] == "undecided").all()
    assert np.isinf(found["measured"].values[found["needed"].values > 4.0]).all()
    assert any("some runs ended before" in one.evidence for one in findings(found))


def test_theory_of_another_n_decides_nothing_and_says_so():
    tree = escapes.store(runs=400, end=1e9)
    theory = tree["escape_diffusion"].to_dataset().assign_coords(n=[300, 400])
    tree["escape_diffusion"] = tree["escape_diffusion"].from_dict({"/": theory})
    found = samples(tree, ENOUGH)
    assert (found["verdict"] == "undecided").all()
    first = findings(found)[0]
    assert (first.verdict, first.evidence) == ("undecided", "theory has no law at this point and n")
    assert first.value > 0


def test_the_first_finding_is_of_the_probability_that_is_asked_for_first(many):
    first = findings(many.sel(nu=[1.0]))[0]
    assert first.place == {"nu": 1.0, "n": LADDER[-1]}
    assert first.value == pytest.approx(-np.log(0.05) * mean(1.0, LADDER[-1]) * 200**3, rel=0.1)
    assert first.low < first.value < first.high
    assert "enough with probability 0.95" in first.quantity.plain
    assert "samples wrong by 20 % are rejected" in first.evidence


def test_a_panel_has_runs_and_theory_for_every_probability(many):
    (panel,) = panels(many.sel(nu=[1.0]))
    marks = [one for one in panel.items if isinstance(one, Points)]
    lines = [one for one in panel.items if isinstance(one, Line)]
    assert (len(marks), len(lines)) == (2, 4)


@pytest.mark.parametrize("given", [[0.5, 0.5], [0], [1.0], ["half"], 2])
def test_a_probability_is_between_0_and_1_and_there_once(given):
    with pytest.raises((HdicaError, ValueError), match="probabilities"):
        settings_classes()["samples"].model_validate({**ENOUGH, "probabilities": given})
