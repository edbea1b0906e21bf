import json
from pathlib import Path

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.limits.mean_field.steady.states import overlaps, steady_states
from hdica.limits.mean_field.transitions.continuation import branches, transition_curve, transitions
from tests.limits.families import ica, oist

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/steady_states.json").read_text())


def of(found, kind):
    return [
        (v, q, h)
        for v, q, h, k in zip(found.value, found.q, found.h, found.kind, strict=True)
        if k == kind
    ]


@pytest.mark.parametrize("span", [(1e-3, 100.0), (0.19, 0.6)])
def test_transitions_of_sparse_pca(span):
    golden = GOLDEN["oist_steady"]
    found = transitions(oist, *span)
    assert found.kind.tolist() == ["pitchfork", "junction", "fold"]
    assert np.all(np.diff(found.value) < 0)
    fold, corner = golden["fold"], golden["junction"]
    assert found.value == pytest.approx(
        [golden["omega_1"], corner["omega"], fold["omega_c"]], abs=1e-11
    )
    assert found.q == pytest.approx([0.0, corner["Q"], fold["Q_c"]], abs=1e-9)
    assert found.h == pytest.approx([0.0, 0.0, fold["h_c"]], abs=1e-10)
    assert np.all((found.error > 0) & (found.error < 1e-11))


@pytest.mark.parametrize(("beta", "subcritical"), [(0.05, False), (0.1, True), (0.17, True)])
def test_soft_thresholds_below_condensation(beta, subcritical):
    found = transitions(lambda omega: oist(omega, beta=beta), 0.02, 5.0)
    assert [v for v, _, _ in of(found, "pitchfork")] == pytest.approx([0.25], abs=1e-11)
    folds = of(found, "fold")
    assert len(folds) == (1 if subcritical else 0)
    assert all(v < 0.25 for v, _, _ in folds)
    assert not of(found, "junction")


@pytest.mark.deep
def test_without_regularizer_the_critical_step_sizes_in_closed_form():
    for source, case in GOLDEN["ica_cubic_phi0_fixed_points"]["cases"].items():
        found = transitions(lambda tau, s=source: ica(tau, s, phi="0"), 1e-3, 1.0)
        assert found.kind.tolist() == ["fold"]
        assert found.value == pytest.approx([case["tau_c"]], abs=1e-12)
        assert found.q**2 == pytest.approx([case["q_c"]], abs=1e-9)


@pytest.mark.deep
def test_a_fold_and_two_junctions_over_five_decades_of_the_step_size():
    found = transitions(ica, 1e-4, 10.0)
    case = GOLDEN["ica_l1_steady"]["cases"]["rademacher"]["0.1"]
    ((tau, q, h),) = of(found, "fold")
    assert (tau, q, 2 * h) == pytest.approx((case["tau_c"], case["Q_c"], case["d_c"]), abs=1e-9)
    # At Q = 0 the density condenses below tau = sqrt(2) beta/15.
    zero, informative = of(found, "junction")
    assert zero[:2] == pytest.approx((np.sqrt(2) * 0.1 / 15, 0.0), abs=1e-12)
    below, above = (steady_states(ica(informative[0] + d)) for d in (-1e-7, 1e-7))
    assert (below.kind[-2], above.kind[-2]) == ("condensed", "informative")


@pytest.mark.parametrize("source", ["rademacher", "uniform"])
def test_critical_step_size_as_the_regularizer_grows(source):
    golden = GOLDEN["tau_c_of_beta"]
    start = {"rademacher": (0.163, 0.91), "uniform": (0.0594, 0.83)}[source]
    curve = transition_curve(
        lambda tau, beta: ica(tau, source, beta), np.array(golden["beta"][1:]), start
    )
    assert curve.value == pytest.approx(golden[source][1:], abs=golden["tolerance"])
    assert np.all(curve.error < 1e-12)


@pytest.mark.deep
def test_a_fold_is_followed_into_the_junction_and_out_again():
    tau = np.array([0.5, 0.54, 0.56, 0.6])
    curve = transition_curve(lambda omega, t: oist(omega, t), tau, (0.1967, 0.503))
    assert np.all(np.isfinite(curve.value))
    corner = curve.h < 1e-12
    assert corner.tolist() == [False, True, True, False]
    for t, omega in zip(tau, curve.value, strict=True):
        sizes = [overlaps(oist(omega * f, t)).size for f in (1 - 1e-6, 1 + 1e-6)]
        assert sizes == [1, 5]
    at = transitions(lambda omega: oist(omega, 0.54), 0.05, 1.0)
    both = [of(at, kind)[0][0] for kind in ("fold", "junction")]
    assert both == pytest.approx([curve.value[1]] * 2, abs=1e-12)


