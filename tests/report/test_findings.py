import pytest

from hdica.analysis.aggregate import aggregate
from hdica.report.answers import findings
from tests.analysis import toy
from tests.report.shown import plain


@pytest.fixture(scope="module")
def said(aggregated):
    return plain(findings(aggregated))


def test_the_critical_value_is_stated(said):
    assert any("τc = 0.06" in s for s in said)


def test_verdicts_are_counted_and_explained(said, aggregated):
    verdicts = aggregated["convergence"]["verdict"].values.ravel().tolist()
    counted = next(s for s in said if s.startswith("Of 4 comparisons"))
    assert f"{verdicts.count('agrees')} agree" in counted
    assert "0 differ" in counted


def test_exponents_are_stated_or_said_to_be_lost(said):
    assert any("The fluctuation falls as sd ∼ n−a" in s for s in said)
    assert any(s.startswith("The bias") for s in said)


def test_fixed_points_are_stated(said):
    q = toy.roots(0.02)[2] ** 2
    assert any("τ = 0.02" in s and f"q = {q:.4g} (stable)" in s for s in said)
    assert any("τ = 0.07" in s and "nothing is learned" in s for s in said)


def test_losses_are_stated():
    tree = toy.store()
    tree["chain"]["status"].values[0, 0, 0, :2] = 2
    tree["chain"]["status"].values[0, 0, 0, 2:5] = 0
    last = plain(findings(aggregate(tree)))[-1]
    assert "2 diverged and 3 pending" in last


def test_a_single_comparison_is_one_sentence():
    groups = toy.store().children
    one = {k: groups[k].to_dataset().isel(tau=0, Q0=1, drop=True) for k in ("chain", "ode")}
    said = plain(findings(aggregate(toy.tree(one, {"convergence": toy.CONVERGENCE}))))
    assert said[0].startswith("The simulation agrees with the limit: within the error bars")
    assert sum(s.startswith("The fluctuation falls") for s in said) == 1
