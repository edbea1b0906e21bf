"""Whitened samples: a plain NumPy reference, what has no variance, and the way back."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.decomposition import PCA

import hdica
from hdica.api import whiten as module
from hdica.errors import HdicaError

ROWS, SIZE = 600, 12


def recording(seed=0, rows=ROWS, size=SIZE):
    """Correlated channels of different sizes with means."""
    rng = np.random.default_rng(seed)
    return rng.laplace(size=(rows, size)) @ rng.standard_normal((size, size)) + rng.normal(
        size=size
    )


def plain(x):
    """Whitened rows by the eigenvectors of the covariance matrix, and its eigenvalues."""
    centred = x - x.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred / (len(x) - 1))
    return (centred @ axes / np.sqrt(values))[:, ::-1], values[::-1]


def up_to_signs(a, b):
    return np.abs(np.abs(np.sum(a * b, axis=0) / (len(a) - 1)) - 1).max()


def holds(found, x, scale=1.0):
    """What is promised of every result: mean 0, unit covariance, filters and patterns."""
    white = found.white.values
    assert np.abs(white.mean(axis=0)).max() < 1e-9
    assert np.abs(np.cov(white.T) - np.eye(found.sizes["component"])).max() < 1e-6
    centred = np.asarray(x, dtype=float) - found["mean"].values
    assert np.abs(centred @ found.filters.values - white).max() < 1e-9
    assert np.abs(white @ found.patterns.values - centred).max() < 1e-4 * scale


@pytest.mark.parametrize("rows_at_once", [2**22, 40])
def test_it_is_a_plain_reference_and_the_one_of_scikit_learn(rows_at_once, monkeypatch):
    monkeypatch.setattr(module, "_NUMBERS", rows_at_once * SIZE)
    x = recording()
    found, (white, values) = hdica.whiten(x), plain(x)
    other = PCA(whiten=True).fit(x)
    assert found.white.shape == (ROWS, SIZE)
    assert found.variance.values == pytest.approx(values, rel=1e-9)
    assert found.share.values == pytest.approx(values / values.sum(), rel=1e-9)
    assert up_to_signs(found.white.values, white) < 1e-9
    assert np.abs(found.white.values - other.transform(x)).max() < 1e-7
    assert found.attrs["note"] == "12 of 12 dimensions kept: 600 samples vary in all of them"
    holds(found, x)


def single(x):
    return (x - x.mean(axis=1, keepdims=True)).astype(np.float32)


def constant(x):
    """With a channel whose mean, a sum of rounded numbers over their number, is not its value."""
    return np.insert(x, 4, 3.2, axis=1)


def mixed_units(x):
    """Volts beside a trigger of 0 to 255."""
    return np.column_stack([1e-6 * x, np.arange(len(x)) % 256])


@pytest.mark.parametrize(
    ("change", "kept", "of", "scale"),
    [
        (lambda x: x - x.mean(axis=1, keepdims=True), SIZE - 1, SIZE, 1),
        (single, SIZE - 1, SIZE, 1),
        (lambda x: single(x).astype(float), SIZE - 1, SIZE, 1),
        (lambda x: x.astype(np.float32), SIZE, SIZE, 1),
        (lambda x: 1e-6 * x, SIZE, SIZE, 1e-6),
        (lambda x: 1e-6 * (x - x.mean(axis=1, keepdims=True)), SIZE - 1, SIZE, 1e-6),
        (lambda x: x * 1e-150, SIZE, SIZE, 1e-150),
        (constant, SIZE, SIZE + 1, 1),
        (lambda x: constant(x).astype(np.float32), SIZE, SIZE + 1, 1),
        (mixed_units, SIZE + 1, SIZE + 1, 255),
        (lambda x: mixed_units(x).astype(np.float32), SIZE + 1, SIZE + 1, 255),
        (lambda x: x[:8], 7, SIZE, 1),
        (lambda x: np.round(1000 * x).astype(np.int16), SIZE, SIZE, 1000),
    ],
)
def test_directions_without_variance_are_left_out(change, kept, of, scale):
    x = change(recording())
    found = hdica.whiten(x)
    assert found.attrs["components"] == found.attrs["rank"] == kept
    assert found.attrs["dimension"] == of
    assert found.attrs["note"].startswith(f"{kept} of {of} dimensions kept: {len(x)} samples")
    holds(found, x, scale)


def test_largest_components_are_kept_and_no_more_than_vary():
    x = constant(recording())
    full, found = hdica.whiten(x), hdica.whiten(x, n_components=5)
    xr.testing.assert_equal(found, full.isel(component=slice(5)))
    assert found.attrs["note"] == (
        "5 of 13 dimensions kept: 600 samples vary in 12, and n_components = 5"
    )
    for wrong, part in ((13, "vary in 12 directions"), (0, "a whole number >= 1"), (0.9, "0.9")):
        with pytest.raises(HdicaError, match=part):
            hdica.whiten(x, n_components=wrong)
    with pytest.raises(HdicaError, match="vary in 0 directions"):
        hdica.whiten(np.ones((5, 3)))


def test_files_and_labels_are_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    x = recording()
    np.save(tmp_path / "x.npy", x)
    zarr.create_array(str(tmp_path / "x.zarr"), data=x, chunks=(50, SIZE))
    expected = hdica.whiten(x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for given in ("x.npy", {"array": "x.zarr"}, x.tolist(), mapped):
        xr.testing.assert_equal(hdica.whiten(given), expected)
    names = [f"C{k}" for k in range(SIZE)]
    when = np.arange(ROWS) / 250
    labelled = xr.DataArray(x, {"time": when, "sensor": names}, ["time", "sensor"])
    found = hdica.whiten(labelled)
    assert found.white.dims == ("time", "component")
    assert found.patterns.sel(sensor="C3").values == pytest.approx(expected.patterns.values[:, 3])
    with pytest.raises(HdicaError, match="dimension 'component'"):
        hdica.whiten(found.white)


def test_no_more_memory_is_taken_than_what_is_given_back(monkeypatch):
    monkeypatch.setattr(module, "_NUMBERS", 2**12)
    x = recording(rows=40_000)
    hdica.whiten(x[:100])  # what is imported by the first call
    tracemalloc.start()
    try:
        found = hdica.whiten(x)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * found.white.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (np.ma.masked_greater(recording(), 1), "masked entries"),
        (np.where(recording() > 1, np.nan, 1), "is nan"),
        (recording()[0], "array of shape"),
        (recording()[:1], "X of 1 sample"),
        ("none.npy", "there is no"),
    ],
)
def test_what_are_no_samples_is_refused(given, part):
    with pytest.raises(HdicaError, match=part):
        hdica.whiten(given)


def test_a_feature_among_channels_is_seen_through_the_patterns():
    rng = np.random.default_rng(3)
    hidden, pattern = rng.laplace(size=20_000), rng.standard_normal(SIZE)
    noise = rng.standard_normal((20_000, SIZE)) @ rng.standard_normal((SIZE, SIZE))
    x = 1e-6 * (3 + noise + np.outer(hidden, 2 * pattern))
    x -= x.mean(axis=1, keepdims=True)
    found = hdica.whiten(x)
    system = hdica.OnlineICA(tau=0.01, nonlinearity="-x**3", start={"overlap": 0}, data=found.white)
    run = hdica.simulate(system, times=[0, 1800], extra=["loading"])
    assert "note" not in run.attrs
    estimate = run.loading.values[0, -1]
    assert abs(np.corrcoef(x @ found.filters.values @ estimate, hidden)[0, 1]) > 0.5
    seen = estimate @ found.patterns.values
    assert abs(np.corrcoef(seen, pattern - pattern.mean())[0, 1]) > 0.5
