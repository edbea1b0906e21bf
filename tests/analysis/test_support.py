import numpy as np
import pytest
from scipy import stats

from hdica.analysis.laws.support import findings
from tests.analysis import laws, toy

support = toy.computed("support")


@pytest.fixture(scope="module")
def found(law_store):
    return support(law_store, laws.METHODS)


def test_rates_are_means_over_seeds(law_store, found):
    here = found.sel(simulation="vector", tau=0.1, n=2000, snapshot=3.0)
    runs = law_store["vector"].to_dataset().sel(tau=0.1, n=2000, snapshot=3.0)
    for rate in ("tpr", "fpr", "misclassified"):
        assert here[rate].values == pytest.approx(runs[rate].values.mean(axis=0))
        se = runs[rate].values.std(axis=0, ddof=1) / np.sqrt(24)
        assert here[f"{rate}_se"].values == pytest.approx(se)
        assert np.abs(here[rate] - here[f"{rate}_limit"]).max() < 0.02


def test_the_area_is_the_chance_that_a_hit_is_larger_than_a_miss(found):
    x = np.linspace(0, 4, 4001)
    hit = stats.norm(laws.center(3.0) * 2, laws.SPREAD)
    density = hit.pdf(x) + hit.pdf(-x)
    miss_below = 2 * stats.norm.cdf(x / laws.SPREAD) - 1
    chance = np.trapezoid(density * miss_below, x)
    assert float(found["area_limit"].sel(tau=0.1, snapshot=3.0)) == pytest.approx(chance, abs=2e-3)


def test_verdict_of_both_rates_together(found):
    late = found.sel(simulation="vector", tau=0.1, snapshot=3.0)
    assert late["verdict"].item() == "agrees"
    assert float(late["control_p"]) < 0.005
    wrong = support(laws.store(factor=1.03), laws.METHODS)
    assert wrong["verdict"].sel(snapshot=3.0).item() == "differs"


def test_a_dense_feature_has_no_false_positives(law_store):
    dense = law_store.copy(deep=True)
    for method in ("vector", "pde"):
        dense[method]["fpr"].values[...] = np.nan
    found = support(dense, laws.METHODS)
    assert found["verdict"].sel(snapshot=3.0).item() == "agrees"
    assert found["area_limit"].isnull().all()


def test_the_limit_alone(law_store):
    found = support(law_store, {"limit": "pde", "simulation": None})
    assert "verdict" not in found
    assert found["tpr_limit"].dims == ("tau", "snapshot", "threshold")


def test_the_share_of_the_best_threshold_stands_beside_that_of_the_limit(found):
    early, late, area = findings(found)
    # At the first time 24 seeds do not reject what is wrong by 2 %.
    assert [one.verdict for one in (early, late, area)] == ["undecided", "agrees", ""]
    limit = found["misclassified_limit"].sel(tau=0.1, snapshot=3.0)
    assert late.place["threshold"] == float(limit["threshold"][int(limit.values.argmin())])
    assert late.place["n"] == 4000
    assert late.predicted == 100 * float(limit.min())
    assert 0 < abs(late.off) < 4 * late.error
    assert area.value == float(found["area_limit"].sel(tau=0.1, snapshot=3.0))
    wrong = findings(support(laws.store(factor=1.05), laws.METHODS))[1]
    assert (wrong.verdict, wrong.predicted) == ("differs", late.predicted)
    assert abs(wrong.off) > 4 * wrong.error


def test_without_simulation_the_share_is_that_of_the_limit(law_store, found):
    _, late, _ = findings(support(law_store, {"limit": "pde", "simulation": None}))
    assert late.quantity.plain.endswith("in the limit")
    assert late.value == findings(found)[1].predicted
    assert (late.verdict, np.isnan(late.predicted)) == ("", True)
