"""Escape of online ICA at a fixed step size: n C exp(n S) steps."""

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.limits.passage.action import action

ZERO = {"overlap": 0, "exact": True}
GOLDEN = [  # computed independently: source, tau, Q_u, S, exponent of the diffusion, C
    ("uniform", 0.01, 0.258094811287, 0.0179877501718, 0.0180352722314, 2556.81098053),
    ("uniform", 0.04, 0.575042621694, 0.116148535054, 0.121147285911, 110.018244465),
    ("rademacher", 0.08, 0.609668827177, 0.186698538952, 0.235312379239, 20.8408778979),
]


def ica(source, **step):
    return hdica.OnlineICA(source=source, start=ZERO, **step)


@pytest.mark.parametrize(("source", "tau", "top", "s", "wrong", "c"), GOLDEN)
def test_golden_exponents(source, tau, top, s, wrong, c):
    found = hdica.escape_exponent(ica(source, tau=tau))
    assert float(found["Q_unstable"]) == pytest.approx(top, rel=1e-9)
    assert float(found["S"]) == pytest.approx(s, rel=1e-8)
    assert float(found["S_diffusion"]) == pytest.approx(wrong, rel=1e-8)
    assert float(found["prefactor"]) == pytest.approx(c, rel=1e-3)


@pytest.mark.parametrize(("source", "tau"), [("uniform", 0.04), ("rademacher", 0.08)])
def test_the_exact_time_tends_to_it_as_one_over_n(source, tau):
    """The exponent of a diffusion does not."""
    known = hdica.escape_exponent(ica(source, tau=tau))
    off, wrong = {}, {}
    for n in (80, 160):
        exact = float(hdica.escape_time(ica(source, tau=tau), n=n)["mean"])
        off[n] = exact / float(hdica.escape_time(ica(source, tau=tau), n=n, method="wkb")["mean"])
        wrong[n] = off[n] * math.exp(n * float(known["S"] - known["S_diffusion"]))
    assert (off[80] - 1) / (off[160] - 1) == pytest.approx(2, rel=0.2)
    assert abs(off[160] - 1) < 0.06
    assert abs(wrong[160] - 1) > 0.3


def test_small_steps_have_the_exponent_of_the_trap():
    """n S -> 3 P nu/(4 C), with the next order in tau: 1 + 15 (1 - kappa4) tau/(2 |kappa4|)."""
    cube = make_source("uniform")
    k = 1.2
    for tau in (1e-3, 5e-4):
        s = action(lambda u: u**3, cube, tau).exponent
        lead = 15 * tau / (8 * k)
        assert s / lead - 1 == pytest.approx(15 * (1 + k) * tau / (2 * k), rel=0.05)
        trap = hdica.escape_time(ica("uniform", nu=100 * tau))
        assert float(trap["exponent"]) == pytest.approx(100 * lead, rel=1e-9)


def test_where_the_exact_equation_has_lost_its_digits_the_asymptotics_go_on():
    deep = ica("uniform", tau=0.04)
    with pytest.raises(HdicaError, match="WKB is the better the longer it is"):
        hdica.escape_time(deep, n=400)
    found = hdica.escape_time(deep, n=400, method="wkb")
    assert float(found["mean"]) == pytest.approx(
        400 * 110.018 * math.exp(400 * 0.1161485350) / 400**3, rel=1e-3
    )
    assert np.array_equal(found["survival"], np.exp(-found["age"]))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"source": "laplace", "nonlinearity": "-tanh(x)", "tau": 0.01}, "heavier than Gaussian"),
        ({"source": "uniform", "tau": 0.07}, "no unstable overlap .* below the critical step size"),
        ({"source": "uniform", "nu": 1.0}, "nu = 1.0 is not allowed .*give tau"),
        ({"source": "uniform", "tau": "0.1/(1 + t)"}, "a constant step"),
        ({"source": "uniform", "tau": 0.01, "regularizer": "0.1*sign(x)"}, "only for the regul"),
    ],
)
def test_refusals_say_what_is_allowed(given, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.escape_exponent(hdica.OnlineICA(start=ZERO, **given))
