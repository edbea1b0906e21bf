import numpy as np
import pytest
import xarray as xr

from hdica.analysis.steady.answer import answer
from hdica.analysis.steady.branches import branches_of
from hdica.analysis.steady.say import steady as say
from hdica.errors import HdicaError
from tests.analysis import bifurcation, toy
from tests.analysis.bifurcation import FOLD, PITCHFORK, STEADY

steady = toy.computed("steady")
transition = toy.computed("transition")


@pytest.fixture(scope="module")
def found(bifurcation_store):
    return steady(bifurcation_store, STEADY)


@pytest.fixture(scope="module")
def branches():
    data = bifurcation.branches()
    return branches_of(*(data[k].values for k in ("value", "Q", "stable", "kind", "branch")))


def test_pieces_have_one_style_each_and_leave_no_gap(branches):
    pieces = branches.pieces()
    assert [(stable, kind) for _, stable, kind in pieces] == [
        (True, 2), (False, 1), (False, 0), (True, 0),
    ]  # fmt: skip
    for before, after in ((0, 1), (2, 3)):
        assert pieces[before][0][-1] == pieces[after][0][0]
    assert pieces[1][0][-1] != pieces[2][0][0]  # another branch


def test_stable_states_lie_on_the_curves(branches):
    states = branches.stable_at(0.4)
    assert [kind for _, kind in states] == [2.0, 0.0]
    assert states[1][0] == pytest.approx(bifurcation.informative(0.4)[1][0], abs=1e-3)
    assert branches.stable_at(0.1) == [(0.0, 2.0)]
    assert len(branches.stable_at(0.9)) == 1


def test_the_bistable_range_ends_at_the_transitions(branches):
    assert branches.bistable(np.array([FOLD, PITCHFORK])) == [(FOLD, PITCHFORK)]
    ((low, high),) = branches.bistable(np.zeros(0))
    assert (low, high) == pytest.approx((FOLD, PITCHFORK), abs=2e-3)


def test_simulations_end_on_their_branch(found):
    assert (found["on_branch"] == 1).all()
    here = found.sel(simulation="vector", n=1600)
    for omega in bifurcation.OMEGAS:
        for start in bifurcation.STARTS:
            end = float(here["nearest"].sel(omega=omega, Q0=start))
            assert end == pytest.approx(bifurcation.end(omega, start), abs=1e-9)
    condensed = here["nearest_kind"] == 2
    assert ((here["largest"] > 0.5) == condensed).all()


def test_overlaps_are_means_of_sizes(bifurcation_store, found):
    q = np.abs(bifurcation_store["vector"]["Q"].sel(omega=0.7, Q0=0.1, n=400).values[:, -1])
    here = found.sel(simulation="vector", omega=0.7, Q0=0.1, n=400)
    assert float(here["overlap"]) == pytest.approx(q.mean())
    assert float(here["overlap_se"]) == pytest.approx(q.std(ddof=1) / 4)


def test_a_mean_between_the_branches_is_on_neither(bifurcation_store):
    mixed = bifurcation_store.copy(deep=True)
    mixed["vector"]["Q"].loc[{"omega": 0.3, "n": 1600}] = 0.35
    found = steady(mixed, STEADY).sel(simulation="vector", omega=0.3, n=1600)
    assert (found["on_branch"] == 0).all()


def moving(store, end):
    """The store with a limit whose |Q| at the last time is ``end`` at every omega and start."""
    groups = {k: v.to_dataset() for k, v in store.children.items()}
    pde = groups["vector"][["Q"]].isel(n=0, seed=0, drop=True)
    pde["Q"][..., -1] = -end
    groups["pde"] = bifurcation.marked(pde, "pde", False)
    return toy.tree(groups, {})


