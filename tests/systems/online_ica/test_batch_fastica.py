"""Offline FastICA on the samples of the model: against plain NumPy, in law, and what it refuses."""

import os
import subprocess
import sys

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.finite.random.streams import RUN, point_stream
from hdica.ingredients.save import NOTHING
from hdica.run.plan import plan
from hdica.study.study import study_from
from hdica.systems import fields
from hdica.systems.online_ica.methods import _offline as offline

PROGRAM = """
from tests.systems.online_ica.test_batch_fastica import bits
print(bits())
"""
FUNCTIONS = {
    "x**3": (lambda u: u**3, lambda u: 3 * u**2),
    "tanh(2*x)": (lambda u: np.tanh(2 * u), lambda u: 2 / np.cosh(2 * u) ** 2),
    "-x**2": (lambda u: -(u**2), lambda u: -2 * u),
    "clip(x, -1, 1)": (lambda u: np.clip(u, -1, 1), lambda u: (np.abs(u) < 1).astype(float)),
}


def make(source="rademacher", f="x**3", q0=0.5, **more):
    begin = {"tau": 0.02, "start": {"overlap": q0, "exact": True}}
    return hdica.OnlineICA(**{**begin, "source": source, "nonlinearity": f, **more})


def streams(n, seed=1):
    return lambda part: point_stream({"law": "test"}, "fastica", n, seed, part)


def run(system, times, n, seed=1):
    values, diverged = offline(system, np.asarray(times, dtype=float), n, streams(n, seed), NOTHING)
    assert diverged == ""
    return values


def mean_overlap(system, t, n, count):
    return np.array([run(system, [t], n, seed)["Q"][0] for seed in range(count)])


def bits():
    return run(make(prior={"sparse": 0.2}), [1.5, 9.0], 300)["Q"].tobytes().hex()


def plain(system, n, count):
    """The samples by the paper's (1), symmetric whitening and the iteration, word by word."""
    rng = streams(n)("start")
    xi = fields.prior(system).feature(rng, n)
    x = fields.start(system).estimate(rng, xi)
    c = fields.source(system).sample(streams(n)("source"), RUN)[:count]
    z = streams(n)("noise").standard_normal((count, n))
    y = np.outer(c, xi) / np.sqrt(n) + z - np.outer(z @ xi, xi) / n
    y -= y.mean(axis=0)
    values, vectors = np.linalg.eigh(y.T @ y / count)
    white = y @ (vectors / np.sqrt(values)) @ vectors.T
    f, slope = FUNCTIONS[system.nonlinearity]
    w = (vectors * np.sqrt(values)) @ vectors.T @ x
    w /= np.linalg.norm(w)
    made, moved = 0, 1.0
    while made < 200 and moved >= 1e-10:
        u, made = white @ w, made + 1
        new = white.T @ f(u) / count - np.mean(slope(u)) * w
        new /= np.linalg.norm(new)
        moved, w = abs(abs(new @ w) - 1), new
    estimate = (vectors / np.sqrt(values)) @ vectors.T @ w
    q = abs(estimate @ xi) / np.linalg.norm(estimate) / np.sqrt(n)
    return q, moved < 1e-10, made


@pytest.mark.parametrize(
    ("system", "n", "t"),
    [
        (make(), 30, 2.0),
        (make("uniform", prior="gaussian"), 30, 20.0),
        (make("laplace", "tanh(2*x)", batch=2), 25, 15.0),
        (make({"chi2": 2}, "-x**2", prior={"sparse": 0.3}), 40, 15.0),
        (make("laplace", "clip(x, -1, 1)"), 20, 30.0),
    ],
)
def test_it_is_plain_fastica_on_the_same_samples(system, n, t):
    found = run(system, [0.0, 1.0 / system.batch, t], n)
    q, converged, made = plain(system, n, round(system.batch * t * n))
    assert all(np.isnan(values[:2]).all() for values in found.values())
    assert found["Q"][2] == pytest.approx(q, rel=1e-6)
    assert (found["converged"][2], found["iterations"][2]) == (converged, made)
    assert converged


def test_samples_have_the_law_of_the_model():
    """Whiteness in law, and the source along the feature."""
    from hdica.systems.online_ica.methods import samples

    n, count = 6, 10 * RUN
    system = make("uniform", prior="gaussian")
    xi = fields.prior(system).feature(streams(n)("start"), n)
    y = samples(fields.source(system), xi, count, streams(n))
    assert y.shape == (count, n)
    assert np.abs(y.T @ y / count - np.eye(n)).max() < 6 * np.sqrt(2 / count)
    along = y @ xi / np.sqrt(n)
    assert np.abs(along).max() <= np.sqrt(3)
    assert along[:RUN] == pytest.approx(fields.source(system).sample(streams(n)("source"), RUN))


