"""What a study keeps beyond order parameters: refusals, canonical form, keys."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.study.schema import json_digest, plain_save
from hdica.study.segment import segments_of
from hdica.study.study import Study, study_from
from hdica.systems import arguments as points
from tests.sweep import toy
from tests.sweep.keeping import SAVE, saved, without
from tests.sweep.plain_keys import point_key

REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ({**SAVE, "snapshot": [1]}, {}, "save.snapshot is not a known key (did you mean 'snapshots'?)"),
    ([1], {}, "it must be a mapping with the keys snapshots, x, thresholds, functionals"),
    ({**SAVE, "snapshots": [0.5, 1]}, {}, "save.snapshots: 1 is not one of times"),
    ({**SAVE, "snapshots": [2, 0.5]}, {}, "snapshots: 0.5 comes after 2 (times must increase)"),
    ({**SAVE, "snapshots": []}, {}, "save.snapshots is an empty list"),
    ({**SAVE, "x": [1]}, {}, "save.x = [1.0] is not allowed (at least two points are needed)"),
    ({**SAVE, "x": [1, 1 + 1e-15]}, {}, "save.x: 1 comes after 1 (points must increase)"),
    ({**SAVE, "x": {"stop": 1, "num": 10**9}}, {}, "save.x has 1000000000 values (at most 100000"),
    ({**SAVE, "thresholds": [-0.1]}, {}, "save.thresholds = -0.1 is not allowed (a threshold is"),
    (without("snapshots"), {}, "save: x needs snapshots (times at which it is kept)"),
    (without("snapshots", "x"), {}, "save: thresholds needs snapshots"),
    (without("x", "thresholds"), {}, "save: snapshots need x, thresholds or estimate"),
    ({"functionals": ["x"]}, {}, "save.functionals = ['x'] is not allowed (names with formulas"),
    ({"functionals": {"2x": "x"}}, {}, "save.functionals: name '2x' is not allowed"),
    ({"functionals": {"m": 2}}, {}, "save.functionals.m = 2 is not allowed (a formula in x and"),
    ({"functionals": {"m": "x + y"}}, {}, "save.functionals.m: formula 'x + y': 'y' is neither"),
    ({"functionals": {"m": "__import__('os')"}}, {}, "save.functionals.m: formula"),
    ({"functionals": {"Q": "x"}}, {}, "save.functionals.Q is not allowed (datasets use the name"),
    ({"functionals": {"twice": "x"}}, {}, "save.functionals.twice is not allowed"),
    ({"functionals": {"time": "x"}}, {}, "save.functionals.time is not allowed"),
    ({**SAVE, "functionals": {"cdf": "x"}}, {}, "save.functionals.cdf is not allowed"),
    ({**SAVE, "functionals": {"edge": "x"}}, {}, "save.functionals.edge is not allowed"),
    ({"functionals": {"tau": "x"}}, {}, "grid.tau is not allowed (datasets use the name 'tau')"),
    (
        SAVE,
        {"parameters": {"formula": "x*xi"}, "grid": {"tau": [1], "xi": [1]}},
        "grid.xi is not allowed (datasets use the name 'xi')",
    ),
    (
        without("thresholds", "functionals"),
        {"methods": {"line": {}}},
        "save.x: no method of this study can keep densities (methods that can: walk, profile)",
    ),
    (
        SAVE,
        {"methods": {"profile": {}}},
        "save.thresholds: no method of this study can keep support recovery (methods that can: wal",
    ),
    (
        {"functionals": {"m": "x"}},
        {"methods": {"line": {}}},
        "save.functionals: no method of this study can keep functionals",
    ),
    (
        SAVE,
        {"grid": {"tau": [1], "prior": ["dense", "other"]}},
        "grid.prior: dimension 'feature' has 1 entries at dense and 2 at other (what is kept",
    ),
    (
        {"snapshots": [0, 2], "x": {"start": -2, "stop": 2, "num": 100_000}},
        {"times": [0, 2], "parameters": {"prior": "signs"}},
        "save keeps 6 MB a point of walk (at most 5 MB are allowed: fewer times, snapshots, x",
    ),
]


@pytest.mark.parametrize(("save", "changes", "message"), REFUSED, ids=[m[:44] for *_, m in REFUSED])
def test_a_wrong_save_is_refused_in_one_sentence(
    save: Any, changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points, "MAX_BYTES", 5_000_000)
    with pytest.raises(HdicaError) as caught:
        saved(save, **changes)
    assert message in str(caught.value)
    assert str(caught.value).startswith("study 'toy'")
    assert "\n" not in str(caught.value)


def test_what_is_kept_is_canonical_and_survives_json() -> None:
    study = saved({**SAVE, "x": {"start": 0.1, "stop": 0.9, "num": 9}})
    assert study.save_spec() == Save(
        (0.5, 2.0),
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        (0.0, 0.1, 0.3),
        {"mse": "(x - xi)**2"},
    )
    again = Study.model_validate_json(study.model_dump_json())
    assert again == study
    assert again.full_hash() == study.full_hash()
    assert json.loads(json.dumps(plain_save(study.save_spec())))["x"] == [*study.save_spec().x]


def test_constants_of_functionals_are_those_of_the_system() -> None:
    functionals = {"functionals": {"m": "beta*x"}}
    with pytest.raises(HdicaError, match="'beta' is neither"):
        saved(functionals)
    assert saved(functionals, parameters={"constants": {"beta": 2}}).save is not None


KNOWN = {
    "walk-n10-daec420b": "890de8cca0cd1a41104c12c23b01480e",
    "walk-n30-daec420b": "e04aac7ad9ead6055dc64898e04bae23",
    "line-4e43d857": "b348da2b69aacc0cbd363963d0c2000b",
    "steady-01560582": "7d4e4c63a617d150d83312fd3d2adbb2",
}


@pytest.mark.parametrize("save", [None, {}, {"functionals": {}}])
def test_a_study_that_keeps_nothing_more_keeps_its_keys_and_names(save: Any) -> None:
    study = study_from(toy.study(save=save))
    known = "df8897d961a09f72e3fbc325ac2ff288cb1dd2b4cea4a41830e5bef4eaaab5b5"
    assert study.content_hash() == known
    found = {s.name: hashlib.sha256(s.keys().tobytes()).hexdigest() for s in segments_of(study)}
    assert {name: digest[:32] for name, digest in found.items()} == KNOWN


def identities(study: Study) -> dict[str, tuple[str, bytes]]:
    return {f"{s.method.name}{s.n or ''}": (s.name, s.keys().tobytes()) for s in segments_of(study)}


@pytest.mark.parametrize(
    ("save", "changed"),
    [
        (without("functionals"), {"walk10", "walk30"}),
        ({**SAVE, "thresholds": [0, 0.1, 0.4]}, {"walk10", "walk30"}),
        ({**SAVE, "functionals": {"mse": "(x + xi)**2"}}, {"walk10", "walk30"}),
        ({**SAVE, "x": [-2, -1, 0, 1, 2.5]}, {"walk10", "walk30", "profile"}),
        ({**SAVE, "snapshots": [0, 2]}, {"walk10", "walk30", "profile"}),
        ({**SAVE, "x": [-2, -1, 0, 1, 2]}, set()),
        (None, {"walk10", "walk30", "profile"}),
    ],
)
def test_only_what_a_method_keeps_is_in_its_keys_and_names(save: Any, changed: set[str]) -> None:
    base, other = identities(saved()), identities(saved(save))
    for part in (0, 1):
        assert {k for k in base if base[k][part] != other[k][part]} == changed
    assert (saved().content_hash() != saved(save).content_hash()) == bool(changed)


def test_fast_keys_are_the_keys_of_single_points() -> None:
    segment = segments_of(saved())[0]
    content = json.loads(next(segment.cells.contents()))
    key = point_key(
        content, system="Toy", method="walk", kernel="7", times=(0, 0.5, 2), n=10, seed=0,
        save=json_digest(plain_save(segment.save)),
    )  # fmt: skip
    assert segment.keys()[0] == key.rstrip(b"\0")
