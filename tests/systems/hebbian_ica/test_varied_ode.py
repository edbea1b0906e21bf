"""The limits of batches, signs that change and sources that move: equations and chains."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hdica import limit, simulate
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.systems.hebbian_ica.ode import Problem, gain, solve_adaptive
from hdica.systems.hebbian_ica.system import HebbianICA, mu_of

QUINTIC = "(x**5 - 4*x**3)/18"
# g(R) = (16 R^6 - 12 R^4)/18 changes its sign at R^2 = 3/4: large steps lead there from above.
FALLING = {
    "sources": ["rademacher"],
    "nonlinearity": QUINTIC,
    "mu": {"steps": {"times": [2.0], "values": [1.2, 0.08]}},
    "start": {"overlap": 0.9},
}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
PAIR = {
    "sources": ["uniform", "laplace"],
    "projections": 2,
    "mu": 0.02,
    "start": {"overlap": [[0.7, 0.2], [-0.1, 0.6]]},
}


def curve(times, **given):
    return limit(HebbianICA(**given), times=times)


def switches(times, **given):
    system = HebbianICA(**given)
    problem = Problem(
        parse_formula(system.nonlinearity),
        tuple(make_source(s) for s in system.sources),
        mu_of(system),
        np.atleast_2d(system.start["overlap"]),
    )
    return solve_adaptive(problem, np.asarray(times))[1]


@pytest.mark.parametrize(
    ("text", "source", "exact"),
    [
        ("x**3", "laplace", lambda r: 3 * r**4),
        ("x**3", {"chi2": 4}, lambda r: 3 * r**4),
        (QUINTIC, "rademacher", lambda r: (16 * r**6 - 12 * r**4) / 18),
        # With s = +-1 and y = R s + c z: exp(-c^2/2) (R sin R + (c^2 - 1) cos R).
        (
            "sin(x)",
            "rademacher",
            lambda r: np.exp((r * r - 1) / 2) * (r * np.sin(r) - r * r * np.cos(r)),
        ),
    ],
)
def test_the_mean_that_decides_in_closed_form(text, source, exact):
    g = gain(parse_formula(text), (make_source(source),))
    for r in (0.0, 0.3, -0.8, 1.0):
        assert g(np.array([[r]]))[0] == pytest.approx(exact(r), abs=1e-9)


def test_the_mean_of_a_function_with_a_kink_is_that_of_samples():
    rng, phi, row = np.random.default_rng(1), parse_formula("x*abs(x) - 3*x"), np.array([0.7, 0.4])
    fine, rough = (
        gain(phi, (make_source("uniform"), make_source("laplace")), one) for one in (1, 0)
    )
    s = np.stack([rng.uniform(-np.sqrt(3), np.sqrt(3), 10**6), rng.laplace(0, 2**-0.5, 10**6)])
    y = row @ s + np.sqrt(1 - row @ row) * rng.standard_normal(10**6)
    drawn = y * y * np.abs(y) - 3 * y * y - 2 * np.abs(y) + 3
    error = drawn.std() / 1e3
    assert abs(fine(row[None])[0] - drawn.mean()) < 4 * error
    assert fine(row[None])[0] == pytest.approx(rough(row[None])[0], abs=1e-5)


def test_a_sign_that_never_switches_is_a_sign_that_is_given():
    times = [0.0, 10.0, 40.0]
    adaptive = curve(times, **PAIR | {"sigma": "adaptive"})
    given = curve(times, **PAIR | {"sigma": [-1, 1]})
    assert switches(times, **PAIR) == []
    assert adaptive["R"].values == pytest.approx(given["R"].values, abs=1e-9)


def test_switches_are_where_an_independent_solution_has_them():
    """R and S (then m) by tiny steps of Heun's method, with the sign looked up at every step."""
    times, h = [0.0, 2.0, 5.0, 20.0], 2e-3

    def rate(t, state):
        r, m = state
        mu = 1.2 if t < 2 else 0.08
        g = (16 * r**6 - 12 * r**4) / 18
        learning = (1 - r * r) * g / r
        y = r + np.sqrt(max(0.0, 1 - r * r)) * NODES  # for s = 1; for s = -1 the square is the same
        power = float(np.sum(WEIGHTS * (y**5 - 4 * y**3) ** 2)) / 18**2
        flow = mu * np.sign(m) * learning - mu**2 * power * r / 2
        return np.array([flow, max(1 / max(t, h), mu) * (g - m)])

    state = np.array([0.9, (16 * 0.9**6 - 12 * 0.9**4) / 18])
    found, at = [state[0]], []
    for k in range(10_000):
        t = k * h
        one = rate(t, state)
        new = state + h / 2 * (one + rate(t + h * (1 - 1e-9), state + h * one))
        if new[1] * state[1] < 0:
            at.append(t)
        state = new
        if round(t + h, 9) in times:
            found.append(state[0])
    path = curve(times, **FALLING | {"sigma": "adaptive"})
    assert path["R"].values.ravel() == pytest.approx(found, abs=2e-5)
    ((time, projection),) = switches(times, **FALLING)
    assert projection == 0
    assert len(at) == 1
    assert time == pytest.approx(at[0], abs=5e-3)


