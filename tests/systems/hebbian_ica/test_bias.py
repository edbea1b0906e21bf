"""What n leaves of the overlaps of Hebbian ICA at order 1/n, against chains and online ICA."""

import numpy as np
import pytest

import hdica
from hdica.systems.hebbian_ica import fluctuations as bias

ONE = {"mu": 0.05, "sources": ["uniform"], "start": {"overlap": 0.8}}
TWO = {
    "mu": 0.05, "sources": ["uniform", "rademacher"], "projections": 2,
    "start": {"overlap": [[0.7, 0.2], [-0.1, 0.8]]},
}  # fmt: skip


def test_a_direction_moves_as_online_ica_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Q stays 1, as if it were made so after every step: m of online ICA."""
    known = bias._Samples.at

    def projected(self: object, r: np.ndarray, mu: float, alpha: float) -> tuple:
        # As alpha grows Delta vanishes, and with it all that is not of a direction.
        return known(self, r, mu, 1e12)

    monkeypatch.setattr(bias._Samples, "at", projected)
    monkeypatch.setattr(bias, "_shift", lambda psi, delta, alpha: 0.0 * psi)
    times = [5.0, 20.0]
    found = hdica.limit(hdica.HebbianICA(**ONE), times=times, bias=True)
    start = {"overlap": 0.8, "exact": True}
    online = hdica.OnlineICA(tau=0.05, source="uniform", start=start)
    other = hdica.limit(online, times=times, bias=True)
    np.testing.assert_allclose(found.R_bias.values.ravel(), other.Q_bias, rtol=1e-4, atol=1e-5)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("settings", "n", "seeds", "told"),
    [
        ({**ONE, "alpha": 0.1}, 300, 4000, 2),
        ({**ONE, "alpha": 0.8}, 300, 4000, 0),
        ({**TWO, "alpha": 0.15}, 400, 8000, 3),
    ],
    ids=["slow", "fast", "matrix"],
)
def test_means_of_chains_are_where_it_says(settings: dict, n: int, seeds: int, told: int) -> None:
    system, times = hdica.HebbianICA(**settings), [5.0, 20.0]
    limit = hdica.limit(system, times=times, bias=True)
    runs = hdica.simulate(system, n=n, times=times, seeds=seeds, method="chain")
    values = runs.R.transpose("seed", "time", ...).values
    error = n * values.std(axis=0, ddof=1) / np.sqrt(seeds)
    off = n * (values.mean(axis=0) - limit.R.transpose("time", ...).values)
    term = limit.R_bias.transpose("time", ...).values
    # The next order: at most a share of 20/n of the largest term.
    assert np.all(np.abs(off - term) < 4 * error + 20 / n * np.abs(term).max()), (off, term, error)
    assert np.sum(np.abs(off) > 4 * error) >= told


def test_alpha_counts_at_this_order_and_not_before() -> None:
    slow, fast = (hdica.HebbianICA(**ONE, alpha=alpha) for alpha in (0.1, 0.5))
    one, other = (hdica.limit(s, times=[20.0], bias=True) for s in (slow, fast))
    np.testing.assert_array_equal(one.R, other.R)
    assert float(one.R_bias[0, 0, 0]) < float(other.R_bias[0, 0, 0]) - 0.1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mu": {"steps": {"times": [2], "values": [0.1, 0.05]}}}, "a step size that jumps"),
        ({"alpha": 1.2}, "alpha"),
        ({"batch": 4}, "central limit theorem"),
    ],
)
def test_what_has_none_says_so(change: dict, sentence: str) -> None:
    with pytest.raises(hdica.HdicaError, match=sentence):
        hdica.limit(hdica.HebbianICA(**{**ONE, **change}), times=[1.0], bias=True)
