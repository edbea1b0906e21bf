"""What is kept of the empirical measure, on vectors small enough to count by hand."""

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.finite.record import (
    OVERLAP,
    PENALTY,
    by_group,
    observe,
    order_parameters,
    realised_groups,
    snapshot_rows,
    support,
)
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.save import NOTHING, Save
from hdica.systems.method import DENSITIES, SUPPORT
from tests.finite.runs import run_vector
from tests.finite.test_kernels import make_rule
from tests.systems.sparse_pca.test_rule import make_pca, streams

XI = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 2.0])
X = np.array([-0.5, 0.0, 0.4, 3.0, 0.6, 2.0])
LABELS = np.array([0, 0, 0, 0, 1, 1])
SAVE = Save((0.0, 1.5), (-1.0, 0.0, 1.0, 2.0), (0.5, 1.0), {"error": "(x - xi)**2"})


def test_densities_count_the_entries_of_each_group():
    found = by_group(X, LABELS, 3, np.array([-1.0, 0.0, 0.5, 2.0]))
    # Bins ]-1, 0], ]0, 0.5], ]0.5, 2]: the entry at exactly 0 is in the first.
    assert found["density"][0].tolist() == [2 / 4 / 1, 1 / 4 / 0.5, 0.0]
    assert found["density"][1].tolist() == [0.0, 0.0, 2 / 2 / 1.5]
    assert found["cdf"][:2].tolist() == [[0.0, 0.5, 0.75, 0.75], [0.0, 0.0, 0.0, 1.0]]
    assert np.all(np.isnan(found["density"][2]))
    assert np.all(np.isnan(found["cdf"][2]))


def test_groups_are_described_as_realised():
    found = realised_groups(XI, LABELS, 3)
    assert found["xi"][:2].tolist() == [0.0, 2.0]
    assert np.isnan(found["xi"][2])
    assert found["weight"].tolist() == [4 / 6, 2 / 6, 0.0]


def test_support_recovery_counts_both_kinds_of_error():
    found = support(XI, X, np.array([0.45, 0.5, 1.0, 5.0]))
    assert found["tpr"].tolist() == [1.0, 1.0, 0.5, 0.0]
    assert found["fpr"].tolist() == [0.5, 0.25, 0.25, 0.0]  # abs(x) > 0.5 leaves out x = -0.5
    assert found["misclassified"].tolist() == [2 / 6, 1 / 6, 2 / 6, 2 / 6]


def test_without_zeros_in_the_feature_there_is_no_false_positive_rate():
    found = support(np.ones(4), np.array([0.1, 2.0, -3.0, 0.2]), np.array([1.0]))
    assert np.isnan(found["fpr"][0])
    assert found["misclassified"].tolist() == [0.5]


def test_order_parameters():
    found = order_parameters(XI, X, parse_formula("sign(x)"))
    assert found[OVERLAP] == pytest.approx(5.2 / 6)
    assert found[PENALTY] == pytest.approx(6.5 / 6)
    assert found["largest"] == pytest.approx(9 / 6)


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        (run_vector, make_rule(prior={"sparse": 0.25}, phi="0.3*sign(x)")),
        (run_vector, make_pca("0.3*sign(x)", {"sparse": 0.25})),
    ],
    ids=["ICA", "PCA"],
)
def test_kept_arrays_have_the_shapes_of_their_outputs_and_belong_together(run, rule):
    n, times = 200, np.array([0.0, 0.5, 1.5])
    plain, _ = run(rule, times, n, streams(n))
    assert set(plain) == {"Q", "R", "largest"}
    found, diverged = run(rule, times, n, streams(n), SAVE)
    assert diverged == ""
    sizes = {"snapshot": 2, "feature": 2, "x": 4, "edge": 5, "threshold": 2}
    for output in (*DENSITIES, *SUPPORT):
        assert found[output.name].shape == tuple(sizes[d] for d in output.dims)
    assert set(found) == {"Q", "R", "largest", "error"} | {o.name for o in DENSITIES + SUPPORT}
    # Keeping more does not change the trajectory; (x - xi)^2 has mean 2 - 2 Q.
    for name, values in plain.items():
        assert np.array_equal(found[name], values)
    assert found["error"] == pytest.approx(2 - 2 * found["Q"], rel=1e-12)
    inside = np.sum(found["density"] * np.diff(SAVE.edges), axis=-1)
    assert inside == pytest.approx(found["cdf"][..., -1] - found["cdf"][..., 0], rel=1e-12)
    assert found["weight"].tolist() == [0.75, 0.25]
    assert found["xi"] == pytest.approx([0.0, 2.0])
    mixed = found["weight"][1] * (1 - found["tpr"]) + found["weight"][0] * found["fpr"]
    assert found["misclassified"] == pytest.approx(mixed, rel=1e-12)


def test_a_histogram_that_covers_every_entry_integrates_to_one():
    save = Save((1.0,), tuple(np.linspace(-20, 20, 81)))
    for prior in ("dense", "gaussian", {"sparse_sign": 0.4}):
        found, _ = run_vector(make_pca(prior=prior), np.array([1.0]), 100, streams(100), save)
        total = np.sum(found["density"] * np.diff(save.edges), axis=-1)
        assert total == pytest.approx(np.ones_like(total), rel=1e-12)
        assert np.sum(found["weight"]) == pytest.approx(1.0)
        assert "tpr" not in found


@pytest.mark.parametrize("rule", [make_rule(prior={"sparse": 0.25}), make_pca()])
def test_snapshots_do_not_depend_on_the_output_times(rule):
    few, _ = run_vector(rule, np.array([0.0, 1.5]), 60, streams(60), SAVE)
    many, _ = run_vector(rule, np.linspace(0, 90, 301), 60, streams(60), SAVE)
    for name in ("density", "cdf", "tpr", "xi", "weight"):
        assert np.array_equal(few[name], many[name])


def test_snapshots_are_found_among_the_output_times_in_their_own_order():
    times = np.array([0.0, 0.1 + 0.2, 1.0])
    assert snapshot_rows((1.0, 0.3), times) == {2: [0], 1: [1]}
    with pytest.raises(HdicaError, match=r"snapshots: t = 0.5 is not allowed .* nearest is 0.3"):
        snapshot_rows((0.5,), times)


def test_each_snapshot_is_the_state_at_its_own_time():
    save = Save((2.0, 0.0), (0.0, 1.0), (1.0,))
    back, _ = run_vector(make_pca(), np.array([0.0, 2.0]), 50, streams(50), save)
    for row, t in enumerate(save.snapshots):
        one = Save((t,), save.x, save.thresholds)
        alone, _ = run_vector(make_pca(), np.array([t]), 50, streams(50), one)
        assert np.array_equal(back["cdf"][row], alone["cdf"][0])
    assert not np.array_equal(back["cdf"][0], back["cdf"][1])


def test_a_functional_may_not_take_the_name_of_an_order_parameter():
    xi = np.ones(4)
    with pytest.raises(HdicaError, match="functional 'largest' is not allowed"):
        observe(xi, xi, make_prior("dense"), parse_formula("0"), Save(functionals={"largest": "x"}))
    assert set(observe(xi, xi, make_prior("dense"), parse_formula("0"), NOTHING).at_times()) == {
        OVERLAP,
        PENALTY,
        "largest",
    }
