import json

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from hdica.analysis.phase.figure import findings
from hdica.errors import HdicaError
from tests.analysis import toy

flow = toy.computed("flow")
phase = toy.computed("phase")

TAUS = [0.01, 0.03, 0.05, 0.07]
STARTS = [round(0.05 * k, 2) for k in range(1, 20)]
TIMES = [0.0, 10.0, 20.0]


@pytest.fixture(scope="module")
def tree():
    chain = toy.finite("chain", TAUS, STARTS, [200], 16, TIMES, 0.3)
    groups = {"chain": chain, "ode": toy.ode(TAUS, STARTS, TIMES, 0.3), **toy.flow_groups(TAUS)}
    return toy.tree(groups, {"phase": toy.PHASE})


@pytest.fixture(scope="module")
def found(tree):
    return phase(tree, toy.PHASE)


@pytest.mark.deep
def test_overlap_and_wilson_intervals(tree, found):
    q = np.abs(tree["chain"]["Q"].values[..., -1])
    assert found["overlap"].values == pytest.approx(q.mean(axis=-1))
    k = (q > 0.5).sum(axis=-1)
    assert (found["successes"].values == k).all()
    for index in [(0, 2, 0), (1, 6, 0), (3, 0, 0)]:
        ci = stats.binomtest(int(k[index]), 16).proportion_ci(0.95, method="wilson")
        assert found["probability_low"].values[index] == pytest.approx(ci.low)
        assert found["probability_high"].values[index] == pytest.approx(ci.high)


def test_boundary_and_critical_value_are_the_theory(found):
    known = [toy.roots(t)[1] for t in TAUS[:3]]
    assert found["boundary"].values[:3] == pytest.approx(known)
    assert np.isnan(found["boundary"].values[3])
    assert float(found["critical_value"][0]) == toy.TAU_C


def test_each_source_has_its_critical_value_in_the_first_sentence(found):
    one, source = found["critical_value"], xr.Variable("source", ["uniform", "laplace"])
    both = found.assign(critical_value=xr.concat([one, 2 * one], source))
    values = {one.place["source"]: one.value for one in findings(both)[:2]}
    assert values == {"uniform": toy.TAU_C, "laplace": 2 * toy.TAU_C}
    assert findings(found)[0].place == {}
    assert findings(found)[0].value == toy.TAU_C


def test_half_success_lies_at_the_boundary(found):
    z = (found["threshold"].isel(n=0) - found["boundary"]) / found["threshold_se"].isel(n=0)
    assert np.abs(z.values[:3]).max() < 4
    assert 0.002 < float(found["threshold_se"].isel(n=0, tau=0)) < 0.04
    assert np.isnan(found["threshold"].values[3]).all()


def test_most_cells_agree_with_the_limit(found):
    assert float(found["agreement_share"][0]) > 0.9
    side = found["limit"] > 0.5
    assert (found["limit_success"] == side).all()


def test_pending_cells_are_not_failures(tree):
    part = tree.copy(deep=True)
    part["chain"]["status"].values[0, 0] = 0
    cell = phase(part, toy.PHASE).isel(tau=0, Q0=0, n=0)
    assert int(cell["trials"]) == 0
    for name in ("probability", "probability_low", "overlap", "agreement"):
        assert np.isnan(float(cell[name]))


def test_without_theory_or_limit(tree):
    bare = toy.tree({"chain": tree["chain"].to_dataset()}, {})
    found = phase(bare, {"simulation": "chain", "x": "tau", "y": "Q0", "limit": None})
    assert "boundary" not in found
    assert "agreement" not in found
    assert found.attrs["success"] == 0.5


def test_an_axis_that_is_not_swept_is_refused(tree):
    with pytest.raises(HdicaError, match="'rho' is not a swept parameter"):
        phase(tree, toy.PHASE | {"x": "rho"})


def test_flow_has_its_zeros_at_the_fixed_points(tree):
    found = flow(tree, toy.FLOW)
    for tau in TAUS:
        here = found.sel(tau=tau)
        at = here["fixed_q"].dropna("fixed_point").values
        assert np.sqrt(at) == pytest.approx(toy.roots(tau))
        assert np.interp(at, found["q"], here["drift"]) == pytest.approx(0, abs=0.2)
    assert found.sel(tau=0.03)["stable"].values[:3].tolist() == [1.0, 0.0, 1.0]


def test_only_folds_bound_learning(tree):
    kinds = tree.copy(deep=True)
    critical = kinds["critical"].to_dataset()
    critical["value"].values[1] = 0.2
    kinds["critical"] = critical.assign(kind=("transition", [0.0, 2.0, np.nan, np.nan]))
    values = phase(kinds, toy.PHASE)["critical_value"].values
    assert values[np.isfinite(values)].tolist() == [toy.TAU_C]


