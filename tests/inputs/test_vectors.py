import json

import numpy as np
import pytest
import zarr

import hdica
from hdica import OnlineICA, SparsePCA
from hdica.errors import DataGone, HdicaError
from hdica.ingredients import prior as prior_module
from hdica.ingredients.plain import vector_of
from hdica.inputs.samples import LONGEST, vector_input
from hdica.systems.trials import content_of

N = 400
PCA = {"tau": 0.3, "omega": 1.5, "regularizer": "0.2*sign(x)", "start": {"overlap": 0.4}}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    return tmp_path


def feature(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, rng.laplace(size=n), 0.0)


def kept_everywhere(folder, values):
    """The same numbers in four places: what each is named by."""
    (folder / "a").mkdir()
    np.save(folder / "xi.npy", values)
    np.save(folder / "a" / "same.npy", values)
    zarr.create_array(str(folder / "xi.zarr"), data=values)
    return ["xi.npy", "a/same.npy", "xi.zarr", values, values.tolist()]


def test_a_vector_is_known_by_its_content_wherever_it_lies(data):
    systems = [SparsePCA(prior={"vector": v}, **PCA) for v in kept_everywhere(data, feature())]
    contents = {json.dumps(content_of(system), sort_keys=True) for system in systems}
    assert len(contents) == 1
    assert len(contents.pop()) < 400  # of 400 numbers none is in the key
    np.save(data / "other.npy", feature() + 1e-12)  # negative control
    other = SparsePCA(prior={"vector": "other.npy"}, **PCA)
    assert content_of(other) != content_of(systems[0])


