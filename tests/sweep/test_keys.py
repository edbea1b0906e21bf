from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdica.sweep import segment as module
from hdica.sweep.keys import find_rows, point_key, segment_keys
from hdica.sweep.segment import segments_of
from hdica.sweep.study import Study, study_from
from tests.sweep import toy


def test_content_is_put_together_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at_once in (10**6, 1, 4):
        monkeypatch.setattr(module, "AT_ONCE", at_once)
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
            for name in segment.method.ignores:
                content.pop(name, None)
            for seed in segment.seeds or (None,):
                key = point_key(
                    content,
                    system="Toy",
                    method=segment.method.name,
                    kernel=segment.method.kernel,
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


@settings(max_examples=40, deadline=None)
@given(grids)
def test_fast_keys_are_the_keys_of_the_systems(grid: dict[str, list[float]]) -> None:
    parameters = {"formula": "beta*x"} if "beta" in grid else {}
    toy.register()
    study = study_from(toy.study(grid=grid, parameters=parameters))
    expected = scalar_keys(study)
    for segment in segments_of(study):
        assert segment.keys().tolist() == [k.rstrip(b"\0") for k in expected[segment.name]]


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


@given(
    st.lists(st.binary(min_size=32, max_size=32), max_size=30, unique=True),
    st.lists(st.binary(min_size=32, max_size=32), max_size=10),
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

    contents = [f'{{"tau":{i}}}' for i in range(1000)]
    tracemalloc.start()
    keys = segment_keys(
        contents, range(100), system="Toy", method="m", kernel="1", times=[0.0, 1.0], n=10
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert keys.shape == (100_000,)
    assert peak < 32e6
