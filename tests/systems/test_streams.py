"""Rules on samples of one's own: the numbers of a plain reference, the law of the model."""

import json

import numpy as np
import pytest
import zarr
from scipy.stats import ks_2samp

import hdica
from hdica import OnlineICA, SparsePCA
from hdica.errors import HdicaError
from hdica.inputs import samples
from hdica.systems.trials import content_of

N = 40


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    return tmp_path


def feature(n=N):
    return np.where(np.arange(n) % 3 == 0, np.sqrt(3.0), 0.0) * np.sqrt(n / 3 / -(-n // 3))


def ica_samples(rng, count, xi):
    """(1) of Wang and Lu 2017 with a uniform source: y = xi c/sqrt(n) + a, a across xi."""
    n = xi.size
    c, a = rng.uniform(-np.sqrt(3), np.sqrt(3), count), rng.standard_normal((count, n))
    return np.outer(c, xi) / np.sqrt(n) + a - np.outer(a @ xi / n, xi)


def pca_samples(rng, count, xi, omega):
    """(1) of Wang and Lu 2016."""
    c, a = rng.standard_normal(count), rng.standard_normal((count, xi.size))
    return np.sqrt(omega / xi.size) * np.outer(c, xi) + a


def reference(y, x, weight, shrink, batch=1):
    """Every estimate, shape (steps + 1, n): a mean over a batch, phi, |x|^2 = n."""
    n, path = x.size, [x * np.sqrt(x.size / np.sum(x * x))]
    for k in range(len(y) // batch):
        x, part = path[-1], y[k * batch : (k + 1) * batch]
        moved = x + weight(part @ x / np.sqrt(n)) @ part / np.sqrt(n) / batch
        moved = shrink(x, moved)
        path.append(moved * np.sqrt(n / np.sum(moved**2)))
    return np.array(path)


def ica_reference(y, x, batch=1, sign=-1.0):
    return reference(
        y, x, lambda u: sign * 0.1 * u**3, lambda x, v: v - 0.1 / N * 0.3 * np.sign(x), batch
    )


def pca_reference(y, x, batch=1):
    return reference(
        y, x, lambda u: 0.5 * u, lambda x, v: v - (0.2 * np.sign(v) + 0.1 * v) / N, batch
    )


ICA = {"tau": 0.1, "regularizer": "0.3*sign(x)"}
PCA = {"tau": 0.5, "regularizer": "0.2*sign(x) + 0.1*x"}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("system", "given", "plain"), [(OnlineICA, ICA, ica_reference), (SparsePCA, PCA, pca_reference)]
)
def test_it_is_the_rule_of_a_plain_reference(system, given, plain, batch):
    rng, xi = np.random.default_rng(1), feature()
    y, x = ica_samples(rng, 360, xi), xi + rng.standard_normal(N)
    one = system(**given, prior={"vector": xi}, start={"vector": x}, data=y, batch=batch)
    times = np.array([0, 0.5, 1, 3])
    found = hdica.simulate(one, times=times, seeds=1, extra=["loading"]).isel(seed=0)
    steps = (times * N).astype(int)
    path = plain(y, x, batch)[steps]
    assert found.attrs["method"] == "stream"
    assert np.abs(found.loading.values - path).max() < 1e-12
    assert np.abs(found.Q.values - path @ xi / N).max() < 1e-12
    assert found.samples.values.tolist() == (steps * batch).tolist()
    assert found.largest.values == pytest.approx((path**2).max(axis=1) / N, abs=1e-12)
    assert "step" not in found.coords
    if plain is ica_reference:  # negative control: f of the other sign is another path
        wrong = ica_reference(y, x, batch, sign=1.0)[steps]
        assert np.abs(found.loading.values - wrong).max() > 1e-2


def test_moments_are_those_of_the_last_n_projections():
    rng, xi = np.random.default_rng(2), feature()
    y, x = ica_samples(rng, 3 * N, xi), xi + rng.standard_normal(N)
    system = OnlineICA(**ICA, prior={"vector": xi}, start={"vector": x}, data=y)
    found = hdica.simulate(system, times=[0, 0.5, 3], seeds=1).isel(seed=0)
    u = np.sum(ica_reference(y, x)[:-1] * y, axis=1) / np.sqrt(N)
    expected = [np.mean(u[: N // 2] ** 4), np.mean(u[2 * N :] ** 4)]
    assert np.isnan(found.fourth[0])
    assert found.fourth.values[1:] == pytest.approx(expected, rel=1e-12)
    assert float(found.second[1]) == pytest.approx(np.mean(u[: N // 2] ** 2), rel=1e-12)


def test_proximal_is_soft_thresholding():
    rng, xi = np.random.default_rng(3), feature()
    y, x = pca_samples(rng, 2 * N, xi, 2.0), xi + rng.standard_normal(N)

    def soft(x, v):
        return np.sign(v) * np.maximum(np.abs(v) - 0.2 / N, 0) / (1 + 0.1 / N)

    system = SparsePCA(**PCA, variant="proximal", prior={"vector": xi}, start={"vector": x}, data=y)
    found = hdica.simulate(system, times=[0, 2], seeds=1, extra=["loading"])
    path = reference(y, x, lambda u: 0.5 * u, soft)
    assert np.abs(found.loading.values[0, -1] - path[-1]).max() < 1e-12
    assert np.abs(path[-1] - pca_reference(y, x)[-1]).max() > 1e-9  # control


@pytest.mark.deep
@pytest.mark.parametrize("which", ["ica", "pca"])
def test_samples_of_the_model_give_the_law_of_its_simulation(which):
    rng, xi, runs, last = np.random.default_rng(4), feature(), 200, 3
    begin = xi + 1.2 * rng.standard_normal(N)
    alike = {"prior": {"vector": xi}, "start": {"vector": begin}}
    if which == "ica":
        system = OnlineICA(**(ICA | {"tau": 0.15}), **alike)
        made = [ica_samples(rng, last * N, xi) for _ in range(runs)]
    else:
        system = SparsePCA(**PCA, omega=2.0, **alike)
        made = [pca_samples(rng, last * N, xi, 2.0) for _ in range(runs)]

    def ends(arrays):
        some = (system.model_copy(update={"data": y}) for y in arrays)
        return [
            float(hdica.simulate(one, times=[0, last], seeds=1, method="stream").Q[0, -1])
            for one in some
        ]

    model = hdica.simulate(system, n=N, times=[0, last], seeds=400, method="vector").Q.values[:, -1]
    assert ks_2samp(ends(made), model).pvalue > 0.01
    shuffled = [y[:, rng.permutation(N)] for y in made]  # the signal is somewhere else
    assert ks_2samp(ends(shuffled), model).pvalue < 1e-6
    scaled = [1.2 * y for y in made]  # not whitened
    assert ks_2samp(ends(scaled), model).pvalue < 1e-4


@pytest.mark.deep
def test_the_same_samples_have_the_same_key_and_bits_wherever_they_lie(data, monkeypatch):
    y = ica_samples(np.random.default_rng(5), 200, feature())
    np.save(data / "y.npy", y)
    np.save(data / "fortran.npy", np.asfortranarray(y))
    zarr.create_array(str(data / "y.zarr"), data=y, chunks=(7, 16))
    monkeypatch.setattr(samples, "_NUMBERS", 600)  # 15 rows at a time
    given = {"tau": 0.1, "start": {"overlap": 0}}
    systems = [
        OnlineICA(**given, data=one | {"order": "shuffled", "passes": 3})
        for one in ({"array": "y.npy"}, {"array": "fortran.npy"}, {"array": "y.zarr"}, {"array": y})
    ]
    contents = {json.dumps(content_of(one), sort_keys=True) for one in systems}
    assert len(contents) == 1
    assert len(contents.pop()) < 400
    found = [hdica.simulate(s, times=[0, 7, 15], seeds=2, extra=["loading"]) for s in systems]
    monkeypatch.setattr(samples, "_NUMBERS", 2**20)
    found.append(hdica.simulate(systems[0], times=[0, 15], seeds=2, extra=["loading"]))
    for one in found[1:]:
        assert one.loading.values[:, -1].tobytes() == found[0].loading.values[:, -1].tobytes()
    once = hdica.simulate(OnlineICA(**given, data=y), times=[0, 5], seeds=2, extra=["loading"])
    assert not np.array_equal(once.loading[0, 0], once.loading[1, 0])  # starts are drawn
    other = OnlineICA(**given, data=y + 1e-12)
    assert content_of(other) != content_of(OnlineICA(**given, data=y))


def test_every_pass_that_is_shuffled_sees_every_sample_once():
    from hdica.finite.projected.vector import Rows

    y = np.arange(30.0).reshape(10, 3)
    rows = Rows(lambda a, b: y[a:b], lambda k: y[k], 10, 3, 4, shuffled=True, passes=2)
    seen = [row[0] for row in rows.one_by_one(lambda part: np.random.default_rng(0))]
    assert sorted(seen[:10]) == sorted(seen[10:]) == y[:, 0].tolist()
    assert seen[:10] != seen[10:] != y[:, 0].tolist()
    plain = Rows(lambda a, b: y[a:b], lambda k: y[k], 10, 3, 4, passes=2)
    assert [row[0] for row in plain.one_by_one(np.random.default_rng)] == [*y[:, 0], *y[:, 0]]


def test_a_step_that_overflows_says_where():
    y = np.random.default_rng(6).standard_normal((20, 5))
    y[7] *= 1e200
    found = hdica.simulate(
        OnlineICA(tau=0.1, data=y, start={"overlap": 0}), times=[0, 1, 2, 4], seeds=1
    )
    assert found.status.values.tolist() == [2]
    assert "not finite at step 7 (t = 1.4)" in str(found.reason.values[0])
    assert np.isfinite(found.R.values[0]).tolist() == [True, True, False, False]


def odd(value, at=(4, 2)):
    y = np.ones((6, 3))
    y[at] = value
    return y


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (np.ones(5), "array of shape (5,)"),
        ([[1, 2], [3, 4]], "array of shape (2, 2)"),
        ([[1, 2, 3], [1]], "a row a sample"),
        ([["a", "b", "c"]], "real numbers"),
        (np.ones((4, 3)) * 1j, "complex128"),
        (np.ones((0, 3)), "array of shape (0, 3)"),
        (odd(np.nan), "row 4, column 2 is nan"),
        (odd(-np.inf), "row 4, column 2 is -inf"),
        ({"array": "none.npy"}, "there is no"),
        ({"array": "../y.npy"}, "without '..'"),
        ({"array": "text.npy"}, "cannot be read"),
        ({"array": {"n": 3, "samples": 3, "sha256": "0" * 64}}, "not known to this process"),
        ({"array": odd(1), "order": "sorted"}, "order = 'sorted'"),
        ({"array": odd(1), "passes": 0}, "passes = 0"),
        ({"array": odd(1), "passes": True}, "passes = True"),
        ({"rows": 3}, "array is rows of numbers"),
    ],
)
def test_what_are_no_samples_is_refused_with_one_sentence(data, given, part):
    (data / "text.npy").write_text("no array")
    with pytest.raises(HdicaError) as refused:
        SparsePCA(tau=0.1, data=given)
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_was_changed_is_refused(data):
    np.save(data / "y.npy", odd(1.0))
    system = SparsePCA(tau=0.1, data={"array": "y.npy"})
    again = json.loads(system.model_dump_json())
    assert SparsePCA(**again) == system
    np.save(data / "y.npy", odd(2.0))
    with pytest.raises(HdicaError, match="these are other samples"):
        SparsePCA(**again)


def test_what_does_not_fit_the_samples_is_refused():
    y, xi = ica_samples(np.random.default_rng(7), 3 * N, feature()), {"vector": feature()}
    known = OnlineICA(tau=0.1, prior=xi, data=y, batch=2)
    for system, how, part in (
        (known, {"times": [0, 1.6]}, "times until 1.6 are not allowed (120 samples of 40 entries"),
        (known, {"n": N}, "n = 40 is not allowed (method 'stream' has no n)"),
        (known, {"n": N, "method": "chain"}, "draws samples of the model and sees no data"),
        (known, {"n": N, "noise": "shared", "method": "vector"}, "sees no data"),
        (OnlineICA(tau=0.1, prior=xi), {"method": "stream"}, "no samples are given"),
        (OnlineICA(tau=0.1, data=y), {}, "data whose feature is not known"),
        (OnlineICA(tau=0.1, data=y), {"method": "stream"}, "overlap needs the feature"),
        (OnlineICA(tau=0.1, prior=xi, data=y, sign="auto"), {"method": "stream"}, "sign = 'auto'"),
    ):
        with pytest.raises(HdicaError) as refused:
            hdica.simulate(system, **({"times": [0, 1], "seeds": 1} | how))
        assert part in str(refused.value)
    with pytest.raises(HdicaError, match="data of 40 columns are not allowed with prior"):
        SparsePCA(tau=0.1, start={"vector": [1, 2, 3]}, prior={"vector": [1, 2, 3]}, data=y)


def test_limits_of_the_model_do_not_see_the_samples():
    y = ica_samples(np.random.default_rng(8), 10, feature())
    one, other = OnlineICA(tau=0.05), OnlineICA(tau=0.05, data=y)
    found = [hdica.limit(system, times=[0, 1]).Q.values for system in (one, other)]
    assert np.array_equal(*found)


def test_a_study_runs_from_files(data, tmp_path):
    xi = feature()
    y = ica_samples(np.random.default_rng(9), 4 * N, xi)
    np.save(data / "xi.npy", xi)
    zarr.create_array(str(data / "y.zarr"), data=y, chunks=(16, N))
    study = {
        "study": "own_samples",
        "system": "OnlineICA",
        "parameters": {
            "tau": 0.1,
            "prior": {"vector": "xi.npy"},
            "data": {"array": "y.zarr", "order": "shuffled"},
        },
        "grid": {"tau": [0.05, 0.1]},
        "methods": {"stream": {"seeds": 2}, "ode": {}},
    }
    study["parameters"].pop("tau")
    with pytest.raises(HdicaError, match=r"methods.stream does not apply: times until 5"):
        hdica.Study(**study, times=[0, 5])
    found = hdica.Study(**study, times=[0, 4])
    stream = found.run(tmp_path / "out.zarr", workers=2)["stream"].to_dataset()
    system = OnlineICA(**{**study["parameters"], "tau": 0.1})
    alone = hdica.simulate(system, times=[0, 4], seeds=2)
    assert stream.Q.sel(tau=0.1).values.tobytes() == alone.Q.values.tobytes()
    assert "step" not in stream.coords
