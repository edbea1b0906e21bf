"""Notes on samples of one's own: what they are not that a rule assumes, and when none is due."""

import json
import re

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import hdica
from hdica import OnlineICA, SparsePCA
from hdica.analysis.account.account import choices
from hdica.analysis.account.account import notes_of_choices as sentences
from hdica.cli import app
from hdica.systems.projected import stream as assumed
from hdica.systems.system import systems

N, ROWS = 16, 2000
SYSTEMS = [OnlineICA, SparsePCA]


def model(system, seed=0, rows=ROWS, n=N, source=None):
    """Samples of the model itself."""
    rng, xi = np.random.default_rng(seed), np.ones(n)
    c = (source or (lambda rng, k: rng.uniform(-np.sqrt(3), np.sqrt(3), k)))(rng, rows)
    a = rng.standard_normal((rows, n))
    if system is SparsePCA:
        return np.sqrt(4 / n) * np.outer(c, xi) + a
    return np.outer(c, xi) / np.sqrt(n) + a - np.outer(a @ xi / n, xi)


def referenced(y):
    return y - y.mean(axis=1, keepdims=True)


def stuck(y):
    return np.where(np.arange(y.shape[1]) == 5, 3.2, y)


WRONG = {
    "volts": (
        lambda y: 1e-6 * y,
        r"entries of data have standard deviation (9\.\d+e-07|1(\.\d+)?e-06)",
    ),
    "mean": (lambda y: y + 3, r"mean of data is not 0: columns have means of up to (2\.\d|3\.\d)"),
    "constant": (stuck, r"data vary in 15 of 16 directions \(column 5 is constant, 3\.2\)"),
    "reference": (referenced, r"data vary in 15 of 16 directions \(all rows have the same mean"),
    "single": (lambda y: referenced(y).astype(np.float32), "data vary in 15 of 16 directions"),
    "mixed": (lambda y: y * np.geomspace(0.1, 10, N), "is not a multiple of the identity"),
}


def notes(system):
    return systems()[type(system).__name__].notes.data(system)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", SYSTEMS)
def test_what_is_not_as_assumed_is_a_note_of_the_result(kind, wrong):
    change, pattern = WRONG[wrong]
    y, given = model(kind), {"tau": 0.01, "start": {"overlap": 0}}
    found = hdica.simulate(kind(**given, data=change(y)), times=[0, 1])
    assert len(re.findall(pattern, found.attrs["note"])) == 1
    assert "\n" not in found.attrs["note"]
    over = hdica.simulate(kind(**given, data=change(y)), times=[0, 1], over={"tau": [0.01, 0.02]})
    assert over.attrs["note"] == found.attrs["note"]
    assert "note" not in hdica.simulate(kind(**given, data=y), times=[0, 1]).attrs
    # Control: limits are of the model and see no data.
    assert "data" not in hdica.limit(kind(**given, data=change(y)), times=[0]).attrs.get("note", "")


@pytest.mark.parametrize("wrong", WRONG)
def test_no_note_is_left_on_whitened_samples(wrong):
    white = hdica.whiten(WRONG[wrong][0](model(OnlineICA))).white
    assert notes(OnlineICA(tau=0.01, data=white)) == ()
    (first, remedy) = notes(SparsePCA(tau=0.01, data=white))
    assert first.endswith("they have no principal component")
    assert "not hdica.whiten" in remedy


def test_samples_of_the_model_have_no_note():
    rng = np.random.default_rng(1)
    laws = [
        None,
        lambda r, k: r.laplace(size=k) / np.sqrt(2),
        lambda r, k: r.choice([-1.0, 1.0], k),
    ]
    for seed in range(60):
        n = int(rng.integers(3, 100))
        rows = int(n * rng.uniform(0.5, 20)) + 2
        for kind in SYSTEMS:
            y = model(kind, seed, rows, n, laws[seed % 3])
            assert notes(kind(tau=0.01, data=y)) == (), (kind, seed, rows, n)


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_no_size_is_too_large_or_too_small(kind, size):
    (first, _) = notes(kind(tau=0.01, data=size * model(kind)))
    assert re.search(r"standard deviation \d(\.\d+)?e[+-](199|200|201)", first)
    assert notes(kind(tau=0.01, data=np.ones((1, 3)))) == ()
    assert "vary in 0 of 3 directions (3 columns" in notes(kind(tau=0.01, data=np.ones((4, 3))))[0]


