from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdica.study import segment as cells
from hdica.study.segment import find_rows, segments_of
from hdica.study.study import Study, study_from
from hdica.systems import space
from tests.sweep import toy
from tests.sweep.plain_keys import point_key


def test_content_is_put_together_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at_once in (10**6, 1, 4):
        monkeypatch.setattr(cells, "AT_ONCE", at_once)
        found.append([s.keys().tolist() for s in segments_of(study_from(toy.study()))])
    assert found[0] == found[1] == found[2]


def scalar_keys(study: Study) -> dict[str, list[bytes]]:
    """Key of every point, from systems built one by one: the slow, plain way."""
    found = {}
    for segment in segments_of(study):
        keys = []
        for cell in range(segment.cells.size):
            system = toy.Toy.model_validate(json.loads(segment.cells.systems(np.array([cell]))[0]))
            content = system.model_dump(mode="json", exclude_defaults=True)
            for name in segment.method.scope.ignores:
                content.pop(name, None)
            for seed in segment.seeds or (None,):
                key = point_key(
                    content,
                    system="Toy",
                    method=segment.method.name,
                    kernel=segment.method.about.kernel,
                    times=study.times,
                    n=segment.n,
                    seed=seed,
                )
                keys.append(key)
        found[segment.name] = keys
    return found


positive = st.floats(1e-3, 1e3)
grids = st.fixed_dictionaries(
    {"tau": st.lists(positive, min_size=1, max_size=3, unique_by=lambda v: f"{v:.12g}")},
    optional={
        "Q0": st.just([0.5, 0.1]),
        "start.shift": st.just([1.0, 2.0]),
        "rho": st.just([0.3]),
        "gain": st.just([1.0, 2]),
        "beta": st.just([-1, 1e-9]),
    },
)


@settings(max_examples=60, deadline=None)
@given(grids, st.sampled_from([1, 2, 64]))
def test_fast_keys_are_the_keys_of_the_systems(grid: dict[str, list[float]], tried: int) -> None:
    parameters = {"formula": "beta*x"} if "beta" in grid else {}
    toy.register()
    study = study_from(toy.study(grid=grid, parameters=parameters))
    expected = scalar_keys(study)
    with mock.patch.object(cells, "TRIED", tried):
        found = {segment.name: segment.keys().tolist() for segment in segments_of(study)}
    assert found == {name: [k.rstrip(b"\0") for k in keys] for name, keys in expected.items()}


