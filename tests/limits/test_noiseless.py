"""States at Q = +-1 where the diffusion vanishes: f = x^3 - x on a source of +-1."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

ENDS = {
    "0": 1.0,
    "0.3*x": 1.0,
    "0.5*sign(x)": 0.75,
    "0.5*tanh(x)": (2 - 0.5 * np.tanh(1) + 0.5 / np.cosh(1) ** 2) / 2,
    "0.2*x*abs(x)": 1.1,
    "x**3": 2.0,
}
"""Step size at which Q = 1 loses its stability: b = 2 tau and G = 4 tau^2 there, so that it is
(2 - phi(1) + phi'(1))/2."""


def modulus(tau, regularizer="0", nonlinearity="x**3 - x", overlap=0.7, **rest):
    return hdica.OnlineICA(
        tau=tau,
        source="rademacher",
        nonlinearity=nonlinearity,
        regularizer=regularizer,
        start={"overlap": overlap},
        **rest,
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("regularizer", list(ENDS))
@pytest.mark.parametrize("share", [0.1, 0.6, 0.98, 1.02, 3.0])
def test_the_ends_are_listed_and_stable_below_their_step_size(regularizer, share):
    found = hdica.fixed_points(modulus(share * ENDS[regularizer], regularizer))
    q, stable = found.Q.values, found.stable.values
    assert (q[0], q[-1]) == pytest.approx((-1.0, 1.0), abs=1e-13)
    assert stable[0] == stable[-1] == (share < 1)
    # Between two stable states there is one that is not.
    assert np.all(np.diff(stable.astype(int)) != 0)
    assert np.all(found.kind.values[[0, -1]] == "informative")


@pytest.mark.parametrize("regularizer", list(ENDS))
@pytest.mark.parametrize("share", [0.8, 1.3])
def test_a_simulation_stays_at_an_end_exactly_where_that_is_stable(regularizer, share):
    near = modulus(share * ENDS[regularizer], regularizer, overlap=0.9999)
    q = hdica.simulate(near, n=500, times=[0, 20], seeds=4, method="vector").Q.values[:, -1]
    assert np.all(q > 0.999) if share < 1 else np.all(np.abs(q) < 0.9), q


@pytest.mark.deep
@pytest.mark.parametrize("nonlinearity", ["x**3 - x", "x**5 - x", "sin(pi*x)", "x*(abs(x) - 1)"])
def test_no_rounding_puts_an_end_outside(nonlinearity):
    for tau in np.geomspace(1e-3, 3, 60):
        q = hdica.fixed_points(modulus(tau, nonlinearity=nonlinearity)).Q.values
        assert (q[0], q[-1]) == pytest.approx((-1.0, 1.0), abs=1e-9)
        assert np.all(np.abs(q[1:-1]) < 1 - 1e-6)


@pytest.mark.deep
def test_no_end_is_steady_where_the_regularizer_moves_it_or_noise_does():
    sparse = modulus(0.3, "0.2*x**3", prior="gaussian")
    assert np.all(np.abs(hdica.fixed_points(sparse).Q) < 1)
    assert np.all(np.abs(hdica.fixed_points(modulus(0.3, "0.2*x**3", "x**3")).Q) < 1)


def test_a_feature_of_values_on_which_the_regularizer_is_linear_keeps_its_end():
    """A zero entry is held by the jump of sign(x), the others all have the same size."""
    found = hdica.fixed_points(modulus(0.3, "0.2*sign(x)", prior={"sparse_sign": 0.25}))
    # phi(2)/2 = 0.1 at the entries of size 2: b - B 0.1 = 2 h.
    assert found.Q.values[-1] == 1.0
    assert found.h.values[-1] == pytest.approx(0.3 * (2 - 0.1) / 2, rel=1e-12)
    assert found.R.values[-1] == pytest.approx(0.1, rel=1e-12)
    assert found.stable.values[-1]


def test_nothing_is_followed_along_a_parameter_where_the_noise_vanishes():
    with pytest.raises(HdicaError, match="the diffusion vanishes at Q = 1 or -1 .* at one"):
        hdica.critical(modulus(0.3, "0.2*sign(x)"), "tau")