def test_of_many_rows_some_are_looked_at_and_the_note_says_so(monkeypatch):
    monkeypatch.setattr(assumed, "_NUMBERS", 500 * N)
    y = 3 + model(OnlineICA)
    assert "500 of 2000 rows of data, evenly spaced, were looked at" in notes(
        OnlineICA(tau=0.01, data=y + 1e-9)  # other samples than those of the tests above
    )
    assert assumed.rows_of(10**9, 64) == 500 * N // 64
    monkeypatch.undo()
    assert assumed.rows_of(10**9, 10_000) == 1500
    assert assumed.rows_of(10**9, 2**20) == 16


def study(kind, name="own"):
    return {
        "study": name,
        "system": kind.__name__,
        "parameters": {"start": {"overlap": 0}, "data": {"array": "y.npy"}},
        "grid": {"tau": [0.01, 0.02]},
        "times": [0, 10],
        "methods": {"blind": {"seeds": 1}},
    }


@pytest.mark.parametrize("kind", SYSTEMS)
def test_a_study_has_the_notes_in_its_plan_and_on_its_page(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    shown = {}
    for name in ("plain", *WRONG):
        y = model(kind)
        np.save(tmp_path / "y.npy", y if name == "plain" else WRONG[name][0](y))
        sweep = hdica.Study(**study(kind))
        shown[name] = sweep.plan()
        pattern = "^$" if name == "plain" else WRONG[name][1]
        assert re.search(pattern, "; ".join(shown[name].notes))
    assert "  note: " not in repr(shown["plain"])
    assert repr(shown["mean"]).count("  note: ") == len(shown["mean"].notes) == 2
    assert shown["mean"].as_dict()["notes"] == list(shown["mean"].notes)
    tree = xr.DataTree()
    tree.attrs["study_yaml"] = sweep.spec.model_dump_json()
    tree.attrs["system"] = kind.__name__
    (sentence,) = sentences(choices(tree))
    assert sentence.startswith("Data are not as the rule assumes at every point: ")
    assert "not a multiple of the identity" in sentence


def test_the_command_line_says_the_notes(tmp_path, monkeypatch):
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    np.save(tmp_path / "y.npy", model(OnlineICA) + 3)
    path = tmp_path / "own.yaml"
    path.write_text(json.dumps(study(OnlineICA)))  # which is YAML
    for command in (["validate"], ["plan"]):
        found = CliRunner().invoke(app, [*command, str(path)])
        assert found.exit_code == 0
        assert found.output.count("note: ") == 2
        assert "note: the mean of data is not 0" in found.output


@pytest.mark.parametrize("kind", SYSTEMS)
def test_a_mask_is_refused_with_one_sentence(kind, tmp_path):
    y = np.ma.masked_array(model(kind), mask=np.eye(ROWS, N))
    for given in (y, {"array": y}):
        with pytest.raises(hdica.HdicaError) as refused:
            kind(tau=0.01, data=given)
        assert "data: 16 masked entries are not allowed, the first at (0, 0)" in str(refused.value)
    whole = np.ma.masked_array(model(kind))  # no entry is masked
    assert kind(tau=0.01, data=whole) == kind(tau=0.01, data=model(kind))
    assert kind(tau=0.01, data=xr.DataArray(y.data)) == kind(tau=0.01, data=y.data)
    vector = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    for name in ("prior", "start"):
        with pytest.raises(hdica.HdicaError, match="masked|type object"):
            kind(tau=0.01, **{name: {"vector": vector}})
    for wrong in (np.ones((4, 3), dtype=bool), xr.Dataset({"y": ("x", [1.0])})):
        with pytest.raises(hdica.HdicaError, match="real numbers"):
            kind(tau=0.01, data=wrong)
