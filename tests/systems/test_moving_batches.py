"""Batches, vectors and signs beside a feature that moves and a signal that varies."""

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream
from hdica.systems.sparse_pca.system import rule as pca_rule
from tests.finite.runs import run_chain, run_vector

TIMES = np.array([0.0, 2.0, 4.0, 8.0])
MOVES = {"exchange": 0.15, "jumps": {"times": [4.0], "share": 0.4}}
VARIES = "1.5 + 1.2*sin(2*t)"
SIGNS, SPARSE = {"sparse_sign": 0.4}, {"sparse": 0.4}


def pca(**more):
    given = {"tau": 1.2, "omega": 1.5, "start": {"overlap": 0.7}, "prior": SIGNS, "batch": 4}
    return hdica.SparsePCA(**given | more)


def ica(**more):
    given = {"tau": 0.12, "start": {"overlap": 0.85}, "prior": SIGNS, "batch": 4}
    return hdica.OnlineICA(**given | more)


def off_by(runs, limit, count, bias):
    """Distances of means to a limit in standard errors, beyond a bias of order 1/n."""
    error = (runs["Q"].std("seed", ddof=1) / np.sqrt(count)).values[1:]
    return np.abs((runs["Q"].mean("seed") - limit["Q"]).values[1:]) / (error + bias)


