import numpy as np
import pytest
import xarray as xr
from scipy import stats

from hdica.analysis.account.account import condensing, runs
from hdica.analysis.account.account import notes_of_condensing as notes
from hdica.analysis.account.account import notes_of_runs as account
from hdica.analysis.laws.densities import findings
from hdica.analysis.laws.densities import panels as figure
from hdica.ingredients.save import Save
from hdica.systems.system import systems
from tests.analysis import bifurcation, laws, toy
from tests.report.shown import plain

compare = toy.computed("compare")
densities = toy.computed("densities")
potential = toy.computed("potential")


def test_histograms_of_the_largest_n_with_their_error(law_store):
    found = densities(law_store, laws.ANALYSES["densities"])
    runs = law_store["vector"]["density"].sel(n=4000, tau=0.1).values
    assert found.attrs["n"] == 4000
    assert found["density"].sel(tau=0.1).values == pytest.approx(runs.mean(axis=0))
    error = runs.std(axis=0, ddof=1) / np.sqrt(24)
    assert found["density_se"].sel(tau=0.1).values == pytest.approx(error)
    z = ((found["density"] - found["limit"]) / found["density_se"]).sel(tau=0.1).values
    assert np.abs(z[np.abs(laws.law().cdf(laws.X) - 0.5) < 0.4]).max() < 5


@pytest.mark.parametrize("spread", [0.5, 0.03])
def test_bin_means_are_compared_with_bin_means(law_store, spread):
    """Of a law that is smooth over a bin of 0.1, and of one that is sharply peaked within it."""
    law, rng = stats.norm(0.53, spread), np.random.default_rng(3)
    at_edges, width = law.cdf(laws.EDGES), np.diff(laws.EDGES)
    part = law_store.copy(deep=True)
    vector, limit = part["vector"].to_dataset(), part["pde"].to_dataset()
    inside = np.diff(at_edges)
    left = np.append(inside, 1 - inside.sum())
    counts = rng.multinomial(4000, left, vector["density"].shape[:-1])[..., :-1]
    vector["density"][:] = counts / 4000 / width
    limit["density"][:] = law.pdf(laws.X)
    limit["cdf"][:] = at_edges
    store = toy.tree({"vector": vector, "pde": limit}, {})
    found = densities(store, laws.ANALYSES["densities"])
    seen = found["density_se"] > 0.01

    def furthest(theory):
        return float(abs((found["density"] - theory) / found["density_se"]).where(seen).max())

    assert furthest(found["limit"]) < 6
    # The control: values at x, which a peak makes another number.
    assert (furthest(limit["density"]) > 20) == (spread < 0.1)
    drawn = next(p for p in figure(found) if p.key == "density_1").items[-1]
    assert drawn.y == pytest.approx(inside / width)
    assert limit.hdica.histogram().values[0, 0, 0] == pytest.approx(inside / width)
    assert vector.hdica.histogram().attrs["long_name"].endswith("mean over the bin around x")
    alone = densities(store, {"limit": "pde", "simulation": None})
    assert alone["limit"].values[0, 0, 0] == pytest.approx(law.pdf(laws.X))
    assert alone["limit"].attrs["long_name"].endswith("at x")


def steady_group():
    """Three steady states beside the runs of the toy rule, whose overlap ends at 0.665."""
    q, law = np.array([0.0, 0.6, 0.7, np.nan]), stats.norm(0.7 * laws.XI[:, None], laws.SPREAD)
    shifted = np.array([3.0, 1.0, 0.0, np.nan])[:, None, None]
    data = {
        "Q": ("fixed_point", q),
        "bulk": ("fixed_point", np.array([0.4, 1.0, 1.0, np.nan])),
        "stable": ("fixed_point", np.array([1.0, 0.0, 1.0, np.nan])),
        "density": (("fixed_point", "feature", "x"), law.pdf(laws.X + shifted)),
        "cdf": (("fixed_point", "feature", "edge"), law.cdf(laws.EDGES + shifted)),
    }
    found = xr.Dataset(data, {"feature": laws.XI, "x": laws.X, "edge": laws.EDGES})
    found = found.expand_dims(tau=[0.1]).assign(xi=("feature", laws.XI))
    return laws.marked(found, "fixed_points", False)


