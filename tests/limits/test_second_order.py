"""What n leaves of one overlap at order 1/n, against runs and numbers found otherwise."""

import math

import numpy as np
import pytest

import hdica
from hdica.ingredients.contrasts import parse_push
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import normal_products, products_of
from hdica.limits.overlap.drift import second_order

CUBE = parse_formula("x**3")
EXACT = {"overlap": 0.8, "exact": True}


# One step of the exact chain by quadrature at n = 1e5, n^2 (E Q' - Q) - n D; cubic f.
@pytest.mark.parametrize(
    ("source", "tau", "q", "wanted"),
    [("uniform", 0.05, 0.6, -0.00463616569074), ("rademacher", 0.02, 0.387, 0.00216084754972)],
)
def test_the_second_order_of_a_step(source: str, tau: float, q: float, wanted: float) -> None:
    at = np.array(q)
    found = second_order(products_of(CUBE, make_source(source))(at), at, tau)
    assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "source"),
    [("tanh(x)", "laplace"), ("sign(x)*x**2", "rademacher"), ("x**3", "uniform")],
)
def test_a_symmetric_source_has_a_mirrored_second_order(text: str, source: str) -> None:
    """With c -> -c the overlap turns and every sample stays: products with two c are even in Q."""
    at = products_of(parse_formula(text), make_source(source))
    q = np.array([0.2, 0.6, 0.9])
    right, left = at(q), at(-q)
    assert left.ggcc == pytest.approx(right.ggcc, rel=1e-7)
    assert left.c == pytest.approx(-right.c, rel=1e-7)
    assert second_order(left, -q, 0.02) == pytest.approx(-second_order(right, q, 0.02), rel=1e-7)


def _left(push, n: int, q: float, tau: float, batch: int, count: int) -> tuple[float, float]:
    """N^2 (Q' - Q) - n J of a step with one or two samples in n dimensions, drawn in NumPy.

    Its mean and standard error; the mean of J is D.
    """
    rng, s = np.random.default_rng([n, batch]), math.sqrt(1 - q * q)
    c = make_source("rademacher").sample(rng, count * batch).reshape(batch, count)
    e = rng.standard_normal((batch, count))
    u = q * c + s * e
    f = tau * push(u, c) / batch
    size = rng.chisquare(n - 2, count)
    far = f[0] ** 2 * size
    if batch == 2:
        along = rng.standard_normal(count)
        other = along**2 + rng.chisquare(n - 3, count)
        far += f[1] ** 2 * other + 2 * f[0] * f[1] * np.sqrt(size) * along
    first, second = q + (f * c).sum(0) / n, s + (f * e).sum(0) / n
    moved = first / np.sqrt(first**2 + second**2 + far / n**2) - q
    j = (f * c - q * f * u - q * f * f / 2).sum(0)
    left = n * n * moved - n * j
    return float(left.mean()), float(left.std() / math.sqrt(count))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("text", "tau"), [("tanh(c - u)", 2.0), ("c**3 - u**3/4", 0.4)])
def test_one_step_in_n_dimensions(text: str, tau: float, batch: int) -> None:
    push, q = parse_push(text), 0.6
    at = np.array(q)
    means = products_of(push, make_source("rademacher"))(at)
    wanted = float(second_order(means, at, tau, batch))
    found, error = _left(push.value, 400, q, tau, batch, 2_000_000)
    assert abs(found - wanted) < 4 * error + 0.02 * abs(wanted)
    # A batch is more than its samples one by one.
    wrong = -wanted if batch == 1 else batch * float(second_order(means, at, tau / batch))
    assert abs(found - wrong) > 8 * error


def test_normal_products_are_those_of_a_normal_source() -> None:
    q = np.linspace(-0.9, 0.9, 7)
    by_rule = normal_products(1.0, q)
    by_quadrature = products_of(parse_push("u"), make_source("gaussian"))(q)
    for one, other in zip(by_rule, by_quadrature, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


# From the equations of m and S alone, at a tolerance of 1e-10, by a program of its own.
def test_the_bias_of_runs_of_online_ica() -> None:
    ica = hdica.OnlineICA(tau=0.05, source="uniform", start=EXACT)
    found = hdica.limit(ica, times=[5, 20, 60], bias=True)
    wanted = [0.0191111706653, 0.0143720580301, -0.244792477107]
    np.testing.assert_allclose(found.Q_bias, wanted, atol=2e-8)


def test_the_bias_of_runs_of_ojas_method() -> None:
    pca = hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 0.3, "exact": True})
    found = hdica.limit(pca, times=[2, 5, 15], bias=True)
    wanted = [-1.05363543287, -1.20048095993, 0.358708975275]
    np.testing.assert_allclose(found.Q_bias, wanted, atol=2e-8)


# n times a standard error grows with the square root of n: fewer runs, of fewer steps, tell as much
# at a small n, as long as what is left of order 1/n is smaller than that.
N, SEEDS = 100, 16_000
CASES = [
    ("uniform", 0.05, {"overlap": 0.8}, "0", 1),
    ("uniform", 0.05, EXACT, "0.5*x", 1),
    ("rademacher", 0.1, {"overlap": 0.8}, "0", 3),
    ("rademacher", {"steps": {"times": [5], "values": [0.08, 0.03]}}, EXACT, "0", 1),
    ("rademacher", "0.1/(1 + t/5)", EXACT, "0", 1),
]


@pytest.mark.deep
@pytest.mark.parametrize(("source", "tau", "start", "phi", "batch"), CASES)
def test_the_mean_of_runs_lies_beyond_the_limit_by_m(
    source: str, tau: object, start: dict, phi: str, batch: int
) -> None:
    ica = hdica.OnlineICA(tau=tau, source=source, start=start, regularizer=phi, batch=batch)
    times = [0, 1, 4, 10]
    limit = hdica.limit(ica, times=times, bias=True)
    seeds = SEEDS // 2
    runs = hdica.simulate(ica, n=N, times=times, seeds=seeds, method="chain").Q
    error = runs.std("seed", ddof=1) / math.sqrt(seeds)
    off = N * (runs.mean("seed") - limit.Q)
    # What is left is of order 1/n, as large as m itself where n is 1.
    room = 4 * N * error + 3 * (1 + np.abs(limit.Q_bias)) / N
    assert (np.abs(off - limit.Q_bias) <= room).all()


@pytest.mark.deep
def test_a_wrong_bias_is_rejected() -> None:
    ica = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.8})
    limit = hdica.limit(ica, times=[60], bias=True)
    runs = hdica.simulate(ica, n=N, times=[60], seeds=SEEDS, method="chain").Q
    error = N * float(runs.std("seed", ddof=1)[0]) / math.sqrt(SEEDS)
    off = N * float(runs.mean() - limit.Q[0])
    assert abs(off) > 8 * error
    assert abs(off - float(limit.Q_bias[0])) < 4 * error + 6 / N


def test_what_has_no_bias_says_so() -> None:
    moving = hdica.OnlineICA(tau=0.05, prior={"sparse": 0.3}, motion={"exchange": 0.01})
    with pytest.raises(
        hdica.HdicaError, match="bias = True is not allowed where the feature moves"
    ):
        hdica.limit(moving, times=[1], bias=True)
    still = hdica.OnlineICA(tau=0.05, source="uniform")
    with pytest.raises(hdica.HdicaError, match="bias = True is not allowed with method 'closed'"):
        hdica.limit(still, times=[1], bias=True, method="closed")
    with pytest.raises(hdica.HdicaError, match="bias = 1 is not allowed"):
        hdica.limit(still, times=[1], bias=1)
