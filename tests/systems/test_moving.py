"""A feature that moves: the rule against plain NumPy in law, its limits."""

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream
from hdica.limits.mean_field.density.march import Record
from hdica.limits.mean_field.density.solve import _explored, follow
from hdica.limits.mean_field.density.state import posed
from hdica.systems.online_ica.system import rule as ica_rule
from hdica.systems.sparse_pca.system import mean_field
from hdica.systems.sparse_pca.system import rule as pca_rule
from tests.finite.runs import run_vector
from tests.reference import overlap_start

TIMES = np.linspace(0.0, 12.0, 13)
EXCHANGE = {"exchange": 0.6}
JUMPS = {"jumps": {"times": [2.0], "share": 0.6}}
BOTH = {"exchange": 0.1, "jumps": {"times": [4.0, 7.5], "share": 0.5}}
SIGNS, SPARSE = {"sparse_sign": 0.4}, {"sparse": 0.4}


def pca(motion=None, prior=SIGNS, **more):
    given = {"tau": 0.4, "omega": 1.5, "start": {"overlap": 0.7}, **more}
    return hdica.SparsePCA(prior=prior, motion=motion, **given)


def ica(motion=None, prior=SIGNS, **more):
    given = {"tau": 0.03, "start": {"overlap": 0.85}, **more}
    return hdica.OnlineICA(prior=prior, motion=motion, **given)


def moves(rng, xi, k, motion):
    """What happens to the features before step k, in plain NumPy; xi of shape (trials, n)."""
    trials, n = xi.shape
    jumps, every = motion.get("jumps", {"times": []}), np.arange(trials)
    for t in jumps["times"]:
        if k == round(t * n):
            chosen = np.argsort(rng.random(xi.shape))[:, : round(jumps["share"] * n)]
            xi[every[:, None], chosen] = rng.permuted(xi[every[:, None], chosen], axis=1)
    counts = rng.poisson(motion.get("exchange", 0.0) / 2, trials)
    for one in range(counts.max(initial=0)):
        some = every[counts > one]
        i = rng.integers(0, n, some.size)
        j = (i + rng.integers(1, n, some.size)) % n
        xi[some, i], xi[some, j] = xi[some, j], xi[some, i]


def along(a, b):
    return np.sum(a * b, axis=1, keepdims=True)


def pca_step(rng, xi, x, tau=0.4, omega=1.5):
    n = xi.shape[1]
    y = np.sqrt(omega / n) * rng.standard_normal((len(x), 1)) * xi + rng.standard_normal(x.shape)
    return x + tau / n * y * along(y, x)


def ica_step(rng, xi, x, tau=0.03):
    n = xi.shape[1]
    c, z = rng.uniform(-np.sqrt(3), np.sqrt(3), (len(x), 1)), rng.standard_normal(x.shape)
    y = xi * c / np.sqrt(n) + z - xi * along(xi, z) / n
    return x - tau / np.sqrt(n) * (along(y, x) / np.sqrt(n)) ** 3 * y


def plain(step, motion, n, steps, trials, seed, q0):
    """Overlaps after some steps with a feature that moves, shape (trials,)."""
    rng, share = np.random.default_rng(seed), round(0.2 * n)
    values = np.repeat([-1.0, 1.0, 0.0], [share, share, n - 2 * share]) / np.sqrt(0.4)
    xi = rng.permuted(np.tile(values, (trials, 1)), axis=1)
    x = np.array([overlap_start(rng, one, q0) for one in xi])
    for k in range(steps):
        moves(rng, xi, k, motion)
        x = step(rng, xi, x)
        x *= np.sqrt(n) / np.linalg.norm(x, axis=1, keepdims=True)
    return along(xi, x)[:, 0] / n


def drawn(rule, t, n, count, label):
    def one(seed):
        streams = lambda part: point_stream({"moving": label}, "test", n, seed, part)  # noqa: E731
        values, diverged = run_vector(rule, np.array([t]), n, streams)
        assert diverged == ""
        return values["Q"][0]

    return np.array([one(seed) for seed in range(count)])


