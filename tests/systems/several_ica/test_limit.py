"""The limit of several features: closed forms, other systems, simulations, and a control."""

import numpy as np
import pytest

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.rules.averages import Averages
from hdica.systems.several_ica.system import equations

SKEWED = {"chi2": 3}
TIMES = [0, 5, 10, 20, 40]


def limit_of(sources, f="x**3"):
    """The equations of these sources, and their averages: <c_j f>, <u f> and <f^2> at overlaps."""
    start = {"overlap": [0.1] * len(sources)}
    limit = equations(hdica.SeveralICA(tau=1, sources=sources, nonlinearity=f, start=start))
    averages = Averages(limit.sample, 0)

    def at(q):
        means = averages.at(np.array([q]), np.ones((1, 1)), 0.0)
        return -means.v[0], -means.u[0, 0], means.square[0, 0]

    return limit, averages, at


def drift(limit, averages, q, tau):
    return limit.rate(averages, np.array([[*q, 1.0]]), tau)[0, :-1]


def test_cubic_averages_are_those_of_the_cumulants():
    """<c_j u^3>, <u^4> and <u^6> by kappa_3, kappa_4, kappa_6, kappa_3^2 and mixed terms of it."""
    specs = ["laplace", SKEWED, "rademacher"]
    laws = [make_source(spec) for spec in specs]
    q = np.array([0.4, -0.5, 0.3])
    m = np.array([[law.moment(k) for k in range(7)] for law in laws])
    k3, k4 = m[:, 3], m[:, 4] - 3
    k6 = m[:, 6] - 15 * m[:, 4] - 10 * m[:, 3] ** 2 + 30
    found = limit_of(specs)[2](q)
    assert found[0] == pytest.approx(3 * q + k4 * q**3, abs=1e-13)
    assert found[1] == pytest.approx(3 + np.sum(k4 * q**4), abs=1e-13)
    skew = np.sum(k3 * q**3)
    sixth = 15 + 15 * np.sum(k4 * q**4) + np.sum(k6 * q**6) + 10 * skew**2
    assert found[2] == pytest.approx(sixth, abs=1e-12)
    assert abs(10 * skew**2) > 0.1  # the term that is zero for symmetric sources is seen


def test_averages_of_a_polynomial_are_those_of_samples():
    specs, text = ["uniform", SKEWED], "x**4/4 - x**2 + x/2"
    laws = [make_source(spec) for spec in specs]
    f, q, rng, size = (
        parse_formula(text, "x", {}),
        [0.5, -0.6],
        np.random.default_rng(5),
        10**6,
    )
    c = np.stack([law.sample(rng, size) for law in laws])
    u = q @ c + np.sqrt(1 - np.square(q).sum()) * rng.standard_normal(size)
    value = f.value(u)
    along, mean_u, square = limit_of(specs, text)[2](q)
    for got, terms in (
        (along[0], c[0] * value),
        (along[1], c[1] * value),
        (mean_u, u * value),
        (square, value**2),
    ):
        assert abs(got - terms.mean()) < 4 * terms.std() / np.sqrt(size)


@pytest.mark.parametrize(
    ("source", "f"), [("laplace", "-x**3"), (SKEWED, "x**3 - x**2"), ("uniform", "x**5 - x")]
)
def test_one_feature_is_online_ica(source, f):
    one = hdica.SeveralICA(tau=0.02, sources=[source], nonlinearity=f, start={"overlap": [0.5]})
    other = hdica.OnlineICA(tau=0.02, source=source, nonlinearity=f, start={"overlap": 0.5})
    ours, theirs = hdica.limit(one, times=TIMES), hdica.limit(other, times=TIMES, method="ode")
    assert np.abs(ours["Q"].values[:, 0] - theirs["Q"].values).max() < 1e-10


@pytest.mark.parametrize("f", ["x**3", "x**3 - x**2/2"])
def test_it_is_hebbian_ica_with_one_projection(f):
    laws, q = ["uniform", "rademacher", SKEWED], [0.5, 0.3, -0.2]
    one = hdica.SeveralICA(tau=0.03, sources=laws, nonlinearity=f, start={"overlap": q})
    other = hdica.HebbianICA(
        mu=0.03, sources=laws, nonlinearity=f, sigma=[-1], start={"overlap": [q]}
    )
    ours, theirs = hdica.limit(one, times=TIMES)["Q"], hdica.limit(other, times=TIMES)["R"]
    assert np.abs(ours.values - theirs.values[:, 0]).max() < 1e-10