def test_it_finds_the_feature_once_there_are_enough_samples_and_not_before():
    few, many = (mean_overlap(make(), t, 60, 12) for t in (2.0, 80.0))
    assert few.mean() < 0.2
    # Two values are separated without an error.
    assert many.min() > 1 - 1e-9


@pytest.mark.parametrize("whitened", [True, False])
def test_its_error_is_that_of_whitened_samples_for_many(whitened):
    """Mean of tan^2 is (n - 1) V/N to first order: Ollila 2010; without whitening 6.25 times V."""
    n, t = 20, 300.0
    m4, m6 = 9 / 5, 27 / 7
    v = (m6 - m4**2 if whitened else m6) / (m4 - 3) ** 2
    tan2 = mean_overlap(make("uniform", q0=0.9), t, n, 60) ** -2 - 1
    error = tan2.std(ddof=1) / np.sqrt(len(tan2))
    off = abs(tan2.mean() - (n - 1) * v / (t * n))
    assert (off < 4 * error) == whitened


def test_a_linear_term_of_f_and_its_sign_do_not_matter():
    found = [run(make("uniform", f), [20.0], 30) for f in ("x**3", "x**3 - 3*x", "-2*x**3")]
    for other in found[1:]:
        assert other["Q"] == pytest.approx(found[0]["Q"], rel=1e-6)


def test_the_sign_is_that_of_the_start():
    ahead, back = (run(make(q0=q0), [40.0], 40)["Q"][0] for q0 in (0.5, -0.5))
    assert ahead > 0.9
    assert back < -0.9


def test_bits_do_not_depend_on_the_output_times():
    every = run(make(), np.linspace(0, 30, 31), 40)
    for times in ([12.0], [12.0, 30.0]):
        assert run(make(), times, 40)["Q"][0] == every["Q"][12]
    # Nor on a run of samples that is begun and not used up.
    assert run(make(), [2.0, 200.0], 40)["Q"][0] == every["Q"][2]


@pytest.mark.deep
def test_bits_do_not_depend_on_the_threads_of_blas():
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    for threads in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == bits()


def simulated(system, n=20, times=(10.0,), **more):
    return hdica.simulate(
        system, n=n, times=times, seeds=2, method="batch_fastica", timeout=None, **more
    )


def test_the_step_size_and_the_regularizer_do_not_matter():
    one = simulated(make("uniform"))["Q"].values
    nu = hdica.OnlineICA(nu=1.0, source="uniform", start={"overlap": 0.5, "exact": True})
    others = (make("uniform", tau=0.1, regularizer="0.1*sign(x)"), make("uniform", sign="auto"), nu)
    for other in others:
        assert np.array_equal(simulated(other)["Q"].values, one)
    assert not np.array_equal(simulated(make("uniform", q0=0.6))["Q"].values, one)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (make(f="sign(x)"), r"nonlinearity = 'sign\(x\)' is not allowed for method 'batch_fast"),
        (make(f="2*x + 1"), r"nonlinearity = '2\*x \+ 1' is not allowed for method 'batch_fast"),
        (make(noise_law="laplace"), r"noise_law = 'laplace' is not allowed for method 'batch_fa"),
        (make(prior="gaussian", motion={"exchange": 0.1}), "what is found from all samples at on"),
        (
            make(prior={"vector": [1.0, -1.0, 0.5]}, data={"array": [[1.0, 2.0, 0.5]]}),
            "method 'batch_fastica' draws samples of the model",
        ),
    ],
)
def test_what_it_does_not_apply_to_is_refused(system, message):
    with pytest.raises(HdicaError, match=message):
        simulated(system)


def test_more_samples_than_memory_are_refused_before_anything_is_drawn():
    large = {"n": 2000, "times": (1.0, 1e6)}
    with pytest.raises(HdicaError, match=r"^n = 2000 is not allowed \(it needs 9.6e\+04 GB of mem"):
        simulated(make(), **large)
    content = {
        "study": "s",
        "title": "s",
        "system": "OnlineICA",
        "parameters": {"tau": 0.02},
        "times": [1, 10],
        "methods": {"batch_fastica": {"n": [1000], "seeds": 1}},
    }
    for last in (10, 1000):
        planned = plan(study_from({**content, "times": [1, last]}))
        assert planned.memory == pytest.approx(8 * 3 * 1000**2 * (1 + last), rel=1e-3)
