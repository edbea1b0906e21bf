"""What every system shares: NumPy's numbers, copies, pickles."""

import pickle

import numpy as np
import pytest

import hdica
from hdica import HebbianICA, OnlineICA, SparsePCA
from hdica.errors import HdicaError
from hdica.finite.random.streams import digest
from hdica.ingredients.plain import plain
from hdica.ingredients.priors import make_prior
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.ingredients.starts import make_start
from hdica.study.study import Study

VALUES, SHARES = [0.0, 1.0, 3.0], [0.2, 0.3, 0.5]
LAW = {"discrete": {"values": VALUES, "weights": SHARES}}
LAW_NP = {"discrete": {"values": np.array(VALUES), "weights": np.array(SHARES)}}
ATOMS, ATOMS_NP = ({"atoms": f([0.0, 1.0]), "weights": f([0.75, 0.25])} for f in (list, np.array))
PAIRS = {
    "online": (
        OnlineICA(tau=0.05, source=LAW, prior=ATOMS),
        lambda: OnlineICA(tau=np.float64(0.05), source=LAW_NP, prior=ATOMS_NP),
    ),
    "pca": (
        SparsePCA(tau=0.5, omega=2, prior=ATOMS, start={"overlap": 0.25}),
        lambda: SparsePCA(
            tau=np.array(0.5),
            omega=np.int64(2),
            prior=ATOMS_NP,
            start={"overlap": np.float32(0.25)},
        ),
    ),
    "hebbian": (
        HebbianICA(mu=0.25, sources=[LAW, {"student": 7}], projections=2, sigma=[1, -1]),
        lambda: HebbianICA(
            mu=np.float32(0.25),
            sources=[LAW_NP, {"student": np.int64(7)}],
            projections=np.int64(2),
            sigma=np.array([1, -1]),
        ),
    ),
    "schedule": (
        OnlineICA(tau={"steps": {"times": [1.0], "values": [0.1, 0.2]}}, constants={"a": 2.0}),
        lambda: OnlineICA(
            tau={"steps": {"times": np.array([1.0]), "values": np.array([0.1, 0.2])}},
            constants={"a": np.int64(2)},
        ),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_arrays_are_lists(name):
    plain_one, build = PAIRS[name]
    array_one = build()
    assert array_one == plain_one
    assert array_one.model_dump_json() == plain_one.model_dump_json()
    assert type(array_one).model_validate_json(array_one.model_dump_json()) == plain_one
    keys = [digest(one.model_dump(mode="json")) for one in (plain_one, array_one)]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("name", ["online", "pca", "hebbian"])
def test_arrays_simulate_as_lists_do(name):
    plain_one, build = PAIRS[name]
    first, second = (hdica.simulate(s, n=40, times=[0, 1]) for s in (plain_one, build()))
    assert first.identical(second)
    ends = [hdica.limit(s, times=[0, 1])["R"].values for s in (plain_one, build())]
    assert np.array_equal(*ends)


def test_an_array_that_changes_later_changes_no_system():
    values = np.array(VALUES)
    system = OnlineICA(tau=0.05, source={"discrete": {"values": values}})
    values[0] = 99.0
    assert system.source == {"discrete": {"values": VALUES}}


def test_ingredients_take_arrays_by_themselves():
    assert np.array_equal(make_source(LAW_NP).nodes.points, make_source(LAW).nodes.points)
    assert make_source({"student": np.int64(5)}).label == "student(5)"
    assert make_prior({"sparse": np.float32(0.25)}).label == "sparse(0.25)"
    assert make_start({"overlap": np.float64(0.5)}).label == "Q0 = 0.5"
    assert make_schedule(np.int64(2)).constant == 2.0


def test_a_study_with_arrays_has_the_keys_of_one_with_lists():
    def study(law, prior):
        return Study(
            study="one",
            title="One",
            system="OnlineICA",
            parameters={"source": law, "prior": prior},
            grid={"tau": [0.1, 0.2]},
            times=[0, 1],
            methods={"ode": {}},
        )

    first, second = study(LAW, ATOMS), study(LAW_NP, ATOMS_NP)
    assert first.content_hash() == second.content_hash()
    assert first == second


def test_plain_content_keeps_what_is_no_number():
    deep: list = [np.float64(1.0)]
    for _ in range(2000):
        deep = [deep]
    found = plain({"a": (np.True_, np.str_("b"), None, deep), ("k", 1): np.int8(3)})
    assert found["a"][:3] == [True, "b", None]
    assert found[("k", 1)] == 3
    assert {type(v) for v in found["a"][:3]} == {bool, str, type(None)}


SYSTEMS = [
    OnlineICA(tau=0.05),
    SparsePCA(tau=0.05, omega=2.0),
    HebbianICA(mu=0.05, sigma=[-1]),
]
STEP = {"OnlineICA": "tau", "SparsePCA": "tau", "HebbianICA": "mu"}


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: type(s).__name__)
def test_copies_are_checked_as_new_systems_are(system):
    step = STEP[type(system).__name__]
    with pytest.raises(HdicaError, match=f"{step} = -1.0 is not allowed"):
        system.model_copy(update={step: -1})
    with pytest.raises(HdicaError, match="foo is not a known key"):
        system.model_copy(update={"foo": 2, step: 0.1})
    with pytest.raises(HdicaError, match=r"formula 'a\*'"):
        system.model_copy(update={"constants": {"a": 1.0}, step: "a*"})
    changed = system.model_copy(update={step: 0.1})
    assert getattr(changed, step) == 0.1
    assert changed == type(system)(**{**system.model_dump(), step: 0.1})
    assert changed.model_fields_set == system.model_fields_set


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: type(s).__name__)
def test_copies_and_pickles_are_equal(system):
    assert system.model_copy() == system
    assert pickle.loads(pickle.dumps(system)) == system  # noqa: S301
    deep = system.model_copy(update={"constants": {"a": 1.0}}, deep=True)
    assert deep.constants == {"a": 1.0}
    with pytest.raises(HdicaError, match=f"^{type(system).__name__}: foo is not a known key"):
        type(system)(foo=1)
