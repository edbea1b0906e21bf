import numpy as np
import pytest
import xarray as xr

from hdica.analysis.laws.distances import Part, agreement, bridge_maximum, findings, thinned
from hdica.errors import HdicaError
from hdica.show.finding import Form, grouped, verdict_of
from hdica.show.wording import sentence
from hdica.verdict.powers import decay_exponent
from hdica.verdict.trajectory import STILL
from tests.analysis import laws, toy
from tests.report.shown import plain

distances = toy.computed("distances")

FAR = {"tau": 0.1, "snapshot": 3.0, "feature": 2.0}
"""The law on which a drift wrong by 2 % shows most."""


@pytest.fixture(scope="module")
def found(law_store):
    return distances(law_store, laws.METHODS)


def test_distances_of_one_run_are_those_of_numpy(law_store, found):
    law = law_store["vector"]["cdf"].sel(n=1000, **FAR).values
    gap = np.abs(law - law_store["pde"]["cdf"].sel(**FAR).values)
    here = found.sel(simulation="vector", n=1000, **FAR)
    assert float(here["ks"]) == pytest.approx(gap.max(axis=-1).mean())
    w1 = np.trapezoid(gap, laws.EDGES, axis=-1)
    assert float(here["w1"]) == pytest.approx(w1.mean())
    assert float(here["w1_se"]) == pytest.approx(w1.std(ddof=1) / np.sqrt(24))


def test_independent_entries_are_as_far_away_as_expected(found):
    for kind in ("ks", "w1"):
        ratio = found[kind] / found[f"{kind}_expected"]
        error = found[f"{kind}_se"] / found[f"{kind}_expected"]
        assert abs(float(((ratio - 1) / error).mean())) < 0.8  # 16 cells
        pooled = found[f"{kind}_pooled"] / found[f"{kind}_pooled_expected"]
        assert 0.7 < float(pooled.mean()) < 1.4


def test_distances_fall_as_the_root_of_n(found):
    for kind in ("ks", "w1"):
        low, high = found[f"{kind}_exponent_low"], found[f"{kind}_exponent_high"]
        assert ((low <= 0.5) & (high >= 0.5)).sum() >= 3
        assert found[f"{kind}_exponent"].mean() == pytest.approx(0.5, abs=0.06)


def test_a_right_limit_agrees_and_its_control_is_rejected(found):
    here = found.sel(simulation="vector", **FAR)
    assert here["verdict"].item() == "agrees"
    assert float(here["control_p"]) < float(found.attrs["level_each"]) == pytest.approx(0.01 / 4)
    assert not (found["verdict"] == "differs").any()


def test_a_law_that_does_not_depend_on_the_drift_is_not_judged(found):
    here = found.sel(simulation="vector", tau=0.1, snapshot=3.0, feature=0.0)
    assert here["verdict"].item() == "undecided"
    assert here["why"].item() == STILL


def test_a_simulation_of_another_law_differs():
    wrong = distances(laws.store(factor=1.02), laws.METHODS).sel(simulation="vector", **FAR)
    assert wrong["verdict"].item() == "differs"


def test_every_law_has_its_verdict_and_the_largest_distance_that_of_draws(found):
    laws_, ks, w1, *powers = findings_by_quantity(found)
    assert len(laws_) == 4
    # The law of the group of 0 moves with no drift: a wrong one predicts the same.
    assert sorted(one.verdict for one in laws_) == ["", "", "agrees", "undecided"]
    assert [one.place["xi"] for one in laws_ if "no drift moves it" in one.evidence] == [0.0, 0.0]
    (far,) = [one for one in laws_ if one.verdict == "agrees"]
    assert far.place == {"tau": 0.1, "xi": 2.0, "n": 4000, "t": 3.0}
    assert far.value == float(found["ks_pooled"].sel(simulation="vector", n=4000, **FAR))
    for (one,), kind in ((ks, "ks"), (w1, "w1")):
        top = found[kind].sel(n=4000)
        assert (one.form, one.value) == (Form.LARGEST, float(top.max()))
        assert abs(one.off) < 4 * one.error
        assert one.verdict == ""  # entries are no independent draws
    for (one,) in powers:
        assert (one.form, one.base.plain, one.predicted) == (Form.POWER, "n", -0.5)
        assert abs(one.off) < 4 * one.error


def test_a_wrong_law_differs_and_few_seeds_decide_nothing():
    wrong = findings(distances(laws.store(factor=1.05), laws.METHODS))
    assert verdict_of(wrong) == "differs"
    (far,) = [one for one in wrong if one.verdict == "differs"]
    assert (far.place["xi"], far.place["t"]) == (2.0, 3.0)
    (text,) = plain([sentence(grouped(wrong)[0])])
    assert text.endswith(
        "in 1 of 2 comparisons, at τ = 0.1, ξ = 2, n = 4000, t = 3; 1 is undecided."
    )
    few = findings(distances(laws.store(seeds=3), laws.METHODS))
    assert {one.verdict for one in few if one.form is Form.VALUE} == {"undecided"}


def test_a_power_agrees_only_where_a_third_and_two_thirds_are_rejected(found):
    for error, verdict in ((0.01, "agrees"), (0.18, "agrees"), (0.22, "undecided")):
        data = found.assign(ks_exponent=found["ks_exponent"] * 0 + 0.5)
        data["ks_exponent_error"] = data["ks_exponent_error"] * 0 + error
        (one,) = [f for f in findings(data) if f.form is Form.POWER and "Kolm" in f.quantity.plain]
        assert (one.verdict, one.error) == (verdict, pytest.approx(error / 2))
        off = findings(data.assign(ks_exponent=data["ks_exponent"] + 0.1))
        assert next(f for f in off if f.form is Form.POWER).verdict == "undecided"