def test_the_same_vector_gives_the_same_bits(data):
    places = kept_everywhere(data, feature())
    found = [
        hdica.simulate(
            SparsePCA(prior={"vector": v}, **PCA), times=[0, 1], n=N, seeds=2, method="vector"
        ).Q.values
        for v in (places[0], places[2], places[3])
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_of_very_many_distinct_entries_neighbours_are_taken_together(monkeypatch):
    from hdica.ingredients import priors

    values = np.random.default_rng(0).normal(size=2**14)
    every = priors.vector_prior(values).nodes
    counted = []

    def sided(nodes, atoms, label):
        counted.append(nodes.points.size)
        return prior_module.sided(nodes, atoms, label)

    monkeypatch.setattr(priors, "MOST", 2**11)
    monkeypatch.setattr(priors, "sided", sided)
    few = priors.vector_prior(values).nodes
    assert counted == [2**11]
    assert few.mean(np.abs(few.points)) == pytest.approx(every.mean(np.abs(every.points)), abs=1e-4)


def test_short_vectors_are_written_out_and_long_ones_are_not(data):
    short, long = vector_input({"vector": np.ones(5)}, "prior"), np.arange(LONGEST + 1.0)
    assert short == {"vector": [1.0] * 5}
    named = vector_input({"vector": long}, "prior")
    assert set(named["vector"]) == {"n", "sha256"}
    assert np.array_equal(vector_of(named), long)
    assert vector_input(named, "prior") == named
    assert vector_input({"sparse": 0.1}, "prior") == {"sparse": 0.1}


def test_a_file_that_was_changed_is_refused(data):
    np.save(data / "xi.npy", feature())
    system = SparsePCA(prior={"vector": "xi.npy"}, **PCA)
    text = system.model_dump_json()
    assert SparsePCA(**json.loads(text)) == system
    np.save(data / "xi.npy", feature(1))
    with pytest.raises(DataGone, match="it is another vector"):
        SparsePCA(**json.loads(text))


def test_keys_of_a_study_do_not_say_where_a_vector_lies(data):
    kept_everywhere(data, feature())

    def content(place):
        from hdica.study.segment import cells_of, field_texts
        from hdica.systems.space import space_of
        from hdica.systems.system import methods_of

        space = space_of(SparsePCA, {**PCA, "prior": {"vector": place}}, {})
        cells = cells_of(methods_of("SparsePCA")["vector"], (), field_texts(space))
        return list(cells.contents()), cells.systems(np.array([0]))

    (one, told), (other, _) = content("xi.npy"), content("a/same.npy")
    assert one == other
    assert "xi.npy" not in one[0]
    assert "xi.npy" in told[0]  # a worker has to find it


@pytest.mark.parametrize(
    ("vector", "part"),
    [
        ([1, 2], "3 or more real numbers"),
        ([[1, 2], [3]], "3 or more real numbers"),
        (np.eye(3), "shape (3, 3)"),
        (["a", "b", "c"], "3 or more real numbers"),
        ([True, False, True], "3 or more real numbers"),
        ([0, 0, 0], "one is not zero"),
        ([1, np.nan, 2], "one is not zero"),
        ("none.npy", "there is no"),
        ("../xi.npy", "without '..'"),
        ("text.npy", "cannot be read"),
        ({"n": 3, "sha256": "0" * 64}, "not known to this process"),
        ({"n": 3}, "is not allowed"),
        (3, "3 or more real numbers"),
    ],
)
@pytest.mark.parametrize("field", ["prior", "start"])
def test_what_is_no_vector_is_refused_with_one_sentence(data, vector, part, field):
    (data / "text.npy").write_text("no array")
    with pytest.raises(HdicaError) as refused:
        SparsePCA(**{**PCA, field: {"vector": vector}})
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_dimensions_are_refused_before_any_work():
    system = SparsePCA(prior={"vector": feature()}, **PCA)
    said = "n = 500 is not allowed (prior is a vector of 400 entries, so n = 400)"
    for how in ({"n": 500}, {"n": [400, 500]}):
        with pytest.raises(HdicaError) as refused:
            hdica.simulate(system, times=[0, 1e9], seeds=1, method="vector", **how)
        assert str(refused.value) == said
    study = {
        "study": "t",
        "system": "SparsePCA",
        "parameters": {**PCA, "prior": {"vector": [1] * 9}},
    }
    with pytest.raises(HdicaError, match=r"methods.vector.n is not allowed: n = 8"):
        hdica.Study(**study, times=[0, 1], methods={"vector": {"n": 8, "seeds": 1}})


def test_a_start_must_fit_the_feature():
    x = np.ones(N)
    with pytest.raises(HdicaError, match="drawn anew for each seed"):
        SparsePCA(**{**PCA, "prior": "gaussian", "start": {"vector": x}})
    with pytest.raises(HdicaError, match="400 entries is not allowed with prior = one of 3"):
        SparsePCA(**{**PCA, "prior": {"vector": [1, 2, 3]}, "start": {"vector": x}})
    with pytest.raises(HdicaError, match="follow no normal law"):
        hdica.limit(SparsePCA(**{**PCA, "prior": "dense", "start": {"vector": x}}), times=[0, 1])


def test_the_limit_of_a_vector_is_where_its_simulations_go():
    xi = feature()
    x = 0.5 * xi + np.random.default_rng(3).standard_normal(N)
    q0 = xi @ x / np.sqrt((xi @ xi) * (x @ x))
    system = OnlineICA(tau=0.2, prior={"vector": xi}, start={"vector": x})
    times = [0, 1.0, 3.0]
    limit = hdica.limit(system, times=times)
    seen = hdica.simulate(system, times=times, n=N, seeds=300)
    assert float(limit.Q[0]) == pytest.approx(q0, abs=1e-14)
    assert seen.Q.isel(time=0).values == pytest.approx(q0, abs=1e-14)
    error = seen.Q.std("seed").values[1:] / np.sqrt(300)
    z = (seen.Q.mean("seed").values[1:] - limit.Q.values[1:]) / error
    assert np.all(np.abs(z) < 4)
    off = hdica.limit(system.model_copy(update={"start": {"overlap": q0 + 0.05}}), times=times)
    wrong = (seen.Q.mean("seed").values[1:] - off.Q.values[1:]) / error
    assert np.all(np.abs(wrong) > 4)  # negative control


@pytest.mark.deep
def test_the_empirical_law_of_a_feature_is_that_of_its_density(data):
    xi = feature(n=2000)
    system = SparsePCA(**{**PCA, "prior": {"vector": xi}})
    times = [0, 2.0]
    limit = hdica.limit(system, times=times, method="pde")
    seen = hdica.simulate(system, times=times, n=2000, seeds=24, method="vector")
    for name in ("Q", "R"):
        error = float(seen[name][:, 1].std("seed")) / np.sqrt(24)
        gap = float(seen[name][:, 1].mean("seed")) - limit[name].values[1]
        assert abs(gap) < 4 * error + 3 / 2000  # of order 1/n
    dense = hdica.limit(SparsePCA(**PCA), times=times, method="pde")  # negative control
    error = float(seen.R[:, 1].std("seed")) / np.sqrt(24)
    assert abs(float(seen.R[:, 1].mean("seed")) - dense.R.values[1]) > 6 * error + 3 / 2000