CASES = {
    "pca": pca(motion=MOVES),
    "pca-mean": pca(motion=MOVES, prior=SPARSE),
    "pca-signal": pca(omega=VARIES),
    "pca-both": pca(omega=VARIES, motion=MOVES),
    "ica": ica(motion=MOVES),
    "ica-auto": ica(motion=MOVES, nonlinearity="-x**3", sign="auto"),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_simulations_tend_to_the_limit_with_its_noise_divided(name):
    system, n, count = CASES[name], 400, 100
    limit = hdica.limit(system, times=TIMES, method="ode")
    runs = hdica.simulate(system, times=TIMES, n=n, seeds=count, method="vector")
    assert np.all(off_by(runs, limit, count, 8 / n / 4) < 4)
    # The same limit with a Lambda that is not divided by the batch.
    wrong = hdica.limit(system.model_copy(update={"batch": 1}), times=TIMES, method="ode")
    assert off_by(runs, wrong, count, 8 / n / 4).max() > 10
    known = limit["Q_sd"].values[1:]
    if np.all(np.isfinite(known)):
        ratio = np.sqrt(n) * runs["Q"].std("seed", ddof=1).values[1:] / known
        assert np.all(np.abs(ratio - 1) < 4 / np.sqrt(2 * count) + 0.03)


EARLY = np.array([0.0, 1.0, 2.0])
SOON = {"exchange": 0.15, "jumps": {"times": [1.0], "share": 0.4}}


@pytest.mark.deep
@pytest.mark.parametrize("system", [pca(motion=SOON), ica(motion=SOON)], ids=["pca", "ica"])
def test_densities_and_particles_follow_the_overlap(system):
    ode, pde = (hdica.limit(system, times=EARLY, method=method) for method in ("ode", "pde"))
    assert float(abs(ode["Q"] - pde["Q"]).max()) < 5e-7
    cloud = hdica.simulate(system, times=EARLY, n=4000, seeds=8, method="particles")
    assert np.all(off_by(cloud, ode, 8, 2e-3) < 4)
    still = hdica.limit(system.model_copy(update={"motion": None}), times=EARLY, method="ode")
    assert off_by(cloud, still, 8, 2e-3).max() > 10


@pytest.mark.deep
def test_limits_with_a_signal_that_varies_agree():
    system = pca(omega=VARIES)
    ode, *others = (
        hdica.limit(system, times=EARLY, method=method)["Q"].values
        for method in ("ode", "pde", "ornstein_uhlenbeck")
    )
    for other in others:
        assert other == pytest.approx(ode, abs=5e-7)
    steady = hdica.limit(pca(), times=EARLY, method="ode")["Q"].values
    assert np.abs(steady - ode).max() > 0.01


def plain(n, steps, trials, tau=1.2, m=4):
    """Overlaps of Oja's batches with a signal that varies, in plain NumPy; shape (trials,)."""
    rng = np.random.default_rng(5)
    xi = np.ones(n)
    x = 0.7 * xi + np.sqrt(1 - 0.49) * rng.standard_normal((trials, n))
    x *= np.sqrt(n) / np.linalg.norm(x, axis=1, keepdims=True)
    for k in range(steps):
        omega = 1.5 + 1.2 * np.sin(2 * k / n)
        y = rng.standard_normal((trials, m, n))
        y += np.sqrt(omega / n) * rng.standard_normal((trials, m, 1)) * xi
        x = x + tau / (n * m) * np.einsum("tmi,tm->ti", y, np.einsum("tmi,ti->tm", y, x))
        x *= np.sqrt(n) / np.linalg.norm(x, axis=1, keepdims=True)
    return x @ xi / n


@pytest.mark.deep
@pytest.mark.parametrize("run", [run_vector, run_chain], ids=["vector", "chain"])
def test_the_batch_with_a_signal_that_varies_is_that_of_plain_numpy_in_law(run):
    n, t, count = 20, 1.5, 1500

    def drawn(omega):
        rule = pca_rule(pca(omega=omega, prior="dense"))

        def one(seed):
            streams = lambda part: point_stream({"o": str(omega)}, "test", n, seed, part)  # noqa: E731
            return run(rule, np.array([t]), n, streams)[0]["Q"][0]

        return np.array([one(seed) for seed in range(count)])

    found, right = drawn(VARIES), plain(n, round(t * n), 4000)
    assert stats.ks_2samp(found, right).pvalue > 1e-3
    for power in (1, 2):
        a, b = found**power, right**power
        error = np.hypot(a.std() / np.sqrt(a.size), b.std() / np.sqrt(b.size))
        assert abs(a.mean() - b.mean()) < 4 * error
    assert stats.ks_2samp(drawn(1.5), right).pvalue < 1e-4


@pytest.mark.parametrize("system", [CASES["pca-both"], CASES["ica"]], ids=["pca", "ica"])
def test_numbers_depend_on_no_chunk(system):
    given = {"n": 60, "method": "vector", "noise": "shared", "seeds": 2}
    few = hdica.simulate(system, times=[4.0, 8.0], **given)["Q"]
    many = hdica.simulate(system, times=np.linspace(0, 8, 17), **given)["Q"]
    assert few.values.tobytes() == many.sel(time=[4.0, 8.0]).values.tobytes()
    grid = hdica.simulate(system, times=[4.0, 8.0], over={"batch": [1, 4]}, **given)["Q"]
    assert grid.sel(batch=4).values.tobytes() == few.values.tobytes()


def test_best_steps_are_m_times_those_of_one_sample_and_a_share_of_the_drift():
    drift = {"exchange": 0.01}
    for make in (pca, ica):
        several, one = (hdica.best_step(make(motion=drift, batch=m)) for m in (4, 1))
        # Best at given delta: D1^2/(4 |D2| Q) has m in it, as delta/m has for one sample.
        scaled = hdica.best_step(make(motion={"exchange": 0.01 / 4}, batch=1))
        assert float(several.best_tau) == pytest.approx(4 * float(scaled.best_tau), rel=1e-7)
        assert float(several.best_Q) == pytest.approx(float(scaled.best_Q), rel=1e-9)
        assert float(several.largest_delta) == pytest.approx(4 * float(one.largest_delta), rel=1e-7)


def test_the_sign_that_is_chosen_is_the_one_that_is_tracked():
    drift = {"exchange": 0.01}
    auto = ica(motion=drift, nonlinearity="-x**3", sign="auto")
    assert float(hdica.best_step(auto).best_tau) == float(
        hdica.best_step(ica(motion=drift)).best_tau
    )
    assert np.isnan(float(hdica.best_step(ica(motion=drift, nonlinearity="-x**3")).best_tau))


def test_folds_are_those_of_both_sides_whatever_the_start():
    """As ``critical`` ignores the start: a study that varies it computes them once."""
    both = {"nonlinearity": "-x**3 - x**2", "source": {"chi2": 3}, "motion": {"exchange": 1e-3}}
    one, other = (ica(start={"overlap": q0}, **both) for q0 in (0.5, -0.5))
    folds = hdica.critical(one, "tau")
    assert folds["value"].values.tobytes() == hdica.critical(other, "tau")["value"].values.tobytes()
    ends = [
        float(hdica.best_step(system)[name])
        for system in (one, other)
        for name in ("largest_tau", "lowest_tau")
    ]
    assert folds["value"].values == pytest.approx(ends, rel=1e-6)
    assert np.sign(folds["Q"].values).tolist() == [1, 1, -1, -1]
    fast = hdica.critical(ica(motion={"exchange": 1.0}), "tau")
    assert fast.sizes["transition"] == 0
    assert "no step size tracks the feature" in fast.attrs["note"]


@pytest.mark.deep
def test_a_feature_that_is_a_vector_and_one_drawn_entry_by_entry_move():
    values = np.repeat([-1.0, 0.0, 1.0], [80, 240, 80]).tolist()
    n, count = 400, 60
    for prior in ({"vector": values}, {**SIGNS, "iid": True}):
        system = pca(motion={"exchange": 0.4}, prior=prior)
        limit = hdica.limit(system, times=TIMES, method="ode")
        runs = hdica.simulate(system, times=TIMES, n=n, seeds=count, method="vector")
        assert np.all(off_by(runs, limit, count, 8 / n / 4) < 4)
        still = hdica.limit(pca(prior=prior), times=TIMES, method="ode")
        assert off_by(runs, still, count, 8 / n / 4).max() > 10


VECTOR = {"vector": np.linspace(-1, 2, 20).tolist()}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: hdica.simulate(ica(motion=MOVES), times=[1.0], n=10, method="chain"),
            "exact only for a feature that stays",
        ),
        (
            lambda: hdica.limit(ica(motion=MOVES), times=[1.0], method="closed"),
            "not allowed for the closed form (a feature that stays)",
        ),
        (
            lambda: hdica.limit(pca(motion=MOVES), times=[1.0], method="ornstein_uhlenbeck"),
            "not allowed for a normal density (a feature that stays)",
        ),
        (
            lambda: hdica.simulate(pca(motion=MOVES), times=[1.0], n=10, method="penalised_pca"),
            "found from all samples at once (a feature that stays)",
        ),
        (
            lambda: hdica.simulate(pca(omega=VARIES), times=[1.0], n=10, method="penalised_pca"),
            "(a constant signal)",
        ),
        (
            lambda: hdica.simulate(pca(omega=VARIES), times=[1.0], n=10, method="sample_pca"),
            "(a constant signal)",
        ),
        (
            lambda: hdica.limit(pca(omega=VARIES), times=[1.0], method="sample_pca_limit"),
            "(a constant signal)",
        ),
        (
            lambda: hdica.convert(
                hdica.OnlineICA(tau=0.1, prior=SIGNS, motion={"exchange": 0.1}), to=hdica.HebbianICA
            ),
            "not allowed for HebbianICA (a feature that stays)",
        ),
        (
            lambda: hdica.limit(pca(motion=MOVES, start=VECTOR), times=[1.0], method="ode"),
            "not allowed with start = a vector for method 'ode'",
        ),
        (
            lambda: pca(motion=MOVES, prior={"vector": [1.0] * 20}),
            "equal entries that change places change nothing",
        ),
    ],
)
def test_refused(call, sentence):
    with pytest.raises(HdicaError) as caught:
        call()
    assert sentence in str(caught.value)


def test_a_first_estimate_that_is_a_vector_goes_with_a_signal_that_varies():
    given = {"prior": SIGNS, "batch": 4, "times": [0.0, 3.0]}
    system = pca(omega=VARIES, start=VECTOR, prior={"vector": [1.0] * 10 + [-1.0] * 10})
    begin = float(hdica.limit(system, times=[0.0], method="ode")["Q"][0])
    like = pca(omega=VARIES, start={"overlap": begin, "exact": True})
    found, other = (hdica.limit(one, times=given["times"], method="ode") for one in (system, like))
    for name in ("Q", "Q_sd"):
        assert found[name].values == pytest.approx(other[name].values, abs=1e-9)
    assert np.isfinite(hdica.simulate(system, n=20, times=[3.0], method="vector")["Q"].values).all()