@cache
def chains(key, n, seeds):
    given, times = CASES[key]
    found = simulate(HebbianICA(**given), n=n, times=times, seeds=seeds, method="chain")
    return found["R"].transpose("seed", "time", "projection", "source").values


# A system and the times at which its chain is compared with the limit.
CASES = {
    "adaptive, one switch": (FALLING | {"sigma": "adaptive"}, [2.0, 10.0, 60.0]),
    "batch of 4": ({"sigma": [-1], "mu": 0.15, "batch": 4, "start": {"overlap": 0.7}}, [5.0, 20.0]),
    "batch of 3, K2 M2": (PAIR | {"sigma": [-1, 1], "mu": 0.05, "batch": 3}, [5.0, 20.0]),
    "signs jump": (
        PAIR | {"sigma": {"steps": {"times": [6], "values": [[1, 1], [-1, 1]]}}},
        [6.0, 20.0],
    ),
    "sources drift and jump": (
        PAIR
        | {
            "sigma": [-1, 1],
            "motion": {"drift": 0.01, "jumps": {"times": [7.0], "share": [0.2]}},
        },
        [7.0, 20.0],
    ),
}
WRONG = {
    "adaptive, one switch": {"sigma": [1]},
    "batch of 4": {"batch": 5},
    "batch of 3, K2 M2": {"batch": 1},
    "signs jump": {"sigma": {"steps": {"times": [8], "values": [[1, 1], [-1, 1]]}}},
    "sources drift and jump": {"motion": {"drift": 0.013, "jumps": {"times": [7], "share": 0.2}}},
}


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_chains_follow_the_limit_and_not_another(name):
    given, times = CASES[name]
    r = chains(name, 4000, 24)
    mean, error = r.mean(axis=0), r.std(axis=0, ddof=1) / np.sqrt(len(r))
    right = curve(times, **given)
    # A bias of order 1/n is left.
    assert np.all(np.abs(mean - right["R"].values) < 4 * error + 1.5e-3)
    assert np.all(right["R_error"].values < 1e-8)
    wrong = curve(times, **given | WRONG[name])["R"].values
    assert np.max(np.abs(mean - wrong) / (error + 4e-4)) > 8


def test_a_batch_is_one_sample_of_a_smaller_step_on_the_clock_of_samples():
    """m (mu/m) L + m (mu/m)^2 D: nothing is gained a sample."""
    times, m = np.array([0.0, 3.0, 9.0]), 5
    batch = curve(times, **PAIR | {"sigma": [-1, 1], "mu": 0.1, "batch": m})
    single = curve(m * times, **PAIR | {"sigma": [-1, 1], "mu": 0.1 / m})
    assert batch["R"].values == pytest.approx(single["R"].values, abs=1e-9)


