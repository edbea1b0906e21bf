"""From which n on the central limit theorem holds: chains are normal there, and not below."""

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.limits.overlap.fixed_points import find_folds, repelling
from hdica.systems.online_ica.system import drift

RUNS = 600


def _normal(system: object, n: int, time: float) -> float:
    """P-value that chains at a time are normal with theory's mean and standard deviation."""
    limit = hdica.limit(system, times=[time], bands=True, bias=True)
    runs = hdica.simulate(system, n=n, times=[time], seeds=RUNS, method="chain").Q.values[:, 0]
    center = float(limit.Q[0] + limit.Q_bias[0] / n)
    return stats.kstest(runs, stats.norm(center, float(limit.Q_sd[0]) / n**0.5).cdf).pvalue


# Beside Q_u, where runs part, past a fold, where they linger, and beside a Q_u that moves.
@pytest.mark.deep
@pytest.mark.parametrize(
    ("tau", "overlap", "time"),
    [(0.02, 0.38, 150.0), (0.17, 0.98, 40.0), ("0.1/(1+t/20)", 0.53, 100.0)],
    ids=["Q_u", "fold", "moving"],
)
def test_far_above_that_n_runs_are_normal_and_below_it_they_are_not(
    tau: float | str, overlap: float, time: float
) -> None:
    ica = hdica.OnlineICA(tau=tau, source="rademacher", start={"overlap": overlap, "exact": True})
    least = float(hdica.limit(ica, times=[time]).Q_from_n[0])
    assert _normal(ica, int(10 * least), time) > 1e-3
    assert _normal(ica, int(0.25 * least), time) < 1e-6


@pytest.mark.deep
def test_a_path_that_crosses_a_moving_unstable_state_is_no_reason_to_wait() -> None:
    """Where Q_u passes the path within an instant, and runs of a small n are normal."""
    ica = hdica.OnlineICA(
        tau="0.6/(1+t/5)",
        source="rademacher",
        nonlinearity="-clip(x,-1,1)",
        start={"overlap": 0.5, "exact": True},
        batch=4,
    )
    times = np.linspace(0.0, 40.0, 401)
    assert np.all(hdica.limit(ica, times=times).Q_from_n < 50)
    assert _normal(ica, 50, 40.0) > 1e-3


def test_a_schedule_that_hardly_changes_says_nearly_what_a_constant_says() -> None:
    least = [
        float(hdica.limit(ica, times=[150.0]).Q_from_n[0])
        for ica in (
            hdica.OnlineICA(tau=tau, source="rademacher", start={"overlap": 0.38, "exact": True})
            for tau in (0.02, "0.02 + 1e-9*t")
        )
    ]
    assert least[1] == pytest.approx(least[0], rel=0.5)


def test_it_is_what_the_rule_says_where_both_parts_are_known() -> None:
    """Oja: Q_u = 0, the spread of a start of given overlap, and no earlier time is nearer."""
    pca = hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 0.3})
    found = hdica.limit(pca, times=[0.0, 5.0], method="ode")
    assert float(found.Q_from_n[0]) == pytest.approx(9 * float(found.Q_sd[0]) ** 2 / 0.3**2)
    assert float(found.Q_from_n[1]) >= float(found.Q_from_n[0])


def test_above_a_fold_the_roots_off_the_line_repel() -> None:
    ica = hdica.OnlineICA(tau=0.05, source="rademacher")
    folds = find_folds(drift(ica))
    at = int(np.argmax(folds.q))
    fold, place = float(folds.tau[at]), float(folds.q[at])
    below, above = (repelling(drift(ica), fold * s) for s in (0.99, 1.01))
    nearest = [one[np.argmin(np.abs(one - place))] for one in (below, above)]
    assert nearest[0].imag == 0
    assert nearest[0].real < place
    assert abs(nearest[1].imag) > 0.01
    assert nearest[1].real == pytest.approx(place, abs=0.01)


def test_where_runs_start_at_an_unstable_state_no_n_is_enough() -> None:
    for tau in (0.5, "0.5/(1 + t)"):
        pca = hdica.SparsePCA(tau=tau, omega=1.0, start={"overlap": 0.0})
        assert np.isinf(hdica.limit(pca, times=[1.0], method="ode").Q_from_n.values).all()