def test_a_rotated_pair_of_normal_sources_is_a_symmetry():
    """With Gaussian sources no direction is special: the drift is along Q."""
    limit, averages, _ = limit_of(["gaussian"] * 2)
    q = np.array([0.3, 0.6])
    rate = drift(limit, averages, q, 0.1)
    assert rate[0] * q[1] == pytest.approx(rate[1] * q[0], abs=1e-14)


def test_errors_are_errors():
    """The stated error covers the distance to a run that is a thousand times finer."""
    from scipy.integrate import solve_ivp

    names, times = ["rademacher", "uniform"], np.array(TIMES, dtype=float)
    found = hdica.limit(hdica.SeveralICA(tau=0.05, sources=names, Q1=0.5, Q2=0.6), times=times)
    limit, averages, _ = limit_of(names)
    way = {"method": "Radau", "rtol": 1e-12, "atol": 1e-14, "t_eval": times}
    fine = solve_ivp(lambda t, q: drift(limit, averages, q, 0.05), (0, 40), [0.5, 0.6], **way).y.T
    assert np.all(np.abs(found["Q"].values - fine) <= found["Q_error"].values + 1e-10)
    assert found["Q_error"].values.max() < 1e-8


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_nonlinearity_that_is_no_polynomial_has_a_limit():
    system = hdica.SeveralICA(
        tau=0.2, sources=["laplace", "uniform"], nonlinearity="tanh(x)", Q1=0.6, Q2=0.3
    )
    limit = hdica.limit(system, times=[0, 20, 40])
    assert limit.Q_error.values.max() < 1e-6
    found = hdica.simulate(system, n=4000, times=[0, 20, 40], seeds=1600, timeout=None)["Q"]
    allowed = 4 * found.std("seed", ddof=1)[1:] / 40 + 6e-4
    assert bool((np.abs(found.mean("seed") - limit.Q)[1:] < allowed).all())
    assert bool((np.abs(found.mean("seed") - limit.Q_control)[1:] > allowed).any())


OPPOSITE = {"sources": ["rademacher", "laplace"], "Q1": 0.5, "Q2": 0.5}


@pytest.mark.deep
def test_simulations_go_to_the_limit_and_not_to_one_that_is_wrong():
    """Sources of opposite kurtosis, whose rates differ; n = 4000, finite-n terms allowed."""
    system, n, runs = hdica.SeveralICA(tau=0.05, **OPPOSITE), 4000, 600
    limit = hdica.limit(system, times=[0, 20, 40])
    found = hdica.simulate(system, n=n, times=[0, 20, 40], seeds=runs)["Q"]
    mean, error = found.mean("seed"), found.std("seed", ddof=1) / np.sqrt(runs)
    right = np.abs(mean - limit["Q"])[1:]
    assert bool((right < 4 * error[1:] + 4 / n).all())
    wrong = np.abs(mean - limit["Q_control"])[-1]
    assert bool((wrong > 4 * error[-1] + 4 / n).any())


@pytest.mark.parametrize(("f", "learned", "lost"), [("x**3", 0, 1), ("-x**3", 1, 0)])
def test_of_opposite_kurtoses_the_sign_finds_one_alone(f, learned, lost):
    system = hdica.SeveralICA(tau=0.01, nonlinearity=f, **OPPOSITE)
    end = hdica.limit(system, times=[0, 2000])["Q"].values[-1]
    assert abs(end[learned]) > 0.9
    assert abs(end[lost]) < 1e-6


def test_of_two_equal_features_the_nearer_one_is_found():
    system = hdica.SeveralICA(tau=0.02, sources=["uniform", "uniform"], Q1=0.5, Q2=0.4)
    end = hdica.limit(system, times=[0, 2000])["Q"].values[-1]
    assert end[0] > 0.9
    assert abs(end[1]) < 1e-6
