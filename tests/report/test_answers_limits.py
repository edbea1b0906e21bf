"""Answers about limits and laws that are known: the figure, its verdict, and how they change."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.dependence.answer import answer as dependence
from hdica.analysis.flow.answer import answer as flow
from hdica.analysis.registry import analyses
from hdica.analysis.show.answer import Answer
from hdica.errors import HdicaError
from hdica.status import PENDING
from tests.analysis import bifurcation, galleries, laws, papers, spheres, toy
from tests.report.shown import plain


def answered(tree: xr.DataTree, name: str) -> Answer | None:
    """The answer of one analysis of a store."""
    found: Answer | None = analyses()[name].answer(aggregate(tree)[name].to_dataset())
    return found


def text(found: Answer | None) -> str:
    assert found is not None
    return plain([found.html])[0]


def read(pattern: str, answer: Answer | None) -> list[float]:
    """Numbers of an answer."""
    match = re.search(pattern, text(answer))
    assert match is not None
    return [float(one) for one in match.groups()]


@pytest.fixture(scope="module")
def right() -> xr.DataTree:
    return laws.store()


@pytest.fixture(scope="module")
def wrong() -> xr.DataTree:
    return laws.store(factor=1.05)


def test_the_density_follows_its_limit_or_not(right: xr.DataTree, wrong: xr.DataTree) -> None:
    good, bad = answered(right, "distances"), answered(wrong, "distances")
    # The law of the group of 0 moves with no drift: no control of it is ever rejected.
    assert (good.verdict, bad.verdict) == ("undecided", "differs")
    power = float(re.search(r"falls as n−([\d.]+) ±", text(good))[1])
    assert power == pytest.approx(0.5, abs=0.1)
    assert "(0.85 to 1 times that of as many independent draws)" in text(good)
    assert "differs from the limit in 1 of 4 comparisons" in text(bad)
    few = answered(laws.store(seeds=3), "distances")
    assert few.verdict == "undecided"
    assert "is open: none of 4 comparisons decides" in text(few)


def test_the_share_that_is_misclassified_has_its_error(
    right: xr.DataTree, wrong: xr.DataTree
) -> None:
    good, bad = answered(right, "support"), answered(wrong, "support")
    # At the first time 24 seeds do not reject what is wrong by 2 %.
    assert (good.verdict, bad.verdict) == ("undecided", "differs")
    limit, value, error = read(r"misclassifies ([\d.]+) % .* and ([\d.]+) ± ([\d.]+) %", good)
    assert abs(value - limit) < 4 * error
    value, error = read(r"and ([\d.]+) ± ([\d.]+) %", bad)
    assert abs(value - limit) > 4 * error


def test_the_mean_entry_stands_beside_the_limits(right: xr.DataTree, wrong: xr.DataTree) -> None:
    pattern = r"is ([\d.]+) ± ([\d.]+) \(limit ([\d.]+)\)"
    value, error, limit = read(pattern, answered(right, "densities"))
    assert limit == pytest.approx(2 * float(laws.center(3.0)), rel=1e-2)
    assert abs(value - limit) < 4 * error
    value, error, limit = read(pattern, answered(wrong, "densities"))
    assert value / limit == pytest.approx(1.05, abs=0.01)


def test_one_seed_and_no_seed_of_densities(right: xr.DataTree) -> None:
    one = right["vector"].to_dataset().isel(seed=[0])
    groups = {"vector": one, "pde": right["pde"].to_dataset()}
    asked = {"densities": {"simulation": "vector", "limit": "pde"}}
    assert "±" not in text(answered(toy.tree(groups, asked), "densities"))
    alone = answered(toy.tree(groups, {"densities": {"limit": "pde"}}), "densities")
    assert "in the limit" in text(alone)
    nothing = right.copy(deep=True)
    for name in ("density", "cdf"):
        nothing["pde"][name].values[...] = np.nan
    assert answered(nothing, "densities") is None


def test_where_the_potential_is_not_convex() -> None:
    said = text(answered(laws.store(), "potential"))
    assert "not convex at t = 0 … 0.5 (2 of 4 output times)" in said
    tree = laws.store()
    tree["pde"]["convex"].values[...] = 1.0
    assert "not convex" not in text(answered(tree, "potential"))


def test_where_the_potential_is_least_and_how_far_from_the_feature() -> None:
    # m(3) = 0.7 (1 - exp(-3)), and the minimum of (x - 2 m)^2 + |x|/2 is at 2 m - 1/4.
    said = text(answered(laws.store(), "potential"))
    assert "at t = 3 at x = 0 for ξ = 0 (not shifted) and at x = 1.08 for ξ = 2" in said
    assert "shifted by −0.92, 46 % of ξ" in said
    tree = laws.store()
    tree["pde"]["potential"].values[...] = -laws.X
    assert "minimum" not in text(answered(tree, "potential"))


def test_methods_side_by_side_have_errors(right: xr.DataTree, wrong: xr.DataTree) -> None:
    pattern = r"is ([\d.]+) ± ([\d.]+) \(limit ([\d.]+)\)"
    for tree, agrees in ((right, True), (wrong, False)):
        value, error, limit = read(pattern, answered(tree, "compare"))
        assert (abs(value - limit) < 4 * error) == agrees


def test_the_fold_is_told_with_its_kind_and_where_runs_end() -> None:
    found = answered(bifurcation.store(), "steady")
    assert f"ωc = {bifurcation.FOLD:g}, a fold with |Q| = 0.5" in text(found)
    assert found.verdict == "agrees"
    off = bifurcation.store()
    off["vector"]["Q"].values[..., -1] = 0.77
    lost = answered(off, "steady")
    assert lost.verdict == "undecided"
    assert "4 of 10 simulated means" in text(lost)
    off["vector"]["status"].values[...] = PENDING
    assert answered(off, "steady").verdict == ""


def test_the_critical_value_over_a_parameter() -> None:
    at = [0.1, 0.2, 0.3]
    swept = bifurcation.critical().expand_dims(rho=at).copy(deep=True)
    swept["value"].values[:, 0] = [0.3, 0.2, 0.25]
    swept = swept.assign_attrs(bifurcation.critical().attrs)
    asked = {"transition": {"x": "rho"}}
    said = text(answered(toy.tree({"critical": swept}, asked), "transition"))
    assert "is least, 0.2, at ρ = 0.2" in said
    swept["value"].values[:, 0] = [0.2, 0.3, 0.4]
    rising = text(answered(toy.tree({"critical": swept}, asked), "transition"))
    assert "rises from 0.2 at ρ = 0.1 to 0.4 at ρ = 0.3" in rising
    swept["value"].values[...] = np.nan
    assert answered(toy.tree({"critical": swept}, asked), "transition") is None


def _states(q: list[float]) -> xr.Dataset:
    data = {"fixed_q": (("tau", "fixed_point"), np.array(q)[:, None])}
    data["stable"] = (("tau", "fixed_point"), np.ones((len(q), 1)))
    return xr.Dataset(data, {"tau": [0.1 * (k + 1) for k in range(len(q))]})


def test_up_to_where_the_flow_has_an_informative_state() -> None:
    assert "up to τ = 0.2, where q = 0.7, and none from τ = 0.3 on" in text(
        flow(_states([0.9, 0.7, 0.0]))
    )
    assert "from τ = 0.2, where q = 0.7, and none up to τ = 0.1" in text(
        flow(_states([0.0, 0.7, 0.9]))
    )
    assert "nothing is learned" in text(flow(_states([0.0, 0.0])))
    assert text(flow(_states([0.9]))).endswith("at τ = 0.1, q = 0.9.")


def test_a_landscape_is_counted_and_what_is_missing_shows() -> None:
    said = text(answered(spheres.store(), "sphere"))
    assert "80 critical points, as many as 3d − 1: 8 minimisers, 16 maximisers" in said
    assert said.endswith("the minimisers and no others lie on the axes.")
    fewer = text(answered(spheres.store(1), "sphere"))
    assert "79 critical points: 8 minimisers, 15 maximisers" in fewer


def test_medians_of_pictures_stand_beside_chance() -> None:
    tree = galleries.store()
    said = text(answered(tree, "pictures"))
    data = aggregate(tree)["pictures"].to_dataset()
    median = float(data["by"].sel(quartile=0.5).isel(breadth=0))
    chance = float(data["against"].sel(quartile=0.5).isel(breadth=0))
    assert f"is {median:.3g} [middle half" in said
    assert f"chance is {chance:.3g} [middle half" in said


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    papers.file(tmp_path / "reference" / "toy.yaml")
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))


def test_numbers_of_a_paper_are_counted_by_origin(numbers: None) -> None:
    found = answered(papers.store(), "printed")
    assert found.verdict == "differs"
    assert "3 of 4 numbers of" in text(found)
    asked = {"rounded": papers.ASKED["rounded"]}
    one = answered(papers.store(numbers=asked), "printed")
    assert one.verdict == "agrees"
    assert text(one).startswith("The one number of")
    assert "agrees with ours (to within 2.4 %)" in text(one)
    apart = answered(papers.store(numbers={"far_limit": papers.ASKED["far_limit"]}), "printed")
    assert apart.verdict == "differs"
    assert "found apart from this code" in text(apart)


def _sides(difference: float, seeds: int = 20) -> xr.Dataset:
    """Means at two spaces over x, with standard errors of 0.01."""
    dims = ("output", "simulation", "space", "x")
    mean = np.full((1, 1, 2, 3), 0.5)
    mean[0, 0, 1] += difference
    nothing = np.full(mean.shape, np.nan)
    data = {"mean": mean, "se": np.full(mean.shape, 0.01), "predicted": nothing}
    data |= {"difference": nothing, "seeds": np.full(mean.shape, seeds)}
    coords = {
        "output": ["R"],
        "simulation": ["runs"],
        "space": ["all", "few"],
        "x": [1.0, 2.0, 3.0],
    }
    attrs = {"over": "x", "variable": "R"}
    return xr.Dataset({k: (dims, v) for k, v in data.items()}, coords, attrs)


def test_two_sides_are_compared_where_nothing_is_predicted() -> None:
    more = text(dependence(_sides(0.2)))
    assert "is larger for few than for all at all 3 points, by 0.200 ± 0.014" in more
    assert "is smaller for few than for all" in text(dependence(_sides(-0.2)))
    assert "alike within errors" in text(dependence(_sides(0.02)))
    # With three seeds a difference of as many errors may be chance.
    assert "alike within errors" in text(dependence(_sides(0.08, seeds=3)))
    assert "is larger" in text(dependence(_sides(0.08)))


def test_pending_points_are_none_at_which_nothing_is_learned() -> None:
    tree = toy.tree({"fixed_points": bifurcation.fixed_points()}, {})
    tree["fixed_points"]["stable"].values[...] = 0.0
    assert "learning" in aggregate(tree)
    tree["fixed_points"]["status"].values[...] = PENDING
    assert "learning" not in aggregate(tree)


def test_no_output_time_is_refused_in_a_sentence() -> None:
    import hdica

    system = hdica.OnlineICA(tau=0.05, start={"overlap": 0.5})
    for over in (None, {"tau": [0.1]}):
        with pytest.raises(HdicaError, match="times is an empty list"):
            hdica.limit(system, times=[], over=over)
        with pytest.raises(HdicaError, match="times is an empty list"):
            hdica.simulate(system, times=[], n=[100], seeds=2, over=over)
