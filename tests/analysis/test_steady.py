import numpy as np
import pytest
import xarray as xr

from hdica.analysis.steady.branches import Branches
from hdica.analysis.steady.compute import findings
from hdica.errors import HdicaError
from hdica.show.finding import verdict_of
from hdica.status import PENDING
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
    return Branches(*(data[k].values for k in ("value", "Q", "stable", "kind", "branch")))


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
    here = found.sel(simulation="vector", n=6400)
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
    mixed["vector"]["Q"].loc[{"omega": 0.3, "n": 6400}] = 0.35
    found = steady(mixed, STEADY).sel(simulation="vector", omega=0.3, n=6400)
    assert (found["on_branch"] == 0).all()


def ends(data):
    """Findings on where simulations end."""
    return [one for one in findings(data) if one.quantity.plain == "mean |Q|"]


def test_critical_values_are_findings_with_their_kind_and_overlap(found):
    some = {one.quantity.plain: one.value for one in findings(found) if not one.place}
    assert some == {
        "the critical value of ω (fold)": FOLD,
        "|Q| at the fold": 0.5,
        "the critical value of ω (transcritical point)": PITCHFORK,
        "|Q| at the transcritical point": 0.0,
        "the lower end of the range of ω with several stable states": FOLD,
        "the upper end of the range of ω with several stable states": PITCHFORK,
    }
    loose = found.assign(transition_error=found["transition_error"] * 0 + 0.01)
    assert findings(found)[0].quantity.plain.endswith("(fold)")
    assert np.isnan(findings(found)[0].error)
    assert findings(loose)[0].error == 0.01


def test_every_end_is_judged_beside_the_nearest_stable_state(found):
    every = ends(found)
    assert [one.verdict for one in every] == ["agrees"] * 10
    assert {one.theory.plain for one in every} == {"the nearest stable state"}
    one = next(e for e in every if e.place["omega"] == 0.7 and e.place["Q0"] == 0.1)
    here = found.sel(simulation="vector", omega=0.7, Q0=0.1, n=6400)
    assert one.place == {"omega": 0.7, "Q0": 0.1, "n": 6400, "t": 50.0}
    assert (one.value, one.error) == (float(here["overlap"]), float(here["overlap_se"]))
    assert one.predicted == pytest.approx(bifurcation.end(0.7, 0.1))


def test_the_share_on_the_largest_entry_is_of_condensed_ends(found):
    shares = [one for one in findings(found) if one.quantity.plain.startswith("the share of |x|²")]
    at = [(one.place["omega"], one.place["Q0"]) for one in shares]
    assert at == [(0.1, 0.1), (0.1, 0.9), (0.3, 0.1), (0.5, 0.1)]
    assert [one.value for one in shares] == pytest.approx([0.55] * 4)


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, "agrees"), (0.95, "differs"), (0.8, "differs"), (1.2, "differs")]
)
def test_states_that_are_off_differ(bifurcation_store, share, verdict):
    """The informative state is off by a share; that without overlap is as it was."""
    wrong = bifurcation_store.copy(deep=True)
    wrong["fixed_points"]["Q"].values[...] *= share
    every = ends(steady(wrong, STEADY | {"branches": None}))
    assert verdict_of(every) == verdict
    assert {one.verdict for one in every if one.predicted == 0} == {"agrees"}


def test_a_few_seeds_or_a_small_size_decide_nothing(bifurcation_store, found):
    groups = {k: v.to_dataset() for k, v in bifurcation_store.children.items()}
    one = steady(toy.tree(groups | {"vector": groups["vector"].isel(seed=[0])}, {}), STEADY)
    assert {e.verdict for e in ends(one)} == {"undecided"}
    assert {e.evidence for e in ends(one)} == {"one seed has no error"}
    small = ends(found.sel(n=[400]))
    assert {e.verdict for e in small if e.predicted == 0} == {"undecided"}
    status = xr.full_like(groups["vector"]["status"], PENDING)
    groups["vector"] = groups["vector"].assign(status=status)
    assert ends(steady(toy.tree(groups, {}), STEADY)) == []


def moving(store, end, omega_there=0.3):
    """The store with a limit that has arrived, but for one start at one omega."""
    groups = {k: v.to_dataset() for k, v in store.children.items()}
    pde = groups["vector"][["Q"]].isel(n=0, seed=0, drop=True)
    for omega in bifurcation.OMEGAS:
        for start in bifurcation.STARTS:
            pde["Q"].loc[{"omega": omega, "Q0": start}] = -bifurcation.end(omega, start)
    pde["Q"].loc[{"omega": omega_there, "Q0": 0.1}] = -end
    groups["pde"] = bifurcation.marked(pde, "pde", False)
    return toy.tree(groups, {})