def test_all_samples_at_once_leave_the_mean():
    """K = M = 1 and x^3 without the square of mu: dR/dt = mu kappa_4 sigma R^3 (1 - R^2)."""
    mu, times = 0.3, np.array([0.0, 5.0, 30.0])
    given = {"sigma": [-1], "mu": mu, "start": {"overlap": 0.3}}
    found = curve(times, **given, batch="full")["R"].values.ravel()
    exact = solve_ivp(
        lambda t, r: 1.2 * mu * r**3 * (1 - r * r), (0, 30), [0.3], t_eval=times, rtol=1e-11,
        atol=1e-12,
    )  # fmt: skip
    assert found == pytest.approx(exact.y[0], abs=1e-8)
    many = curve(times, **given, batch=10**6)["R"].values.ravel()
    assert many == pytest.approx(found, abs=1e-4)
    # The same step with single samples is trapped.
    assert abs(curve(times, **given)["R"].values[-1, 0, 0]) < 1e-3


@pytest.mark.parametrize("nonlinearity", ["x", "tanh(x)"])
def test_a_drift_only_forgets(nonlinearity):
    """phi = x learns nothing: R = R0 exp(-(mu^2/(2 m) + drift) t), times what a jump leaves."""
    given = {"sigma": [1], "mu": 0.4, "batch": 2, "start": {"overlap": -0.5}}
    motion = {"drift": 0.2, "jumps": {"times": [1.5], "share": 0.7}}
    times = np.array([0.0, 1.5, 2.0])
    if nonlinearity == "x":
        found = curve(times, **given, nonlinearity=nonlinearity, motion=motion)["R"].values.ravel()
        exact = -0.5 * np.exp(-(0.4**2 / 4 + 0.2) * times) * np.where(times > 1.5, 0.3, 1.0)
        assert found == pytest.approx(exact, abs=1e-10)
    # A drift of 0 is no drift, by the other way of solving it.
    still, plain = (
        curve(times, **given | {"batch": 1}, nonlinearity=nonlinearity, motion=one)["R"].values
        for one in ({"drift": 0}, None)
    )
    assert still == pytest.approx(plain, abs=1e-9)


@pytest.mark.deep
def test_errors_bound_what_coarser_runs_change():
    path = curve([0.0, 2.0, 60.0], **FALLING | {"sigma": "adaptive", "nonlinearity": "tanh(x)"})
    hidden = curve(
        [0.0, 2.0, 60.0],
        **FALLING | {"sigma": "adaptive", "nonlinearity": "tanh(x) + 1e-300*x**3"},
    )
    gap = np.abs(path["R"].values - hidden["R"].values)
    assert np.all(gap <= path["R_error"].values + hidden["R_error"].values)
    assert np.all(path["R_error"].values < 1e-7)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"start": {"overlap": [[0.5, 0.0]]}, "sources": ["gaussian", "uniform"]}, "projection 0"),
        (
            {
                "start": {"overlap": [[0.5], [0.0]]},
                "projections": 2,
                "nonlinearity": "x**3 + x**2",
            },
            "projection 1 starts at R = 0, where noise chooses its sign",
        ),
    ],
)
def test_a_start_whose_sign_is_chance_is_refused(given, sentence):
    with pytest.raises(HdicaError, match=sentence):
        curve([1.0], mu=0.1, sigma="adaptive", **given)


def test_a_row_that_stays_at_zero_needs_no_sign():
    times = [0.0, 5.0]
    rows = {"start": {"overlap": [[0.8], [0.0]]}, "projections": 2, "mu": 0.05}
    adaptive = curve(times, **rows, sigma="adaptive")["R"].values
    given = curve(times, **rows, sigma=[-1, 1])["R"].values
    assert adaptive == pytest.approx(given, abs=1e-9)
    assert np.all(adaptive[:, 1] == 0)


@pytest.mark.deep
def test_the_sign_of_an_annealed_step_is_that_of_the_plain_mean():
    """With mu0/(t + t0) and mu0 < 1 the rate of the mean is 1/t for ever; with 2 it changes."""
    for mu in ("0.8/(t + 4)", "3/(t + 4)"):
        times = [0.0, 1.0, 30.0]
        adaptive = curve(times, **FALLING | {"sigma": "adaptive", "mu": mu})
        given = curve(times, **FALLING | {"sigma": [1], "mu": mu})
        assert switches(times, **FALLING | {"mu": mu}) == []
        assert adaptive["R"].values == pytest.approx(given["R"].values, abs=1e-8)