ICA: dict[str, Any] = {"study": "many", "title": "many", "system": "OnlineICA", "times": [0, 1]}
PCA = {**ICA, "system": "SparsePCA"}
CHAIN = {"methods": {"chain": {"n": 10, "seeds": 1}}}
VECTOR = {"methods": {"vector": {"n": 10, "seeds": 1}}}
MANY: dict[str, dict[str, Any]] = {
    "two fields": {**ICA, **CHAIN, "grid": {"tau": {"start": 0.1, "stop": 1, "num": 10},
        "Q0": {"start": 0, "stop": 1, "num": 11}}},
    "two axes of a field": {**ICA, **VECTOR, "parameters": {"tau": 0.1}, "grid": {
        "start.normal.var": {"start": 0.5, "stop": 1.5, "num": 7},
        "start.normal.mean": {"start": -1, "stop": 1, "num": 5}}},
    "constants": {**ICA, **CHAIN, "parameters": {
        "tau": 0.1, "regularizer": "a*x + b*x + c*x", "constants": {"c": 2}},
        "grid": {"b": [0.1, 1e-7, 3e5], "a": [-2, 0, 1, 12345.678901]}},
    "a number as a formula": {**ICA, **VECTOR, "parameters": {"tau": 0.1},
        "grid": {"regularizer": [0, 0.1, 0.2, 0.3]}},
    "words": {**ICA, **CHAIN, "parameters": {"tau": 0.1},
        "grid": {"source": ["uniform", "laplace", "gaussian", "rademacher"]}},
    "defaults in the middle": {**PCA, **VECTOR, "parameters": {"tau": 0.1}, "grid": {
        "omega": [0, 0.5, 1, 2, 3], "Q0": [0.1, 0.5, 0.7, 0.9], "rho": [0.1, 0.2, 0.5, 1]}},
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_numbers_put_into_a_text_are_what_the_systems_say(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for tried in (10**6, 2):
        monkeypatch.setattr(cells, "TRIED", tried)
        (segment,) = segments_of(study_from(MANY[name]))
        found.append(segment.cells)
    assert found[0] == found[1]
    assert len(set(found[0].contents())) == found[0].size


def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often a system was built."""
    build, calls = space.build, []
    monkeypatch.setattr(space, "build", lambda *args: calls.append(1) or build(*args))
    return lambda: len(calls)


def test_systems_of_a_large_field_are_not_built_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    side = {"start": 0, "stop": 0.9, "num": 60}
    parameters = {"tau": 0.1, "regularizer": "a*x + b*x"}
    built = counted(monkeypatch)
    study = study_from({**ICA, **CHAIN, "parameters": parameters, "grid": {"a": side, "b": side}})
    (segment,) = segments_of(study)
    assert segment.cells.size == 3600
    assert built() <= cells.TRIED + 2 * 60


def test_what_a_system_rewrites_is_built_one_by_one_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = {"regularizer": np.linspace(0.1, 0.9, 300).tolist()}
    built = counted(monkeypatch)
    study = study_from({**ICA, **VECTOR, "parameters": {"tau": 0.1}, "grid": grid})
    (segment,) = segments_of(study)
    assert built() == 300
    assert '"regularizer":"0.1"' in next(segment.cells.contents())


def test_a_key_depends_on_content_and_not_on_place() -> None:
    small = study_from(toy.study(grid={"tau": [0.2], "Q0": [0.5]}))
    large = study_from(toy.study())
    for one, other in zip(segments_of(small), segments_of(large), strict=True):
        assert set(one.keys().tolist()) <= set(other.keys().tolist())
        assert len(set(other.keys().tolist())) == other.size


def test_ignored_parameters_are_absent_from_key_and_grid_but_not_from_the_system() -> None:
    steady = segments_of(study_from(toy.study()))[-1]
    assert steady.cells.shape == ()
    assert json.loads(steady.cells.systems(np.array([0]))[0])["tau"] == 0.1
    assert "tau" not in next(steady.cells.contents())


# Some share their first eight bytes, by which they are looked up.
KEYS = st.binary(min_size=32, max_size=32) | st.binary(min_size=1, max_size=1).map(
    lambda last: b"8 bytes " + last * 24
)


@given(
    st.lists(KEYS, max_size=30, unique=True),
    st.lists(KEYS, max_size=10),
    st.randoms(use_true_random=False),
)
def test_rows_are_found_as_in_a_dictionary(
    stored: list[bytes], others: list[bytes], random: object
) -> None:
    wanted = stored[::2] + others
    random.shuffle(wanted)  # type: ignore[attr-defined]
    table = {key: row for row, key in enumerate(stored) if key.strip(b"\0")}
    found = find_rows(np.array(stored, dtype="S32"), np.array(wanted, dtype="S32"))
    assert found.tolist() == [
        table.get(key, row if not key.strip(b"\0") else -1)
        for key, row in zip(wanted, found.tolist(), strict=True)
    ]


def test_a_hundred_thousand_keys_take_little_memory() -> None:
    import tracemalloc

    grid = {"tau": {"start": 0.001, "stop": 1, "num": 1000}}
    methods = {"walk": {"n": [10], "seeds": 100}}
    (segment,) = segments_of(study_from(toy.study(grid=grid, methods=methods)))
    tracemalloc.start()
    keys = segment.keys()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert keys.shape == (100_000,)
    assert peak < 32e6


def test_a_study_that_travels_leaves_what_was_built_of_it() -> None:
    study = study_from({**ICA, **VECTOR, "parameters": {}, "grid": {"tau": [0.1, 0.2]}})
    before = study.space.at()
    assert study.space.at() is before
    there = pickle.loads(pickle.dumps(study))  # noqa: S301 - our own
    assert there == study
    assert there.space == study.space
    assert there.space.at() == before
    assert list(there.space._built.values()) == [before]
    assert len(study.space._built) == 2