def test_where_theory_cannot_be_computed_the_diagram_has_none(tree):
    bare = tree.drop_nodes([name for name in tree.children if name not in ("chain", "ode")])
    content = {**json.loads(bare.attrs["study_yaml"]), "system": "OnlineICA"}
    content |= {"parameters": {"nothing_of_this_name": 1}, "grid": {"tau": TAUS, "Q0": STARTS}}
    bare.attrs |= {"system": "OnlineICA", "study_yaml": json.dumps(content)}
    found = phase(bare, toy.PHASE)
    assert "boundary" not in found
    assert "critical_value" not in found
    assert found["trials"].sum() == tree["chain"]["Q"].isel(time=-1).size


def boundaries(off, error, noise="own"):
    """Boundaries at five step sizes, off by so many controls, with one error."""
    rng, five = np.random.default_rng(3), np.arange(1.0, 6.0)
    measured = 0.5 + error * 0.05 * rng.standard_normal(5)
    cells = np.full((5, 2), 9)
    variables = {"trials": cells, "probability": cells * 0 + [0.0, 1.0], "decaying": cells * 0}
    curves = {"threshold": measured, "threshold_se": np.full(5, error * 0.05)}
    curves["boundary"] = 0.5 - 0.05 * np.array(off)
    data = {k: (("rate", "Q0"), v) for k, v in variables.items()}
    data |= {k: (("rate",), v) for k, v in curves.items()}
    about = {"x": "rate", "y": "Q0", "variable": "Q", "divides": 1, "noise": noise, "time": 1.0}
    return xr.Dataset(data, {"rate": five, "Q0": [0.1, 0.9]}, about)


def offsets(data):
    return [one for one in findings(data) if "from theory" in one.quantity.plain]


@pytest.mark.parametrize(
    ("off", "error", "verdict"),
    [
        ([0, 0, 0, 0, 0], 0.1, "agrees"),
        ([0, 0, 0, 0, 0], 1.0, "undecided"),
        ([2, 0, 0, 0, 0], 0.1, "differs"),
        ([1, -1, 1, -1, 0], 0.1, "differs"),  # whose mean is nothing
        ([0.75, 0.75, 0.75, 0.75, 0.75], 0.3, "differs"),
    ],
)
def test_a_boundary_agrees_where_each_of_its_points_rejects_its_control(off, error, verdict):
    (one,) = offsets(boundaries(off, error))
    assert one.verdict == verdict
    assert (one.seeds > 9) if verdict == "undecided" else np.isnan(one.seeds)


@pytest.mark.parametrize(("spacing", "helps"), [(0.04, False), (0.01, True)])
def test_seeds_are_asked_for_only_where_they_would_decide(spacing, helps):
    """Of an error of 0.05 the spacing of the starts leaves a part however many runs there are."""
    data = boundaries([0, 0, 0, 0, 0], 1.0).assign(threshold_spacing=("rate", np.full(5, spacing)))
    (one,) = offsets(data)
    assert one.verdict == "undecided"
    assert np.isfinite(one.seeds) == helps
    assert ("starts that are closer together" in one.evidence) != helps


def test_the_spacing_of_the_starts_is_part_of_the_error(found):
    part, whole = found["threshold_spacing"], found["threshold_se"]
    assert not (part > whole).any()
    assert (part.notnull() == whole.notnull()).all()
    assert 0 < float(part.max()) <= np.diff(STARTS).max()


def test_runs_without_an_error_decide_nothing():
    (one,) = offsets(boundaries([0] * 5, np.nan).assign(threshold=("rate", np.full(5, 0.5))))
    assert (one.verdict, one.evidence) == ("undecided", "one run has no error")


def test_every_value_of_a_further_parameter_is_judged():
    parts = [boundaries(off, 0.1) for off in ([5] * 5, [0] * 5)]
    both = xr.concat(parts, xr.DataArray([1.0, 2.0], dims="phi", name="phi"))
    found = offsets(both.assign_attrs(parts[0].attrs))
    assert [(one.place["phi"], one.verdict) for one in found] == [(1.0, "differs"), (2.0, "agrees")]
    starts = [one for one in findings(both) if one.quantity.plain.endswith("with even odds")]
    assert len(starts) == 10


def test_the_start_with_even_odds_of_one_run_a_point_has_no_error():
    one = toy.finite("chain", TAUS, STARTS, [200], 1, TIMES, 0.3)
    asked = {name: value for name, value in toy.PHASE.items() if name != "limit"}
    alone = phase(toy.tree({"chain": one, **toy.flow_groups(TAUS)}, {}), asked)
    assert bool(alone["threshold"].notnull().any())
    assert bool(alone["threshold_se"].isnull().all())
