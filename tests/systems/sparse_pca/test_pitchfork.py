"""Where Oja's method begins to learn: its steady overlap at n, by chains and by the diffusion."""

from __future__ import annotations

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.systems.system import systems

METHODS = {method.name: method for method in systems()["SparsePCA"].methods}
TAU, N, RUNS = 0.5, 400, 96


def _oja(omega: float, **more) -> hdica.SparsePCA:
    return hdica.SparsePCA(tau=TAU, omega=omega, start={"overlap": 0.0}, **more)


def _steady(omega: float, n: int = N) -> dict[str, float]:
    found = METHODS["steady_diffusion"].run(_oja(omega), np.array([1.0]), n, None, NOTHING)
    return {name: float(value) for name, value in found.values.items()}


def _chains(omega: float) -> np.ndarray:
    """Mean of Q^2 over the later times of each run; the slowest time is (2 n/(V B))^(1/2) = 128."""
    times = np.linspace(600.0, 2400.0, 181)
    trials = [(_oja(omega), seed) for seed in range(RUNS)]
    found = METHODS["chain"].run_all(trials, times, N, NOTHING)
    return np.array([(one.values["Q"] ** 2).mean() for one in found])


@pytest.mark.parametrize("omega", [0.22, 0.25, 0.3])
def test_chains_have_the_steady_square_of_the_diffusion(omega: float) -> None:
    square, known = _chains(omega), _steady(omega)
    error = square.std() / RUNS**0.5
    assert abs(square.mean() - known["predicted"]) < 3.5 * error
    # Neither that of another signal, nor a law with the noise of elsewhere, of order 1/n.
    assert abs(square.mean() - _steady(omega + 0.02)["predicted"]) > 3.5 * error
    assert abs(square.mean() - known["unit"] ** 2 * known["law"]) > 10 * error


def test_the_square_falls_as_the_root_of_n() -> None:
    few, many = _steady(0.25, 1000), _steady(0.25, 100_000)
    assert few["scaled"] == many["scaled"] == pytest.approx(0.0, abs=1e-9)
    assert few["unit"] / many["unit"] == pytest.approx(10.0)
    assert few["predicted"] / many["predicted"] == pytest.approx(10.0, rel=0.03)


def test_what_has_no_pitchfork_is_refused() -> None:
    refuses = METHODS["steady_diffusion"].scope.refuses
    assert refuses(_oja(0.3)) == ""
    assert refuses(_oja(0.3, regularizer="0.2*x")) == ""
    assert "regularizer" in refuses(_oja(0.3, regularizer="0.2*sign(x)"))
    assert "tau" in refuses(_oja(0.3).model_copy(update={"tau": "1/(1 + t)"}))
    assert "motion" in refuses(_oja(0.3, motion={"exchange": 0.01}, prior="gaussian"))
    with pytest.raises(HdicaError, match="born"):
        # Without a signal the drift has no cubic term.
        METHODS["steady_diffusion"].run(_oja(0.0), np.array([1.0]), 100, None, NOTHING)