def findings_by_quantity(data):
    return grouped([one for one in findings(data) if one.verdict or np.isfinite(one.value)])


def test_a_finite_n_term_is_no_difference():
    biased = distances(laws.store(c=40.0), laws.METHODS).sel(simulation="vector", **FAR)
    assert float(biased["ks"].sel(n=500)) > 1.5 * float(biased["ks_expected"].sel(n=500))
    assert biased["verdict"].item() == "agrees"


def test_a_single_n_cannot_prove_a_difference():
    one = distances(laws.store(ladder=[4000], factor=1.05), laws.METHODS)
    here = one.sel(simulation="vector", **FAR)
    assert here["verdict"].item() == "undecided"
    assert "single n" in here["why"].item()
    assert np.isnan(float(here["ks_exponent"]))


def test_without_a_control_there_is_no_agreement(law_store):
    bare = law_store.copy(deep=True)
    bare["pde"] = bare["pde"].to_dataset().drop_vars("cdf_control")
    assert (distances(bare, laws.METHODS)["verdict"] == "undecided").all()


def test_mass_outside_the_edges_is_reported(law_store):
    narrow = laws.EDGES[:40]
    groups = {m: law_store[m].to_dataset().sel(edge=narrow) for m in ("vector", "pde")}
    found = distances(xr.DataTree.from_dict(groups), laws.METHODS)
    beyond = 1 - laws.law().cdf(narrow[-1])[1, 1, 0]
    assert float(found["outside_limit"].sel(**FAR)) == pytest.approx(beyond, abs=1e-6)
    assert float(found["outside"].sel(n=4000, **FAR)[0]) == pytest.approx(beyond, abs=0.01)
    *_, last = findings(found)
    assert (last.quantity.plain.split(" outside")[0], last.unit.plain) == (
        "the share of entries",
        "%",
    )
    assert (last.value, last.place["xi"]) == (pytest.approx(100 * beyond, abs=1), 2.0)


def test_a_diverged_limit_leaves_nothing_to_compare(law_store):
    lost = law_store.copy(deep=True)
    lost["pde"]["status"].values[...] = 2
    found = distances(lost, laws.METHODS)
    assert (found["why"] == "the limit has no result here").all()
    assert found["ks"].isnull().all()


def test_a_store_without_laws_is_refused(store):
    with pytest.raises(HdicaError, match="has no variable 'cdf'"):
        distances(store, {"simulation": "chain", "limit": "ode"})


@pytest.mark.parametrize(("edges", "mean"), [(20_000, 0.8687), (9, None)])
def test_bridge_maximum_is_the_mean_distance_of_independent_draws(edges, mean):
    law = np.linspace(0, 1, edges)
    if mean is None:  # against draws themselves
        rng = np.random.default_rng(2)
        counts = rng.multinomial(4000, np.diff(law), 3000)
        gap = np.abs(counts.cumsum(axis=1) / 4000 - law[1:]).max(axis=1)
        mean = np.sqrt(4000) * gap.mean()
        assert mean < 0.75  # far below the Kolmogorov law
    assert bridge_maximum(law) == pytest.approx(mean, rel=0.04)


@pytest.mark.deep
def test_false_alarms_along_a_law_are_as_rare_as_stated():
    """With a bias c/n, few seeds and coarse laws."""
    rng, repeats, n = np.random.default_rng(4), 300, np.array([300, 600, 1200])
    edges, share = np.linspace(0, 1, 41), 0.3
    entries = np.round(share * n).astype(int)
    tilt = edges * (1 - edges)
    laws_ = [np.diff(edges + 8 / k * tilt) for k in n]
    draws = [rng.multinomial(m, p, (repeats, 10)).cumsum(-1) / m
             for m, p in zip(entries, laws_, strict=True)]  # fmt: skip
    values = xr.DataArray(np.stack(draws, axis=1), {"n": n}, ["tau", "n", "seed", "edge"])
    values = values.assign_coords(tau=np.arange(repeats))
    limit = xr.DataArray(edges[1:], dims="edge")
    curves = xr.Dataset({"limit": limit, "error": 0 * limit, "control": limit + 0.02 * tilt[1:]})
    part = Part(values, curves, xr.DataArray(np.full(3, share), dims="n"), "edge")
    p = agreement([part], 0.01)["p_value"].values
    for level in (0.05, 0.2):
        assert (p < level).mean() < level + 3 * np.sqrt(level * (1 - level) / repeats)
    assert (p < 0.5).mean() > 0.1  # and the test is not asleep


def test_places_are_spread_evenly_in_probability_without_the_tails():
    law = np.array([0.0, 0.001, 0.1, 0.11, 0.5, 0.9, 0.999, 1.0])
    assert law[thinned(law)].tolist() == [0.1, 0.11, 0.5, 0.9]
    assert thinned(1 - law).tolist() == thinned(law).tolist()  # rates fall
    assert len(thinned(np.linspace(0, 1, 1000))) == 15


def test_decay_exponent_and_its_interval():
    rng, n = np.random.default_rng(1), np.array([100.0, 200, 400, 800])
    truth, inside = 3 * n**-0.5, 0
    for _ in range(200):
        found = decay_exponent(n, truth * (1 + 0.03 * rng.standard_normal(4)), 0.03 * truth, 20)
        inside += found.low <= 0.5 <= found.high
    assert 180 <= inside <= 200
    assert not decay_exponent(n[:1], truth[:1], truth[:1], 20).resolved
