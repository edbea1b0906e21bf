"""Fields that do not go together are refused in one sentence, never passed over."""

import numpy as np
import pytest

import hdica
from hdica.systems.system import record_of

MOVES = {"prior": "gaussian", "motion": {"exchange": 0.1}, "start": {"overlap": 0.5}}
ROWS = np.random.default_rng(1).standard_normal((12, 5))


def refused(system, method):
    named = next(one for one in record_of(system).methods if one.name == method)
    return named.scope.refuses(system)


@pytest.mark.parametrize("method", ["entries", "closed", "ornstein_uhlenbeck", "chain"])
def test_methods_for_a_feature_that_stays_refuse_one_that_moves(method):
    moving = hdica.OnlineICA(tau=0.05, **MOVES)
    assert "stays" in refused(moving, method)
    still = hdica.OnlineICA(tau=0.05, prior="gaussian", start={"overlap": 0.5})
    assert not refused(still, method)


def test_first_passages_refuse_a_feature_that_moves():
    fields = {"nu": 1.0, "start": {"overlap": 0}}
    moves = MOVES | fields
    assert "stays" in refused(hdica.OnlineICA(**moves), "escape_times")
    assert not refused(hdica.OnlineICA(**fields), "escape_times")


def test_given_samples_refuse_a_feature_that_moves():
    moves = MOVES | {"start": {"normal": {"mean": 0, "var": 1}}}
    for system in (hdica.OnlineICA, hdica.SparsePCA):
        assert "stays" in refused(system(tau=0.05, data=ROWS, **moves), "blind")
        still = {"prior": "gaussian", "start": moves["start"]}
        assert not refused(system(tau=0.05, data=ROWS, **still), "blind")


@pytest.mark.parametrize("method", ["fixed_points", "branches", "critical", "drift"])
def test_steady_states_refuse_a_sign_that_goes_with_the_side_of_the_start(method):
    """Their results are kept for every start: one of the other side would be told wrongly."""
    skewed = {"tau": 0.05, "source": {"chi2": 4}, "sign": "auto"}
    sided = hdica.OnlineICA(nonlinearity="x**2", **skewed)
    assert "not odd" in refused(sided, method)
    assert not refused(hdica.OnlineICA(**skewed), method)
    assert not refused(sided, "ode")


@pytest.mark.deep
def test_batches_times_and_signals_agree_between_methods():
    """Q by every limit that takes them together."""
    times = [0, 2, 6]
    fields = {"tau": 0.4, "omega": "1 + 0.5*sin(t)", "batch": 3, "start": {"overlap": 0.3}}
    pca = hdica.SparsePCA(**fields)
    ode = hdica.limit(pca, times=times, method="ode")["Q"]
    for method in ("pde", "ornstein_uhlenbeck"):
        found = hdica.limit(pca, times=times, method=method)["Q"]
        assert float(np.abs(found - ode).max()) < 1e-7
    # A step of all entries costs n, and there are n of them in a unit of time.
    seen = hdica.simulate(pca, n=2000, times=times, seeds=16, method="entries")["Q"]
    error = seen.std("seed", ddof=1) / np.sqrt(seen.sizes["seed"])
    assert np.all(np.abs(seen.mean("seed") - ode) < 5 * error + 1e-3)
    for changes in ({"batch": 1}, {"omega": 1}):
        other = hdica.limit(pca.model_copy(update=changes), times=times, method="ode")["Q"]
        assert np.any(np.abs(seen.mean("seed") - other) > 5 * error + 1e-3), changes