@pytest.mark.parametrize(("end", "beside"), [(0.35, 1.0), (0.5, 0.0)])
def test_a_mean_may_be_where_the_limit_is_on_its_way(bifurcation_store, end, beside):
    mixed = bifurcation_store.copy(deep=True)
    runs = mixed["vector"]["Q"].loc[{"omega": 0.3, "Q0": 0.1, "n": 6400}]
    mixed["vector"]["Q"].loc[{"omega": 0.3, "Q0": 0.1, "n": 6400}] = abs(runs.values) + 0.34
    asked = STEADY | {"limits": ["fixed_points", "pde"]}
    found = steady(moving(mixed, end), asked)
    assert found.attrs["until"] == 50.0
    here = found.sel(simulation="vector", omega=0.3, Q0=0.1, n=6400)
    assert here["on_branch"] == 0
    assert here["on_limit"] == beside
    *others, last = ends(found)
    assert {one.theory.plain for one in others} == {"the nearest stable state"}
    assert (last.theory.plain, last.predicted) == ("the limit", end)
    assert last.verdict == ("agrees" if beside else "differs")
    # Without the limit it is on no stable state.
    off = [one for one in ends(steady(mixed, STEADY)) if one.verdict == "differs"]
    assert [(one.place["omega"], one.place["Q0"]) for one in off] == [(0.3, 0.1)]


@pytest.mark.parametrize("limits", [("pde", "ode"), ("ode", "pde")])
def test_of_several_limits_the_nearest_predicts_a_mean(bifurcation_store, limits):
    """One limit has arrived, and the mean is where the other one is on its way."""
    mixed = bifurcation_store.copy(deep=True)
    runs = mixed["vector"]["Q"].loc[{"omega": 0.3, "Q0": 0.1, "n": 6400}]
    mixed["vector"]["Q"].loc[{"omega": 0.3, "Q0": 0.1, "n": 6400}] = abs(runs.values) + 0.34
    arrived = moving(mixed.copy(deep=True), bifurcation.end(0.3, 0.1))["pde"].to_dataset()
    groups = {k: v.to_dataset() for k, v in moving(mixed, 0.35).children.items()}
    store = toy.tree({**groups, "ode": arrived}, {})
    found = steady(store, STEADY | {"limits": ["fixed_points", *limits]})
    assert found["on_limit"].sel(simulation="vector", omega=0.3, Q0=0.1, n=6400) == 1
    last = ends(found)[-1]
    assert (last.theory.plain, last.predicted, last.verdict) == ("the limit", 0.35, "agrees")


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "agrees"), (0.0, "differs")])
def test_a_mean_that_nears_its_state_is_judged_by_the_limit(bifurcation_store, share, verdict):
    """The limit is 0.02 below the state, the mean so far below or at it."""
    late, state = bifurcation_store.copy(deep=True), bifurcation.end(0.7, 0.1)
    at = {"omega": 0.7, "Q0": 0.1, "n": 6400}
    runs = late["vector"]["Q"].loc[at]
    late["vector"]["Q"].loc[at] = runs - 0.02 * share * np.sign(runs)
    found = ends(
        steady(moving(late, state - 0.02, 0.7), STEADY | {"limits": ["fixed_points", "pde"]})
    )
    last = next(e for e in found if e.place["omega"] == 0.7 and e.place["Q0"] == 0.1)
    assert (last.theory.plain, last.verdict) == ("the limit", verdict)
    assert last.predicted == pytest.approx(state - 0.02)
    bare = ends(steady(late, STEADY))
    bare = next(e for e in bare if e.place["omega"] == 0.7 and e.place["Q0"] == 0.1)
    # Without the limit nothing tells where runs are that have not arrived.
    assert bare.verdict == ("undecided" if share else "agrees")
    assert ("still move towards it" in bare.evidence) == bool(share)


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
    assert findings(bare) == []


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
    folds = [one for one in findings(found) if one.quantity.plain.endswith("(fold)")]
    assert [(one.place["regularizer"], one.value) for one in folds] == [
        ("l1", FOLD),
        ("0", pytest.approx(FOLD + 0.1)),
    ]


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


def test_a_mean_without_a_stable_state_leaves_the_comparison_open(bifurcation_store):
    bare = bifurcation_store.copy(deep=True)
    bare["fixed_points"]["stable"].loc[{"omega": 0.7}] = 0.0
    found = findings(steady(bare, {**STEADY, "branches": None}))
    (missing,) = [one for one in found if "without a stable state" in one.quantity.plain]
    assert missing.verdict == "undecided"
    assert missing.value > 0
    whole = findings(steady(bifurcation_store, STEADY))
    assert not [one for one in whole if "without a stable state" in one.quantity.plain]