def test_the_steady_density_is_that_of_the_stable_state_nearest_to_the_runs(law_store):
    groups = {"vector": law_store["vector"].to_dataset(), "fixed_points": steady_group()}
    store, cdf = toy.tree(groups, {}), groups["fixed_points"]["cdf"].values[0]
    settings = {"simulation": "vector", "limit": "fixed_points"}
    found = densities(store, settings).sel(tau=0.1)
    # At 0.5 the runs are at 0.28, between the states at 0 and 0.7; that at 0.6 is not stable.
    assert found["overlap"].values.tolist() == [0.0, 0.7]
    for row, state in enumerate((0, 2)):
        mean = np.diff(cdf[state]) / np.diff(laws.EDGES)
        np.testing.assert_allclose(found["limit"].isel(snapshot=row), mean, atol=1e-12)
    drawn = figure(found)
    assert "<i>Q</i> = 0.7, mean over" in drawn[-1].caption
    assert "a share 0.6 of |<i>x</i>|²" in drawn[0].caption
    alone = densities(store, {"simulation": None, "limit": "fixed_points"}).sel(tau=0.1)
    assert alone["overlap"].values.tolist() == [0.7]
    assert "steady state" in figure(alone)[0].title.plain
    groups["fixed_points"]["stable"][:] = 0.0
    assert densities(toy.tree(groups, {}), settings)["limit"].isnull().all()


def test_a_method_says_whether_its_density_is_a_histogram():
    for record in systems().values():
        for method in record.methods:
            for one in method.outputs_of(Save(snapshots=(1.0,), x=(0.0, 1.0), bands=True)):
                if one.name == "density" and "snapshot" in one.dims:
                    ending = "mean over the bin around x" if method.stochastic else ", at x"
                    assert one.long_name.endswith(ending), (record.name, method.name)


def test_a_single_seed_has_the_error_of_independent_entries(law_store):
    one = law_store["vector"].to_dataset().isel(seed=[0])
    store = toy.tree({"vector": one, "pde": law_store["pde"].to_dataset()}, {})
    found = densities(store, laws.ANALYSES["densities"]).sel(tau=0.1, snapshot=3.0, feature=2.0)
    share = found["density"].values * 0.1
    expected = np.sqrt(share * (1 - share) / 1000) / 0.1
    assert found["density_se"].values == pytest.approx(expected)


def test_the_limit_alone_and_the_largest_finished_n(law_store):
    assert "density" not in densities(law_store, {"limit": "pde", "simulation": None})
    part = law_store.copy(deep=True)
    part["vector"]["status"].values[:, -1] = 0
    assert densities(part, laws.ANALYSES["densities"]).attrs["n"] == 2000


def test_groups_of_a_swept_prior_may_differ_in_number(law_store):
    part = law_store.copy(deep=True)
    for name in ("density", "xi", "weight"):
        for method in ("vector", "pde"):
            values = part[method][name]
            values.loc[{"feature": 0.0}] = np.nan
    found = densities(part, laws.ANALYSES["densities"]).sel(tau=0.1, snapshot=3.0)
    assert found["density"].sel(feature=2.0).notnull().all()
    assert found["density"].sel(feature=0.0).isnull().all()


def test_the_potential_is_zero_at_the_kink(law_store):
    found = potential(law_store, {"limit": "pde"})
    assert float(abs(found["potential"].sel(x=0.0)).max()) == 0
    assert found["convex"].sel(tau=0.1).values.tolist() == [0, 0, 1, 1]


def test_the_minima_of_a_potential_are_those_of_the_formula(law_store):
    # (x - m)^2 + |x|/2 is least at m - 1/4, or at its kink: no point of the grid is used.
    found = potential(law_store, {"limit": "pde"})["minimum"].sel(tau=0.1)
    exact = np.maximum(laws.center(laws.SNAPSHOTS)[:, None] * laws.XI - 0.25, 0)
    np.testing.assert_allclose(found.transpose("snapshot", "feature"), exact, atol=1e-12)
    assert np.abs(exact[:, 1:] - laws.X[:, None, None]).min() > 5e-4


def test_a_potential_that_falls_to_an_end_has_no_minimum(law_store):
    part = law_store.copy(deep=True)
    part["pde"]["potential"].values[...] = -laws.X
    assert potential(part, {"limit": "pde"})["minimum"].isnull().all()


