"""Relaxation rates that differ by more than a double holds, against mpmath in 80 digits."""

import mpmath as mp
import numpy as np
import pytest

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.limits.mean_field.steady import stability as module
from hdica.limits.mean_field.steady.closure import close
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.mean_field.steady.stability import PANELS, graded_modes, relaxation_modes
from hdica.limits.mean_field.steady.states import steady_states
from hdica.systems.system import record_of

EDGE = 2
SHAPE = confinement(parse_formula("sign(x)*where(abs(x) < 2, 1, 0)"))


def _mismatch(rate, a, slope, odd):
    """Wronskian at the edge of a capped potential of the solutions from 0 and from infinity."""
    # f'' = V' f' - rate f as a power series from 0, where V' = 2 a x + slope.
    c = [mp.mpf(0), mp.mpf(1)] if odd else [mp.mpf(1), mp.mpf(0)]
    for j in range(2, 400):
        rise = 2 * a * (j - 2) * c[j - 2] + slope * (j - 1) * c[j - 1] - rate * c[j - 2]
        c.append(rise / (j * (j - 1)))
    inner = mp.fsum(v * mp.mpf(EDGE) ** j for j, v in enumerate(c))
    inner_slope = mp.fsum(j * v * mp.mpf(EDGE) ** (j - 1) for j, v in enumerate(c) if j)
    order, z = -rate / (4 * a), a * EDGE**2
    outer = mp.hyperu(order, mp.mpf(1) / 2, z)
    outer_slope = -order * mp.hyperu(order + 1, mp.mpf(3) / 2, z) * 2 * a * EDGE
    return inner_slope * outer - inner * outer_slope


def _exact(a, slope, odd, near):
    with mp.workdps(80):
        a, slope = mp.mpf(a), mp.mpf(slope)
        # Beside the rate of a plateau alone, 2 a times an odd number.
        at = near * 2 * a
        return float(
            mp.findroot(
                lambda rate: _mismatch(rate, a, slope, odd),
                (at * mp.mpf("0.999999"), at * mp.mpf("1.000001")),
                solver="secant",
                tol=1e-60,
                verify=False,
            )
        )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("a", "slope"), [(1e-8, 14.0), (1e-13, 23.0), (3e-19, 33.0), (5e-23, 40.0)]
)
def test_slow_rates_of_a_plateau_have_all_digits(a, slope):
    modes = relaxation_modes(SHAPE, a, slope, 0.0)
    exact = sorted(_exact(a, slope, odd, near) for near in (1, 3) for odd in (True, False))
    assert modes.rate[:4] == pytest.approx(exact, rel=1e-8)
    # Covariances, and the Dirichlet form of x^2, in which the plateau is all that counts.
    square = 1 / (2 * a) * np.sum(modes.x**2)
    assert np.all(modes.rate > 0)
    assert np.sum(modes.rate * modes.square**2) == pytest.approx(8 * a * square, rel=1e-5)


def test_rounding_took_these_rates_away(monkeypatch):
    monkeypatch.setattr(module, "_is_lost", lambda rate: False)
    rate = relaxation_modes(SHAPE, 3e-19, 33.0, 0.0).rate
    exact = _exact(3e-19, 33.0, True, 1)
    assert rate[0] <= 0 or abs(rate[0] / exact - 1) > 1


@pytest.mark.parametrize(
    ("text", "row"),
    [("0", (0.8, 0.0, 1.1)), ("sign(x)", (0.3, 2.0, 0.9)), ("0.2*tanh(5*x)", (0.3, 2.0, 0.9))],
)
def test_both_algorithms_agree_where_both_are_good(text, row):
    shape = confinement(parse_formula(text))
    plain = relaxation_modes(shape, *row)
    rate, coefficients = graded_modes(shape, *row, PANELS)
    assert rate[:8] == pytest.approx(plain.rate[:8], rel=1e-9)
    for one, other in zip(coefficients, (plain.x, plain.square, plain.energy), strict=True):
        assert np.abs(one[:6]) == pytest.approx(np.abs(other[:6]), abs=1e-9)


def _field(strength):
    system = hdica.OnlineICA(
        tau=0.02,
        source="uniform",
        nonlinearity="x**3",
        regularizer=f"{strength}*sign(x)*where(abs(x) < 2, 1, 0)",
        prior="dense",
        start={"overlap": 0.5},
    )
    return record_of(system).mean_field(system)


def _second(a, slope):
    """E x^2 of exp{-a x^2 - slope min(|x|, 2)} in 80 digits."""
    with mp.workdps(80):
        a, slope = mp.mpf(a), mp.mpf(slope)
        cuts = [0, 1 / slope, 10 / slope, EDGE]
        core = [mp.quad(lambda x, j=j: x**j * mp.exp(-a * x * x - slope * x), cuts) for j in (0, 2)]
        far = mp.exp(-slope * EDGE)
        mass = far * mp.sqrt(mp.pi / a) / 2 * mp.erfc(mp.sqrt(a) * EDGE)
        tail = mp.gammainc(mp.mpf(3) / 2, a * EDGE**2) / (2 * a ** mp.mpf("1.5"))
        return float((core[1] + far * tail) / (core[0] + mass))


@pytest.mark.deep
@pytest.mark.parametrize("strength", [2.2, 3.0, 4.0, 5.0])
def test_a_plateau_carries_the_square_of_a_steady_state(strength):
    field = _field(strength)
    state = close(field, np.zeros(1))
    slope = float(state.k[0]) * strength
    assert _second(float(state.a[0]), slope) == pytest.approx(1.0, abs=1e-9)
    # The control: a multiplier that is wrong by 1 %.
    assert abs(_second(1.01 * float(state.a[0]), slope) - 1.0) > 1e-3
    states = steady_states(field)
    assert states.q.tolist() == [0.0]
    assert states.kind.tolist() == ["uninformative"]
    assert states.stable.all()
    exact = _exact(float(state.a[0]), slope, True, 1)
    assert states.growth == pytest.approx([-float(state.g[0]) * exact], rel=1e-6)
