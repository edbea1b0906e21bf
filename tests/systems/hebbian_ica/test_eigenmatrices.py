"""Eigenmatrices (35) that users get, against a numerical Jacobian of the corrected limit (17)."""

import numpy as np
import pytest

import hdica
from hdica.ingredients.save import NOTHING
from hdica.systems.system import methods_of

# Cumulants kappa_4 of the sources, and the sign of sigma that holds each with phi = x^3.
KAPPA = {"uniform": -1.2, "rademacher": -2.0, "laplace": 3.0}
SIGN = {"uniform": -1, "rademacher": -1, "laplace": 1}
CASES = [
    (1, ["uniform"]),
    (2, ["uniform", "laplace"]),
    (3, ["uniform", "rademacher", "laplace"]),
    (1, ["rademacher", "uniform"]),
    (2, ["uniform", "laplace", "rademacher"]),
    (2, ["uniform"]),
    (3, ["uniform", "rademacher"]),
    (4, ["laplace", "uniform"]),
]
TALL = [case for case in CASES if case[0] > len(case[1])]


def asked(projections, sources):
    signs = [SIGN[sources[i % len(sources)]] for i in range(projections)]
    system = hdica.HebbianICA(sources=sources, projections=projections, sigma=signs, mu=0.01)
    return signs, hdica.asymptotics(system)


def drift(r, signs, sources):
    """What (17) is for mu -> 0 over mu, by the closed averages of y^3 at Cov(y) = I."""
    sigma, kappa = np.diag(signs).astype(float), np.array([KAPPA[s] for s in sources])
    phi_s = 3 * r + kappa * r**3
    phi_y = 3 * np.eye(len(signs)) + (kappa * r**3) @ r.T
    return sigma @ phi_s - 0.5 * (sigma @ phi_y + phi_y.T @ sigma) @ r


def along(v, signs, sources, step=1e-4):
    """J V: the derivative of the drift at R* = I in the direction V, to fourth order."""
    best = np.eye(*v.shape)

    def difference(h):
        return (drift(best + h * v, signs, sources) - drift(best - h * v, signs, sources)) / (2 * h)

    return (4 * difference(step) - difference(2 * step)) / 3


def modes(found):
    for i, j in np.ndindex(found.sizes["projection"], found.sizes["source"]):
        here = found.isel(projection=i, source=j)
        yield (i, j), here["V"].transpose("row", "column").values, float(here["eigenvalue"])


@pytest.mark.parametrize(("projections", "sources"), CASES, ids=str)
def test_every_eigenmatrix_belongs_to_its_eigenvalue(projections, sources):
    signs, found = asked(projections, sources)
    assert found["V"].dims == ("row", "column", "projection", "source")
    every = list(modes(found))
    for _, v, value in every:
        assert along(v, signs, sources) == pytest.approx(value * v, abs=1e-7)
    basis = np.array([v.ravel() / np.linalg.norm(v) for _, v, _ in every])
    assert abs(np.linalg.det(basis)) > 1e-3


@pytest.mark.parametrize(("projections", "sources"), TALL, ids=str)
def test_the_printed_row_beyond_the_sources_is_twice_too_fast(projections, sources):
    signs, found = asked(projections, sources)
    xi = found["xi"].values
    for (i, j), v, value in modes(found):
        if i < len(sources):
            continue
        assert value == pytest.approx(-xi[j] / 2, rel=1e-9)
        printed = -xi[j] * v
        off = along(v, signs, sources) - printed
        assert np.abs(off).max() == pytest.approx(xi[j] / 2, rel=1e-6)


def test_a_store_has_them_only_where_it_asks_for_them():
    (method,) = (m for m in methods_of("HebbianICA").values() if m.name == "asymptotics")
    system = hdica.HebbianICA(sources=["uniform"], sigma=[-1], mu=0.01)
    assert "V" not in method.run(system, np.array([0.0]), None, None, NOTHING).values