@pytest.mark.parametrize(("end", "beside"), [(0.36, 1.0), (0.5, 0.0)])
def test_a_mean_may_be_where_the_limit_is_on_its_way(bifurcation_store, end, beside):
    mixed = bifurcation_store.copy(deep=True)
    mixed["vector"]["Q"].loc[{"omega": 0.3, "n": 1600}] = 0.35
    asked = STEADY | {"limits": ["fixed_points", "pde"]}
    found = steady(moving(mixed, end), asked)
    assert found.attrs["until"] == 50.0
    here = found.sel(simulation="vector", omega=0.3, n=1600)
    assert (here["on_branch"] == 0).all()
    assert (here["on_limit"] == beside).all()
    said = answer(found)
    clause = "8 of 10 simulated means end on a stable steady state and 2 more where the limit is at"
    assert (clause in said.html) == bool(beside)
    assert said.verdict == ("agrees" if beside else "undecided")
    others = [s for s in say(found) if s.startswith("8 of 10")]
    assert ("2 more are as near" in others[0]) == bool(beside)


def test_states_come_from_branches_where_there_are_no_fixed_points(bifurcation_store, found):
    other = steady(bifurcation_store, STEADY | {"limits": None})
    known = found["state"].dropna("stable_state", how="all")
    assert other["state"].values[:, :2] == pytest.approx(known.values, abs=1e-3, nan_ok=True)


def test_theory_alone_and_simulation_alone(bifurcation_store):
    alone = steady(bifurcation_store, STEADY | {"simulation": ()})
    assert "overlap" not in alone
    assert float(alone["bistable_from"][0]) == FOLD
    bare = steady(bifurcation_store, {"x": "omega", "simulation": "vector"})
    assert "state" not in bare
    assert "on_branch" not in bare


def test_curves_of_another_swept_word_stay_apart():
    groups = {k: v.to_dataset() for k, v in bifurcation.store().children.items()}
    oja = {k: v.copy(deep=True) for k, v in groups.items()}
    oja["critical"]["value"] = oja["critical"]["value"] + 0.1
    oja["branches"]["value"] = oja["branches"]["value"] + 0.1
    words = xr.DataArray(["l1", "0"], dims="regularizer", name="regularizer")
    joined = {k: xr.concat([groups[k], oja[k]], dim=words) for k in groups}
    found = steady(toy.tree(joined, {}), STEADY)
    assert found["branch_Q"].dims == ("regularizer", "branch_point")
    assert found["bistable_from"].sel(regularizer="0").values[0] == pytest.approx(FOLD + 0.1)
    assert found["on_branch"].sizes["regularizer"] == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"x": "rho"}, "'rho' is not a swept parameter"),
        ({"x": None}, "analysis.steady.x is missing"),
    ],
)
def test_refusals_are_one_sentence(bifurcation_store, settings, words):
    with pytest.raises(HdicaError, match=words):
        steady(bifurcation_store, STEADY | settings)


def test_words_on_the_axis_are_refused(bifurcation_store):
    wordy = bifurcation_store["vector"].to_dataset().assign_coords(omega=list("abcde"))
    with pytest.raises(HdicaError, match="its values must be numbers"):
        steady(toy.tree({"vector": wordy}, {}), {"x": "omega", "simulation": ["vector"]})


def test_critical_values_over_another_parameter():
    data = bifurcation.critical()
    swept = xr.concat([data, data, data], dim=xr.DataArray([0.1, 0.2, 0.3], dims="rho", name="rho"))
    swept["value"].attrs["long_name"] = "critical value of omega"
    swept["value"].values[1, 0] = 0.15
    found = transition(toy.tree({"critical": swept}, {}), {"x": "rho"})
    assert found.attrs == {"x": "rho", "parameter": "omega", "overlap": "Q"}
    assert found["value"].sel(transition=0).values.tolist() == [FOLD, 0.15, FOLD]
    named = transition(toy.tree({"critical": swept.rename(Q="R")}, {}), {"x": "rho"})
    assert named.attrs["overlap"] == "R"
    assert named["Q"].values.tobytes() == found["Q"].values.tobytes()
    with pytest.raises(HdicaError, match="'tau' is not a swept parameter"):
        transition(toy.tree({"critical": swept}, {}), {"x": "tau"})
