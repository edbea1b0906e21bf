"""Means along a swept parameter beside theory: intervals, predictions, what is drawn and said."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from hdica.analysis.dependence.compute import dependence as compute
from hdica.analysis.dependence.figure import dependence as drawn
from hdica.analysis.dependence.peak import peaks
from hdica.analysis.dependence.record import Dependence
from hdica.analysis.dependence.say import dependence as say
from hdica.analysis.show.choose import at_last_n
from hdica.analysis.show.panel import Line, Points
from hdica.status import FAILED
from tests.analysis import powers, toy

SIGMA = 0.5
MEAN = np.exp(SIGMA**2 / 2)
"""Mean of a log-normal factor of median 1."""


def found(groups: dict[str, xr.Dataset] | None = None, **asked: Any) -> xr.Dataset:
    given = {"theory": "bounds", **asked}
    own = {
        "training": powers.training(np.random.default_rng(7), 64, SIGMA),
        "bounds": powers.theory(3.0 * MEAN),
    }
    settings = Dependence(**{**powers.ALONG, **given})
    return compute(toy.tree({**own, **(groups or {})}, {}), settings)


def test_means_have_student_intervals_over_seeds_and_a_difference_to_theory():
    data = found()
    runs = powers.training(np.random.default_rng(7), 64, SIGMA)["tan2"]
    here = data.sel(simulation="training", output="tan2")
    np.testing.assert_allclose(here["mean"], runs.mean("seed"))
    np.testing.assert_allclose(here["se"], runs.std("seed", ddof=1) / 8)
    np.testing.assert_allclose((here["high"] - here["mean"]) / here["se"], 1.998, atol=1e-3)
    np.testing.assert_allclose(here["difference"], here["mean"] - powers.law() * MEAN)
    assert (here["seeds"] == 64).all()


def test_intervals_cover_the_truth_as_often_as_they_say():
    hits = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        data = found({"training": powers.training(rng, 12, 0.1)}, theory=None)
        truth = powers.law() * np.exp(0.1**2 / 2)
        here = data.sel(simulation="training", output="tan2")
        hits.append((here["low"].values <= truth) & (truth <= here["high"].values))
    share = np.mean(hits)
    assert abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05 / np.size(hits))


def test_failed_runs_are_left_out_counted_and_said():
    data = powers.training(np.random.default_rng(1), 8, SIGMA)
    data["status"][0, 0, :7] = FAILED
    out = found({"training": data})
    here = out.sel(simulation="training", output="tan2").isel(d=0, T=0)
    assert int(here["seeds"]) == 1
    assert np.isnan(float(here["se"]))
    assert int(here["diverged"]) == 7
    assert "7 runs diverged or failed and are missing." in say(out)


def test_further_outputs_have_panels_and_theories_of_their_own():
    data = powers.training(np.random.default_rng(7), 16, SIGMA)
    data = data.assign(half=data["tan2"] / 2)
    theory = powers.theory(3.0 * MEAN)
    theory = theory.assign(below=theory["tan2"] / 2)
    out = found({"training": data, "bounds": theory}, beside="half", predicted=["tan2", "below"])
    np.testing.assert_allclose(
        out["difference"].sel(output="half"), out["difference"].sel(output="tan2") / 2
    )
    assert [panel.key for panel in drawn(out)] == [
        "dependence_tan2", "dependence_difference_tan2",
        "dependence_half", "dependence_difference_half",
    ]  # fmt: skip


def test_titles_begin_with_a_capital_letter_unless_with_a_symbol():
    data = powers.training(np.random.default_rng(7), 16, SIGMA)
    data = data.assign(correlation=data["tan2"])
    out = found({"training": data}, beside="correlation", predicted=["tan2", "tan2"])
    assert [panel.title.plain.split(" against")[0] for panel in drawn(out)[::2]] == [
        "tan² ∠",
        "Correlation",
    ]


def test_a_theory_that_all_curves_share_has_the_colour_of_none():
    def colours(theory: xr.Dataset) -> list[str]:
        panel = drawn(found({"bounds": theory}))[0]
        return [item.color for item in panel.items if isinstance(item, Line)]

    theory = powers.theory(3.0 * MEAN)
    assert len(set(colours(theory)) - {"ink"}) == len(powers.D) > 1
    law = theory["tan2"]
    shared = law.isel(d=0, drop=True).broadcast_like(law).transpose(*law.dims)
    assert colours(theory.assign(tan2=shared)) == ["ink"]


def test_what_is_drawn_is_what_was_computed():
    data = found(levels={"chance": 0.25})
    panel, difference = drawn(data)
    points = [item for item in panel.items if isinstance(item, Points)]
    lines = [item for item in panel.items if isinstance(item, Line)]
    assert len(points) == len(powers.D)
    assert len(lines) == len(powers.D) + 1
    assert panel.log_x
    assert panel.log_y
    np.testing.assert_allclose(points[0].y, data["mean"].isel(d=0).values.ravel())
    np.testing.assert_allclose(points[0].x, powers.T)
    level = next(line for line in lines if line.label.plain == "chance")
    np.testing.assert_allclose(level.y, 0.25)
    assert not difference.log_y


def test_it_says_in_how_many_cells_theory_is_right_and_where_it_is_wrong():
    right = say(found())[-1]
    hits = re.search(r"lies in (\d+) of 12 95 % intervals", right)
    assert hits is not None
    assert int(hits[1]) >= 9
    wrong = say(found({"bounds": powers.theory(30.0)}))[-1]
    assert "lies in 0 of 12" in wrong
    alone = found(theory=None)
    (first,) = say(alone)
    means = [alone["mean"].isel(T=i) for i in (0, -1)]
    ends = [f"{float(end):.2f}" for mean in means for end in (mean.min(), mean.max())]
    assert ends[0] in first
    assert ends[1] in first
    two = say(alone.isel(d=[0, 1]))
    assert len(two) == 2
    assert "d = 20: mean" in re.sub("<.*?>", "", two[1])


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"theory": None, "predicted": "tan2"}, "theory is missing"),
        ({"beside": ["tan2"]}, "an output twice"),
        ({"predicted": ["a", "b"]}, "predicted has 2 outputs, not one or 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(asked, why):
    with pytest.raises(ValidationError, match=why):
        Dependence(**{**powers.ALONG, "theory": "bounds", **asked})


def test_without_a_parameter_it_takes_the_one_with_most_values():
    assert found(over=None).attrs["over"] == "d"
    alone = powers.training(np.random.default_rng(7), 8, SIGMA).isel(d=[0], T=[0])
    asked = Dependence(**{**powers.ALONG, "over": None})
    assert compute(toy.tree({"training": alone}, {}), asked) is None


@pytest.mark.parametrize(
    ("shift", "error", "said"),
    [
        (0, 0.1, "; within errors it is largest where the prediction is, at "),
        (1, 1.0, "; within errors it is largest where the prediction is, at "),
        (1, 0.1, "; within errors it is largest where the prediction is in 0 of 3 curves"),
        (None, 0.1, ""),
    ],
)
def test_a_maximum_of_the_prediction_is_told_where_the_means_have_it(
    shift: int | None, error: float, said: str
) -> None:
    data = at_last_n(found()).sel(output="tan2").isel(d=slice(3))
    over = str(data.attrs["over"])
    at = xr.DataArray(np.arange(data.sizes[over]), coords={over: data[over]})
    top = data.sizes[over] // 2
    # A prediction that rises all along has no maximum inside.
    law = -np.abs(at - top) if shift is not None else at
    mean = -np.abs(at - top - (shift or 0))
    data["predicted"] = law.astype(float).broadcast_like(data["mean"])
    data["mean"] = mean.astype(float).broadcast_like(data["mean"])
    data["se"] = xr.full_like(data["mean"], error)
    clause = peaks(data)
    assert clause.startswith(said) if said.endswith("at ") else clause == said
    if said.endswith("at "):
        assert clause.count(f"{data[over].values[top]:g}") == data.sizes["d"]
