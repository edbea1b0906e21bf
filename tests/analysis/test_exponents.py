import numpy as np
import pytest

from hdica.verdict.ladder import Ladder
from hdica.verdict.powers import bias_exponent, fluctuation_exponent
from tests.analysis.known import LIMIT, NO_ERROR, PROFILE, Law

N = [100, 300, 1000, 3000]


def covered(found, truth):
    return np.mean([f.low <= truth <= f.high for f in found])


@pytest.mark.parametrize("a", [0.5, 0.35])
def test_fluctuation_exponent_and_its_interval(a):
    rng = np.random.default_rng(5)
    found = [fluctuation_exponent(Law(a=a).draw(rng, N, 16)) for _ in range(100)]
    assert np.mean([f.value for f in found]) == pytest.approx(a, abs=0.015)
    assert covered(found, a) > 0.9
    if a != 0.5:
        assert covered(found, 0.5) < 0.2


@pytest.mark.deep
@pytest.mark.parametrize(("b", "c"), [(1.0, 25.0), (0.5, 1.5)])
def test_bias_exponent_and_its_interval(b, c):
    rng = np.random.default_rng(6)
    found = [bias_exponent(Law(b=b, c=c).draw(rng, N, 24), LIMIT, NO_ERROR) for _ in range(50)]
    assert all(f.resolved for f in found)
    assert np.median([f.value for f in found]) == pytest.approx(b, abs=0.05)
    assert covered(found, b) > 0.85
    assert covered(found, 1.5 - b) < 0.1


def test_a_bias_lost_in_noise_has_no_exponent():
    rng = np.random.default_rng(7)
    found = [bias_exponent(Law(c=0.0).draw(rng, N, 16), LIMIT, NO_ERROR) for _ in range(60)]
    assert sum(f.resolved for f in found) <= 2
    lost = next(f for f in found if not f.resolved)
    assert np.isnan([lost.value, lost.low, lost.high]).all()


def test_a_single_n_has_no_exponents():
    runs = Law().draw(np.random.default_rng(8), [1000], 16)
    assert not fluctuation_exponent(runs).resolved
    assert not bias_exponent(runs, LIMIT, NO_ERROR).resolved


def test_a_bent_power_law_is_fitted_from_where_it_is_straight():
    rng = np.random.default_rng(9)
    runs = Law(c=20.0, sigma=0.1).draw(rng, [20, 100, 300, 1000], 48)
    bent = Ladder(runs.n, (runs.runs[0] + 1.5 * PROFILE, *runs.runs[1:]))
    found = bias_exponent(bent, LIMIT, NO_ERROR)
    assert found.n_from == 100
    assert found.low <= 1.0 <= found.high
