"""Variables that a method gives on request: in Python, in studies, and in no key where none is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING, Save
from hdica.run.plan import plan
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.schema import plain_save
from hdica.study.segment import segments_of
from hdica.study.study import Study, study_from
from hdica.systems.arguments import MAX_BYTES
from tests.systems.wander import FADE, RECORD, WANDER, Wander, known

TIMES = [0.0, 3.0, 10.0]
SYSTEM = Wander(dimension=4, eta=0.2)


@pytest.fixture(autouse=True)
def registered() -> Any:
    with known():
        yield


def study(**changes: Any) -> Study:
    content = {
        "study": "wander", "system": "Wander", "parameters": {"dimension": 4},
        "grid": {"eta": [0.1, 0.3]}, "times": TIMES,
        "methods": {"wander": {"seeds": 2}, "sized": {"n": 9, "seeds": 2}, "fade": {}},
    }  # fmt: skip
    return study_from(content | changes)


def test_a_simulation_gives_what_is_asked_for_and_the_same_beside_it() -> None:
    plain = hdica.simulate(SYSTEM, times=TIMES, seeds=3)
    found = hdica.simulate(SYSTEM, times=TIMES, seeds=3, extra=["x"])
    assert "x" not in plain
    assert found["x"].dims == ("seed", "time", "component")
    assert found["component"].attrs["long_name"] == "component of x"
    assert found["x"].attrs["long_name"] == "all of x"
    assert found["m"].values.tobytes() == plain["m"].values.tobytes()
    assert found["x"].mean("component").values == pytest.approx(found["m"].values, rel=1e-14)
    grid = hdica.simulate(SYSTEM, times=TIMES, seeds=3, extra="x", over={"eta": [0.1, 0.2]})
    assert grid["x"].dims == ("eta", "seed", "time", "component")
    assert grid["x"].sel(eta=0.2).values.tobytes() == found["x"].values.tobytes()


def test_a_limit_gives_what_is_asked_for() -> None:
    found = hdica.limit(SYSTEM, times=TIMES, extra=["square"])
    assert found["square"].values == pytest.approx(found["m"].values ** 2)
    grid = hdica.limit(SYSTEM, times=TIMES, extra=["square"], over={"eta": [0.1, 0.2]})
    assert grid["square"].sel(eta=0.2).values.tobytes() == found["square"].values.tobytes()


def test_auto_takes_the_method_that_gives_it() -> None:
    quick = replace(WANDER, name="quick", outputs=replace(WANDER.outputs, extras=()))
    slow = replace(WANDER, rank=2)
    with known(replace(RECORD, methods=(quick, slow, FADE))):
        assert hdica.simulate(SYSTEM, times=TIMES).attrs["method"] == "quick"
        assert hdica.simulate(SYSTEM, times=TIMES, extra=["x"]).attrs["method"] == "wander"
        with pytest.raises(HdicaError, match=r"method 'quick' gives on request \(allowed: none\)"):
            hdica.simulate(SYSTEM, times=TIMES, method="quick", extra=["x"])


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["y"], "extra = 'y' is no variable that method 'wander' gives on request (allowed: x)"),
        (["m"], "extra = 'm' is no variable that method 'wander' gives on request (allowed: x)"),
        (["x", "x"], "extra = ['x', 'x'] is not allowed (names of variables, each once)"),
        ([1], "extra = [1] is not allowed (names of variables, each once)"),
        (3, "extra = 3 is not allowed (names of variables, each once)"),
    ],
)
def test_unknown_names_are_refused_in_one_sentence(extra: Any, sentence: str) -> None:
    with pytest.raises(HdicaError) as found:
        hdica.simulate(SYSTEM, times=TIMES, extra=extra)
    assert str(found.value) == sentence


def test_a_study_refuses_what_no_method_gives() -> None:
    sentence = (
        r"save.extra = 'y' is no variable that a method of this study gives on request "
        r"\(allowed: x, square\)"
    )
    with pytest.raises(HdicaError, match=sentence):
        study(save={"extra": ["y"]})
    with pytest.raises(HdicaError, match=r"extra = 7 is not allowed"):
        study(save={"extra": 7})
    with pytest.raises(HdicaError, match=r"grid.dimension: dimension 'component' has 3 entries"):
        study(save={"extra": "x"}, parameters={}, grid={"dimension": [3, 5], "eta": [0.1]})


def test_a_study_stores_it_where_a_method_gives_it(tmp_path: Path) -> None:
    out, asked = tmp_path / "extra.zarr", study(save={"extra": ["x", "square"]})
    assert plan(asked).keeps == "square (fade), x (wander)"
    assert run(asked, out, progress=False).complete
    publish(asked, out)
    with open_results(out) as tree:
        walk, fade = tree["wander"].to_dataset().load(), tree["fade"].to_dataset().load()
        assert walk["x"].dims == ("eta", "seed", "time", "component")
        assert "square" in fade
        assert "x" not in tree["sized"].to_dataset()
    alone = hdica.simulate(Wander(dimension=4, eta=0.3), times=TIMES, seeds=2, extra="x")
    assert walk["x"].sel(eta=0.3).values.tobytes() == alone["x"].values.tobytes()


def test_the_size_of_a_point_counts_it() -> None:
    times, own = np.array(TIMES), SYSTEM.dims()
    more = WANDER.bytes_of(times, Save(extra=("x",)), own) - WANDER.bytes_of(times, NOTHING, own)
    assert more == 8 * 3 * 4
    size = MAX_BYTES // (8 * 3)
    with pytest.raises(HdicaError, match="save keeps 67 MB a point of wander"):
        study(save={"extra": "x"}, parameters={"dimension": size}, methods={"wander": {"seeds": 1}})


def test_keys_know_of_it_only_where_it_is() -> None:
    plain, asked = (segments_of(study(save=save)) for save in (None, {"extra": ["x"]}))
    same = {
        one.method.name: (one.name, one.keys().tobytes()) == (other.name, other.keys().tobytes())
        for one, other in zip(plain, asked, strict=True)
    }
    assert same == {"wander": False, "sized": True, "fade": True}
    one, other = (study(save={"extra": names}) for names in (["x", "square"], ["square", "x"]))
    assert one.full_hash() == other.full_hash()
    empty = Save((1.0,), (0.0, 1.0))
    assert set(plain_save(empty)) == {"snapshots", "x"}
    assert plain_save(Save(extra=("x",))) == {"extra": ["x"]}


def test_a_study_that_asks_for_none_is_written_as_before() -> None:
    none = study(save={"extra": []})
    assert none.save is not None
    assert none.model_dump(mode="json")["save"] == {
        "snapshots": None, "x": None, "thresholds": None, "functionals": {}
    }  # fmt: skip
    assert none.content_hash() == study().content_hash()
    some = study(save={"extra": ["x"]})
    assert study_from(some.model_dump(mode="json")).full_hash() == some.full_hash()
