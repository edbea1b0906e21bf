"""A signal omega(t) that varies: rule, chain and limits."""

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream
from hdica.ingredients.schedules import make_signal
from hdica.systems.sparse_pca.system import step_noise
from tests.finite.runs import run_chain, run_vector
from tests.systems.sparse_pca.test_rule import make_pca

WAVE = "1 + 0.9*cos(t/1.5)"
STEPS = {"steps": {"times": [2.5, 5.0], "values": [2.0, 0.0, 1.0]}}
TIMES = np.linspace(0.0, 8.0, 9)


def given(omega, **more):
    return hdica.SparsePCA(tau=0.4, omega=omega, start={"overlap": 0.7}, **more)


def of(omega, t):
    """omega(t), in plain NumPy."""
    if omega == WAVE:
        return 1 + 0.9 * np.cos(t / 1.5)
    return 2.0 if t < 2.5 else 0.0 if t < 5.0 else 1.0


def plain(omega, n, steps, count, seed, tau=0.4, q0=0.7):
    """Overlaps after some steps of Oja's method, straight from eq. (1) and (5)."""
    rng = np.random.default_rng(seed)
    xi = np.ones(n)
    x = q0 * xi + np.sqrt(1 - q0**2) * rng.standard_normal((count, n))
    x *= np.sqrt(n) / np.linalg.norm(x, axis=1, keepdims=True)
    for k in range(steps):
        y = np.sqrt(omega(k / n) / n) * rng.standard_normal((count, 1)) * xi
        y = y + rng.standard_normal((count, n))
        x += tau / n * np.sum(y * x, axis=1, keepdims=True) * y
        x *= np.sqrt(n) / np.linalg.norm(x, axis=1, keepdims=True)
    return x @ xi / n


def drawn(run, omega, n, t, count):
    rule = make_pca(start={"overlap": 0.7}, tau=0.4, omega=omega)

    def one(seed):
        streams = lambda part: point_stream({"signal": run.__name__}, "pca", n, seed, part)  # noqa: E731
        values, diverged = run(rule, np.array([t]), n, streams)
        assert diverged == ""
        return values["Q"][0]

    return np.array([one(seed) for seed in range(count)])


@pytest.mark.parametrize("run", [run_vector, run_chain])
@pytest.mark.parametrize("omega", [WAVE, STEPS], ids=["formula", "steps"])
def test_simulations_follow_the_signal_in_law(run, omega):
    n, t, count = 12, 4.0, 1000
    found = drawn(run, omega, n, t, count)
    right = plain(lambda s: of(omega, s), n, round(t * n), 4000, 1)
    wrong = plain(lambda s: of(omega, 0.0), n, round(t * n), 4000, 2)
    assert stats.ks_2samp(found, right).pvalue > 1e-3
    error = np.hypot(found.std() / np.sqrt(count), right.std() / np.sqrt(4000))
    assert abs(found.mean() - right.mean()) < 4 * error
    assert stats.ks_2samp(found, wrong).pvalue < 1e-6


@pytest.mark.deep
@pytest.mark.parametrize("omega", [WAVE, STEPS], ids=["formula", "steps"])
def test_the_limits_agree_and_a_constant_signal_does_not(omega):
    ode, pde = (hdica.limit(given(omega), times=TIMES, method=m) for m in ("ode", "pde"))
    assert float(ode["Q_error"].max()) < 1e-9
    assert float(abs(ode["Q"] - pde["Q"]).max()) < 2e-7
    other = hdica.limit(given(of(omega, 0.0)), times=TIMES, method="ode")
    assert float(abs(ode["Q"] - other["Q"]).max()) > 0.05


def test_a_signal_in_steps_is_the_closed_form_piece_by_piece():
    path, q = hdica.limit(given(STEPS), times=[2.5, 5.0, 8.0], method="ode"), 0.7
    for k, (omega, span) in enumerate([(2.0, 2.5), (0.0, 2.5), (1.0, 3.0)]):
        one = hdica.SparsePCA(tau=0.4, omega=omega, start={"overlap": q, "exact": True})
        q = float(hdica.limit(one, times=[span], method="ode")["Q"][0])
        assert float(path["Q"][k]) == pytest.approx(q, abs=1e-10)


def test_chains_fluctuate_as_the_central_limit_theorem_says():
    n, count = 2000, 400
    limit = hdica.limit(given(WAVE), times=TIMES, method="ode")
    runs = hdica.simulate(given(WAVE), times=TIMES, n=n, seeds=count, method="chain")["Q"]
    scaled = np.sqrt(n) * runs.std("seed", ddof=1) / limit["Q_sd"]
    assert np.all(np.abs(scaled.values - 1) < 4 / np.sqrt(2 * count))
    z = (runs.mean("seed") - limit["Q"]) * np.sqrt(n * count) / limit["Q_sd"]
    assert np.all(np.abs(z.values) < 5)
    still = hdica.limit(given(1.0), times=TIMES, method="ode")
    off = (runs.mean("seed") - still["Q"]) * np.sqrt(n * count) / still["Q_sd"]
    assert float(abs(off).max()) > 20


def test_particles_follow_the_signal():
    limit = hdica.limit(given(WAVE), times=TIMES, method="ode")["Q"]
    cloud = hdica.simulate(given(WAVE), times=TIMES, n=4000, seeds=1, method="particles")["Q"]
    assert float(abs(cloud.isel(seed=0) - limit).max()) < 2e-3


def test_the_noise_of_a_step_is_that_of_a_constant_signal():
    from hdica.systems.sparse_pca.system import drift

    system, q = given(1.7), np.linspace(-1, 1, 9)
    second, third, fourth = drift(system).noise
    known = 0.4**2 * second(q) + 0.4**3 * third(q) + 0.4**4 * fourth(q)
    assert [step_noise(system)(one, 1.0) for one in q] == pytest.approx(known, abs=1e-14)


def test_a_constant_signal_is_what_it_was():
    assert given(1.0).model_dump(exclude_defaults=True) == {
        "tau": 0.4, "start": {"overlap": 0.7},
    }  # fmt: skip
    assert given(2).omega == 2.0
    assert make_signal("3/2").constant == 1.5


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: given("t - 1"), "omega = 't - 1' is not allowed"),
        (lambda: given("2*s"), "s"),
        (lambda: given({"steps": {"times": [1], "values": [1, -1]}}), "all >= 0"),
        (lambda: given(None), "omega = None is not allowed"),
        (lambda: hdica.fixed_points(given(WAVE)), "omega = '1 + 0.9*cos(t/1.5)' is not allowed"),
        (lambda: hdica.critical(given(WAVE), "tau"), "constant step size and signal"),
        (lambda: hdica.critical(given(WAVE)), "is not"),
        (
            lambda: hdica.limit(given(WAVE), times=[1.0], method="sample_pca_limit"),
            "a constant signal",
        ),
    ],
)
def test_refused(call, sentence):
    with pytest.raises(HdicaError, match=r".") as caught:
        call()
    assert sentence in str(caught.value)