CASES = [
    (pca, pca_rule, pca_step, EXCHANGE, 0.7),
    (pca, pca_rule, pca_step, JUMPS, 0.7),
    (ica, ica_rule, ica_step, EXCHANGE, 0.85),
]


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=["pca-exchange", "pca-jump", "ica-exchange"])
def test_the_rule_is_that_of_plain_numpy_in_law(case):
    make, rule_of, step, motion, q0 = case
    n, t, count, many = 20, 3.0, 1000, 4000
    found = drawn(rule_of(make(motion)), t, n, count, str(motion))
    given = (n, round(t * n), many)
    right, still = (plain(step, one, *given, k, q0) for k, one in enumerate((motion, {})))
    assert stats.ks_2samp(found, right).pvalue > 1e-3
    for power in (1, 2):
        a, b = found**power, right**power
        error = np.hypot(a.std() / np.sqrt(count), b.std() / np.sqrt(many))
        assert abs(a.mean() - b.mean()) < 4 * error
    assert stats.ks_2samp(found, still).pvalue < 1e-6


def test_entries_and_norm_of_the_feature_are_kept_at_every_snapshot():
    system = pca(BOTH, prior={"sparse": 0.3}, regularizer="0.1*sign(x)")
    runs = hdica.simulate(
        system, times=TIMES, n=50, seeds=2, method="vector",
        snapshots=[0.0, 6.0, 12.0], thresholds=[0.5], x=np.linspace(-3, 3, 13),
    )  # fmt: skip
    assert runs["weight"].values.reshape(-1, 2) == pytest.approx(np.tile([0.7, 0.3], (2, 1)))
    groups = runs["density"].transpose("seed", "snapshot", "feature", "x").values
    assert np.all(np.isfinite(groups))


def test_numbers_depend_on_no_chunk_and_no_neighbour():
    system = pca(BOTH)
    given = {"n": 60, "method": "vector", "noise": "shared"}
    few = hdica.simulate(system, times=[4.0, 12.0], seeds=2, **given)["Q"]
    many = hdica.simulate(system, times=TIMES, seeds=2, **given)["Q"].sel(time=[4.0, 12.0])
    assert np.array_equal(few.values, many.values)
    other = hdica.simulate(pca({"exchange": 0.1}), times=[4.0], seeds=2, **given)["Q"]
    still = hdica.simulate(pca(), times=[4.0], seeds=2, **given)["Q"]
    assert not np.array_equal(other.values, still.values)


@pytest.mark.parametrize("prior", [SIGNS, SPARSE], ids=["mean 0", "mean not 0"])
@pytest.mark.parametrize("make", [pca, ica])
def test_simulations_tend_to_the_limit(make, prior):
    n, count = 400, 40
    limit = hdica.limit(make(BOTH, prior), times=TIMES, method="ode")
    runs = hdica.simulate(make(BOTH, prior), times=TIMES, n=n, seeds=count, method="vector")["Q"]
    later = TIMES > 0
    error = (runs.std("seed", ddof=1) / np.sqrt(count)).values[later] + 1.5 / n
    off = (runs.mean("seed") - limit["Q"]).values[later]
    assert np.all(np.abs(off) < 4 * error)
    still = hdica.limit(make(None, prior), times=TIMES, method="ode")["Q"]
    assert np.abs((runs.mean("seed") - still).values[later] / error).max() > 12


@pytest.mark.deep
@pytest.mark.parametrize("motion", [EXCHANGE, JUMPS], ids=["exchange", "jump"])
def test_fluctuations_are_those_of_the_central_limit_theorem(motion):
    n, count = 300, 200
    limit = hdica.limit(pca(motion), times=TIMES[1:], method="ode")
    runs = hdica.simulate(pca(motion), times=TIMES[1:], n=n, seeds=count, method="vector")["Q"]
    ratio = (np.sqrt(n) * runs.std("seed", ddof=1) / limit["Q_sd"]).values
    assert np.all(np.abs(ratio - 1) < 4 / np.sqrt(2 * count) + 0.03)
    still = hdica.limit(pca(), times=TIMES[1:], method="ode")["Q_sd"]
    assert np.abs(np.sqrt(n) * runs.std("seed", ddof=1) / still - 1).max() > 0.3
    unknown = hdica.limit(pca(motion, SPARSE), times=TIMES, method="ode")["Q_sd"]
    assert bool(unknown.isnull().all())


