"""A study whose limits learn nothing says so, with the reason; one that learns says nothing."""

import pytest

from hdica.analysis.account.account import learning
from hdica.analysis.aggregate import aggregate, summary
from hdica.run.runner import run
from hdica.status import PENDING
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.study import study_from
from tests.analysis import bifurcation, toy

ONLINE = {
    "study": "one",
    "title": "One",
    "system": "OnlineICA",
    "parameters": {"source": "uniform", "nonlinearity": "x**3"},
    "grid": {"tau": [0.01, 0.02], "Q0": [0.0, 0.8]},
    "times": [0, 1000],
    "methods": {"ode": {}, "critical": {}, "fixed_points": {}},
}
HEBBIAN = {
    "study": "two",
    "title": "Two",
    "system": "HebbianICA",
    "parameters": {"sources": ["uniform"], "sigma": [-1]},
    "grid": {"mu": [0.01, 0.02]},
    "times": [0, 4],
    "methods": {"ode": {}},
}


def _notes(tree):
    return summary(aggregate(tree)).notes["Where nothing is learned"]


@pytest.fixture
def rows(tmp_path):
    def said(content):
        study, out = study_from(content), tmp_path / "study.zarr"
        assert run(study, out, progress=False).complete
        publish(study, out)
        tree = open_results(out)
        data = learning(tree)
        if data is None:
            return {}, []
        names = ("method", "what", "count", "points", "note")
        found = zip(*(data[k].values.tolist() for k in names), strict=True)
        return {m: rest for m, *rest in found}, _notes(tree)

    return said


def test_starts_without_an_overlap_are_counted(rows):
    found, sentences = rows(ONLINE)
    assert list(found) == ["ode"]
    what, count, points, note = found["ode"]
    assert (what, count, points) == ("still", 2, 4)
    assert "the limit stays at Q = 0 for ever" in note
    (said,) = [s for s in sentences if "nothing is learned" in s]
    lead = "By ODE nothing is learned at 2 of 4 points: the limit stays at its start"
    assert said.startswith(lead)
    assert "start={&#39;overlap&#39;: 0.5}" in said


def test_the_condition_of_the_theorem_is_on_the_page_of_sparse_pca(rows):
    found, sentences = rows({
        "study": "three", "title": "Three", "system": "SparsePCA",
        "parameters": {"tau": 0.5, "omega": 1.5}, "grid": {"Q0": [0.0, 0.5]},
        "times": [0, 4], "methods": {"ode": {}},
    })  # fmt: skip
    assert found["ode"][:3] == ["still", 1, 2]
    assert any("Theorem 1 of Wang and Lu 2016 asks for Q_0 other than 0" in s for s in sentences)


@pytest.mark.deep
def test_a_range_is_read_back_from_the_store(rows):
    ranged = {**ONLINE, "grid": {"tau": {"start": 0.01, "stop": 0.02, "num": 2}, "Q0": [0.0, 0.8]}}
    assert rows(ranged) == rows(ONLINE)


@pytest.mark.deep
def test_the_wrong_sign_is_said_of_every_method(rows):
    wrong = {**ONLINE, "parameters": {"source": "laplace"}}
    wrong |= {"grid": {"tau": [0.05, 0.1], "Q0": [0.7, 0.8]}, "times": [0, 4000]}
    found, sentences = rows(wrong)
    assert {m: v[0] for m, v in found.items()} == {
        "ode": "lost",
        "critical": "none",
        "fixed_points": "none",
    }
    for _, count, points, note in found.values():
        assert count == points
        assert "no step size learns the source laplace with this sign of f" in note
    assert sum("nothing is learned at any point" in s for s in sentences) == 3


@pytest.mark.deep
def test_what_learns_somewhere_is_not_said_to_learn_nothing(rows):
    found, sentences = rows({**ONLINE, "grid": {"tau": [0.02, 0.5], "Q0": [0.3, 0.8]}})
    assert found == {}
    assert sentences == []


def test_matrices_of_overlaps_too(rows):
    found, _ = rows(HEBBIAN)
    assert found["ode"][:3] == ["still", 2, 2]
    assert "the limit stays at R = 0" in found["ode"][3]


def test_stores_without_a_system_are_read_by_their_numbers():
    for store in (toy.store(), bifurcation.store()):
        assert learning(store) is None
    lost = toy.store()
    lost["ode"]["Q"].values[...] *= 1e-3
    found = learning(lost)
    assert found["method"].values.tolist() == ["ode"]
    assert found["what"].values.tolist() == ["lost"]
    assert found["note"].values.tolist() == [""]
    assert "nothing is learned at any point: the limit ends" in str(_notes(lost))


def test_pending_points_are_none_at_which_nothing_is_learned() -> None:
    tree = toy.tree({"fixed_points": bifurcation.fixed_points()}, {})
    tree["fixed_points"]["stable"].values[...] = 0.0
    assert "learning" in aggregate(tree)
    tree["fixed_points"]["status"].values[...] = PENDING
    assert "learning" not in aggregate(tree)
