"""A study of Hebbian ICA: matrices of overlaps, escape times, and methods with n but no seeds."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.query import query
from hdica.store.results import open_results
from hdica.study.study import study_from

PAIR = {
    "study": "pair",
    "title": "Two projections",
    "system": "HebbianICA",
    "parameters": {"sources": ["uniform", "laplace"], "projections": 2, "sigma": [-1, 1]},
    "grid": {"mu": [0.01, 0.02], "R0": [[[0.7, 0.2], [-0.1, 0.6]]]},
    "times": [0, 2, 4],
    "methods": {"chain": {"n": [20, 40], "seeds": 3}, "ode": {}},
}
TRAP = {
    "study": "trap",
    "title": "Escape",
    "system": "HebbianICA",
    "parameters": {"sources": ["uniform"], "sigma": [-1]},
    "grid": {"nu": [0.5, 2], "threshold": [0.6, 0.8]},
    "times": [0, 1000],
    "methods": {
        "chain": {"n": [20], "seeds": 9},
        "escape_times": {"n": [20, 30], "seeds": 9},
        "escape": {},
        "escape_diffusion": {"n": [20, 30]},
    },
}


def published(content, out, **more):
    study = study_from(content)
    assert run(study, out, progress=False, **more).complete
    publish(study, out)
    return open_results(out)


def test_overlaps_are_matrices_over_projection_and_source(tmp_path):
    content = {**PAIR, "grid": {"mu": [0.01, 0.02]}}
    content["parameters"] = {**PAIR["parameters"], "start": {"overlap": [[0.7, 0.2], [-0.1, 0.6]]}}
    tree = published(content, tmp_path / "pair.zarr")
    data = tree["chain"].to_dataset()
    assert data["R"].dims == ("mu", "n", "seed", "time", "projection", "source")
    assert data["Q"].dims == ("mu", "n", "seed", "time", "projection", "other")
    assert data["projection"].values.tolist() == [0, 1]
    system = hdica.HebbianICA(**content["parameters"], mu=0.02)
    own = hdica.simulate(system, n=40, times=[0, 2, 4], seeds=[1])
    kept = data.sel(mu=0.02, n=40, seed=1)
    assert kept["R"].values.tobytes() == own["R"].values[0].tobytes()
    assert kept["Q"].values.tobytes() == own["Q"].values[0].tobytes()
    found = query(tree, {"mu": "0.02", "projection": "1", "source": "0"}, "ode", ["R"])
    limit = hdica.limit(system, times=[0, 2, 4])["R"].values[:, 1, 0]
    assert found["R"].values.tolist() == limit.tolist()


@pytest.fixture(scope="module")
def trap(tmp_path_factory):
    return published(TRAP, tmp_path_factory.mktemp("trap") / "trap.zarr")


@pytest.mark.deep
def test_a_method_may_have_dimensions_and_no_seeds(trap):
    data = trap["escape_diffusion"].to_dataset()
    assert data["mean"].dims == ("nu", "threshold", "n")
    assert data["survival"].dims == ("nu", "threshold", "n", "age")
    system = hdica.HebbianICA(**TRAP["parameters"], nu=2, threshold=0.6)
    assert float(data["mean"].sel(nu=2, threshold=0.6, n=30)) == float(
        hdica.escape_time(system, n=30, method="diffusion")["mean"]
    )
    assert "seed" not in data.dims
    assert trap["escape"]["mean"].dims == ("nu",)


def test_what_does_not_depend_on_the_threshold_is_computed_once(trap):
    assert trap["chain"]["R"].dims[:3] == ("nu", "n", "seed")
    times = trap["escape_times"].to_dataset()
    assert times["first"].dims == ("nu", "threshold", "n", "seed")
    low, high = (times["first"].sel(threshold=level) for level in (0.6, 0.8))
    # One path: it reaches the higher threshold later.
    assert bool((low <= high).all())
    assert bool((low < high).any())


@pytest.mark.deep
def test_results_do_not_depend_on_workers_or_order(trap, tmp_path):
    other = {**TRAP, "grid": dict(reversed(TRAP["grid"].items()))}
    again = published(other, tmp_path / "trap.zarr", workers=2)
    for name, node in trap.children.items():
        for variable, values in node.to_dataset().data_vars.items():
            if variable != "cpu_seconds":
                here = again[name][variable].transpose(*values.dims)
                assert here.values.tobytes() == values.values.tobytes(), (name, variable)


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        ({"escape_diffusion": {}}, "methods.escape_diffusion.n is missing \\(this method needs"),
        (
            {"escape_diffusion": {"n": 20, "seeds": 3}},
            "methods.escape_diffusion.seeds is not allowed \\(escape_diffusion has no seeds",
        ),
        ({"escape": {"n": 20}}, "methods.escape.n is not allowed \\(escape has no n and no seeds"),
        ({"ode": {}}, "methods.ode does not apply: the limit on the scale t = k/n needs mu"),
    ],
)
def test_refusals(methods, sentence):
    with pytest.raises(HdicaError, match=sentence):
        study_from({**TRAP, "methods": methods})


def test_grids_of_matrices_are_refused_in_one_sentence():
    with pytest.raises(HdicaError, match="grid.R0"):
        study_from(PAIR)
    numbers = {**TRAP, "grid": {"R0": [0.1, 0.4]}, "methods": {"chain": {"n": 20, "seeds": 1}}}
    numbers["parameters"] = {**TRAP["parameters"], "nu": 1}
    assert np.isclose(study_from(numbers).space.axes[0].values[1], 0.4)