@pytest.mark.parametrize("prior", [SPARSE], ids=["mean not 0"])
def test_the_density_follows_the_overlap_where_both_are_known(prior):
    ode = hdica.limit(pca(BOTH, prior), times=TIMES, method="ode")
    pde = hdica.limit(pca(BOTH, prior), times=TIMES, method="pde")
    off = abs(ode["Q"] - pde["Q"])
    assert float((off - pde["Q_error"]).max()) < 1e-9
    assert float(off.max()) < 2e-7
    assert float(pde["residual"].max()) < 1e-11


def test_the_split_march_is_of_second_order():
    """Errors of levels with cells and steps halved, against the equation of the overlap."""
    system, times = pca({"exchange": 0.5}, SPARSE), np.array([3.0, 6.0])
    problem, _ = posed(mean_field(system))
    known = hdica.limit(system, times=times, method="ode")["Q"].values
    blank = lambda: Record(problem, np.empty(0), {})  # noqa: E731
    plan, _ = _explored(problem, times, 3.0, blank, problem.field.phi.kinks)
    errors = []
    for refine in (1, 2, 4):
        level = blank()
        follow(problem, plan, refine, level)
        where = np.searchsorted(level.times, times)
        errors.append(np.abs(level.rows[where, 1] - known).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 2) < 0.25), (errors, orders)


@pytest.mark.deep
def test_any_regularizer_density_particles_and_simulation():
    system = pca({"exchange": 0.15}, {"sparse": 0.3}, regularizer="0.1*sign(x)", tau=0.3)
    times = np.array([2.0, 5.0, 10.0])
    pde = hdica.limit(system, times=times, method="pde")
    runs = hdica.simulate(system, times=times, n=500, seeds=40, method="vector")
    cloud = hdica.simulate(system, times=times, n=4000, seeds=8, method="particles")
    for name in ("Q", "R"):
        for one, bias in ((runs, 1.5 / 500), (cloud, 1e-3)):
            error = (one[name].std("seed", ddof=1) / np.sqrt(one.sizes["seed"])).values + bias
            assert np.all(np.abs((one[name].mean("seed") - pde[name]).values) < 4 * error)
    still = hdica.limit(system.model_copy(update={"motion": None}), times=times, method="pde")
    error = (runs["Q"].std("seed", ddof=1) / np.sqrt(40)).values
    assert np.abs((runs["Q"].mean("seed") - still["Q"]).values / error).max() > 15


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: pca(EXCHANGE, "dense"), "equal entries that change places change nothing"),
        (lambda: pca({"drift": 1}), "motion = {'drift': 1} is not allowed"),
        (
            lambda: hdica.simulate(pca(EXCHANGE), times=[1.0], n=10, method="chain"),
            "exact only for a feature that stays",
        ),
        (lambda: hdica.fixed_points(pca(JUMPS)), "never rests"),
        (lambda: hdica.fixed_points(pca(EXCHANGE, SPARSE)), "a prior of mean 0"),
        (lambda: hdica.fixed_points(pca(EXCHANGE, regularizer="x**3")), "allowed: 0 and beta*x"),
        (lambda: hdica.critical(pca(EXCHANGE)), "a feature that stays"),
        (lambda: hdica.critical(ica(EXCHANGE), "tau", low=0.1), "a feature that stays"),
        (lambda: hdica.best_step(pca()), "a rate of exchange > 0"),
        (lambda: hdica.best_step(hdica.SeveralICA(tau=0.1)), "SeveralICA is not allowed"),
        (
            lambda: hdica.simulate(pca(EXCHANGE), times=[1.0], n=10, method="sample_pca"),
            "a feature that stays",
        ),
    ],
)
def test_refused(call, sentence):
    with pytest.raises(HdicaError) as caught:
        call()
    assert sentence in str(caught.value)