def test_a_negative_curvature_at_the_end_is_kept(law_store):
    assert float(condensing(law_store)["curvature"].sel({"method": "pde", "tau": 0.1})) == 0.2
    groups = {"pde": laws.limit(curvature=-0.02), "vector": law_store["vector"].to_dataset()}
    stopped = toy.tree(groups, {})
    stopped["pde"]["curvature"].values[0, -1] = np.nan
    stopped["pde"]["status"].values[0] = 2
    end = condensing(stopped).sel({"method": "pde", "tau": 0.1})
    assert (float(end["curvature"]), float(end["end"])) == (0.1, 1.0)
    assert notes(condensing(law_store)) == []
    (note,) = plain(notes(condensing(toy.tree({**groups, "pde": laws.limit(curvature=-0.02)}, {}))))
    assert note.startswith("The estimate condenses")
    assert "(2h = −0.02 at τ = 0.1, t = 3 (PDE))" in note
    assert condensing(bifurcation.store()) is None


def test_several_methods_side_by_side(law_store):
    found = compare(law_store, laws.ANALYSES["compare"])
    q = law_store["vector"]["Q"].sel(n=4000, tau=0.1).values
    here = found.sel(simulation="vector", tau=0.1)
    assert here["mean"].values == pytest.approx(q.mean(axis=0))
    assert here["sd"].values == pytest.approx(q.std(axis=0, ddof=1))
    assert int(here["largest_n"]) == 4000
    assert found["limit_mean"].sel(limit="pde", tau=0.1).values == pytest.approx(
        laws.center(laws.TIMES)
    )
    steady = compare(bifurcation.store(), {"curves": ["vector"], "steady": "fixed_points"})
    stable = steady["steady"].sel(omega=0.3).values
    assert np.sort(stable[np.isfinite(stable)]) == pytest.approx([0.0, bifurcation.end(0.3, 0.9)])


def test_a_reason_has_its_place_and_is_escaped(law_store):
    lost = law_store.copy(deep=True)
    pde = lost["pde"].to_dataset()
    pde["status"].values[...] = 2
    pde["reason"] = (("tau",), np.array(["mass <b>reached</b> the end"], dtype=object))
    lost["pde"] = pde
    data = runs(lost)
    reason = data["reason"].sel({"method": "pde"}).item()
    assert reason == "tau = 0.1: mass <b>reached</b> the end"
    assert "no result at 1 point: τ = 0.1: mass &lt;b&gt;reached" in account(data)[-1]
    assert runs(law_store)["reason"].values.tolist() == ["", ""]
    assert len(account(runs(law_store))) == 1


def test_the_mean_entry_has_that_of_the_limit_beside_it(law_store):
    (one,) = findings(densities(law_store, laws.ANALYSES["densities"]))
    assert one.quantity.plain == "the mean entry of the estimate"
    assert one.place == {"tau": 0.1, "xi": 2.0, "t": 3.0, "n": 4000}
    assert one.predicted == pytest.approx(2 * float(laws.center(3.0)), rel=1e-2)
    assert 0 < abs(one.off) < 4 * one.error
    assert (one.verdict, one.theory.plain) == ("", "the limit")
    (wrong,) = findings(densities(laws.store(factor=1.05), laws.ANALYSES["densities"]))
    assert wrong.value / wrong.predicted == pytest.approx(1.05, abs=0.01)


def test_one_seed_has_no_error_and_the_limit_alone_no_prediction(law_store):
    single = law_store["vector"].to_dataset().isel(seed=[0])
    store = toy.tree({"vector": single, "pde": law_store["pde"].to_dataset()}, {})
    (one,) = findings(densities(store, laws.ANALYSES["densities"]))
    assert np.isnan(one.error)
    (alone,) = findings(densities(store, {"limit": "pde", "simulation": None}))
    assert alone.quantity.plain == "the mean entry of the limiting density"
    assert alone.value == pytest.approx(one.predicted, rel=1e-3)
    assert np.isnan(alone.predicted)
    nothing = law_store.copy(deep=True)
    for name in ("density", "cdf"):
        nothing["pde"][name].values[...] = np.nan
    assert findings(densities(nothing, laws.ANALYSES["densities"])) == []


def test_a_steady_density_is_no_limit_at_a_time(law_store):
    groups = {"vector": law_store["vector"].to_dataset(), "fixed_points": steady_group()}
    store = toy.tree(groups, {})
    (one,) = findings(densities(store, {"simulation": "vector", "limit": "fixed_points"}))
    assert (one.place["t"], one.theory.plain) == (3.0, "the steady density")
    (alone,) = findings(densities(store, {"simulation": None, "limit": "fixed_points"}))
    assert alone.quantity.plain == "the mean entry of the limiting density in the steady state"
    assert "t" not in alone.place