def test_at_a_junction_where_two_states_merge_there_is_one_fold():
    found = transitions(lambda omega: oist(omega, 0.56), 0.05, 1.0)
    assert sorted(found.kind) == ["fold", "junction", "pitchfork"]
    at = [of(found, kind)[0][:2] for kind in ("fold", "junction")]
    assert at[0] == pytest.approx(at[1], abs=1e-11)


def test_a_crossing_without_mirror_symmetry_is_transcritical():
    found = transitions(lambda omega: oist(omega, beta=0.1, bias=0.2), 0.05, 1.0)
    crossing = of(found, "transcritical")
    assert [v for v, _, _ in crossing] == pytest.approx([0.25], abs=1e-11)
    assert not of(found, "pitchfork")
    negative = of(found, "fold")
    for v, q, _ in negative:
        sizes = [overlaps(oist(v + d, beta=0.1, bias=0.2)).size for d in (-1e-6, 1e-6)]
        assert abs(sizes[0] - sizes[1]) == 2, (v, q)


@pytest.mark.deep
def test_transitions_in_the_strength_of_the_regularizer():
    found = transitions(lambda beta: oist(0.3, beta=beta), 0.1, 0.6)
    # beta^2/tau^3 = omega at Q = 0, where m0 = 1 at beta = tau^2/sqrt(2).
    assert [v for v, _, _ in of(found, "pitchfork")] == pytest.approx(
        [np.sqrt(0.3 * 0.5**3)], abs=1e-11
    )
    assert of(found, "junction")[-1][:2] == pytest.approx((0.25 / np.sqrt(2), 0.0), abs=1e-11)
    ((beta, _, _),) = of(found, "fold")
    sizes = [overlaps(oist(0.3, beta=beta * f)).size for f in (1 - 1e-6, 1 + 1e-6)]
    assert sizes == [5, 1]


@pytest.mark.deep
def test_transitions_of_a_smooth_regularizer():
    def family(omega, beta):
        return oist(omega, beta=beta, phi="beta*tanh(5*x)")

    starts = {"fold": (0.195, 0.33), "junction": (0.197, 0.273), "pitchfork": (0.31, 0.0)}
    at = {
        kind: transition_curve(family, np.array([0.2]), start, kind).value[0]
        for kind, start in starts.items()
    }
    assert at["fold"] < at["junction"] < at["pitchfork"]
    for kind, sizes in (("fold", [1, 5]), ("pitchfork", [5, 3])):
        near = [overlaps(family(at[kind] * f, 0.2)).size for f in (1 - 1e-6, 1 + 1e-6)]
        assert near == sizes
    below, above = (steady_states(family(at["junction"] * f, 0.2)) for f in (1 - 1e-6, 1 + 1e-6))
    assert (below.kind[-2], above.kind[-2]) == ("informative", "condensed")


@pytest.mark.deep
@pytest.mark.parametrize("family", [oist, ica], ids=["oist", "ica"])
def test_branches_pass_through_all_states_and_no_others(family):
    found = branches(family, 0.01, 0.7)
    for value in (0.02, 0.1685, 0.22):
        met = []
        for one in found:
            side = one.parameter - value
            for i in np.flatnonzero(side[:-1] * side[1:] < 0):
                share = side[i] / (side[i] - side[i + 1])
                q = one.q[i] + share * (one.q[i + 1] - one.q[i])
                met.append((q, bool(one.stable[i] and one.stable[i + 1])))
        states = steady_states(family(value))
        upper = states.q >= 0
        assert sorted(q for q, _ in met) == pytest.approx(states.q[upper], abs=2e-3)
        assert [s for _, s in sorted(met)] == states.stable[upper].tolist()


@pytest.mark.deep
def test_branches_are_smooth_and_hold_their_transitions():
    found = branches(oist, 0.1, 2.0)
    assert len(found) == 2
    zero, informative = found
    assert np.all(zero.q == 0)
    assert np.abs(np.diff(informative.q)).max() < 0.03
    for value in transitions(oist, 0.1, 2.0).value:
        assert min(np.abs(b.parameter - value).min() for b in found) < 1e-11
    assert np.array_equal(informative.kind == "condensed", informative.bulk < 1)
    # Every point is a state: E x^2 = 1 fixes h by the other order parameters.
    for i in range(0, informative.q.size, 7):
        field = oist(float(informative.parameter[i]))
        q, r = float(informative.q[i]), float(informative.r[i])
        assert field.curvature(q, r, 0.5) == pytest.approx(2 * informative.h[i], abs=1e-8)


def test_empty_ranges_and_unknown_kinds_are_refused_in_a_sentence():
    with pytest.raises(HdicaError, match="low < high"):
        transitions(oist, 1.0, 1.0)
    with pytest.raises(HdicaError, match="'cusp' is not known"):
        transition_curve(lambda w, t: oist(w, t), np.array([0.5]), (0.19, 0.5), "cusp")
    with pytest.raises(HdicaError, match="no fold"):
        transition_curve(lambda w, t: oist(w, t), np.array([0.5]), (3.0, 0.1))
