from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.study.study import Study, load_study, point_count, study_from
from tests.sweep import toy


def changed(**changes: Any) -> dict[str, Any]:
    return toy.study(**changes)


REFUSED: list[tuple[dict[str, Any], str]] = [
    (changed(gird={}), "study 'toy': gird is not a known key (did you mean 'grid'?)"),
    (
        changed(system="Tyo"),
        "study 'toy': system = 'Tyo' is not known (did you mean 'Toy'? allowed: OnlineICA, "
        "SparsePCA, SeveralICA, "
        "HebbianICA, TensorialICA, SubspaceICA, PatchICA, FilterSeries, OnlineRule, "
        "SeveralRule, Toy)",
    ),
    (changed(study="Toy 1"), "study 'Toy 1': study = 'Toy 1' is not allowed"),
    (changed(grid={"tua": [1]}), "grid.tua is not a known parameter (did you mean 'tau'?"),
    (changed(grid={"tau": []}), "study 'toy': grid.tau is an empty list"),
    (changed(grid={"tau": [0.1, 0.10]}), "grid.tau: value 0.1 appears twice"),
    (changed(grid={"tau": [0.1, 0.1 + 1e-15]}), "grid.tau: value 0.1 appears twice"),
    (changed(grid={"tau": [-0.1, 0.1]}), "grid.tau: tau = -0.1 is not allowed"),
    (changed(grid={"tau": [0.1, 0.2, 0.0]}), "grid.tau: tau = 0.0 is not allowed"),
    (
        changed(parameters={}, grid={"tau": [0.1], "source": ["uniform", "gauss"]}),
        "grid.source: source = 'gauss'",
    ),
    (changed(grid={}), "parameters: tau is missing"),
    (changed(grid={}, parameters={"tau": -1}), "parameters: tau = -1 is not allowed"),
    (changed(parameters={"tau": 1}), "grid.tau is already set by parameters.tau"),
    (changed(parameters={"start": {"overlap": 1}}), "grid.Q0 is already set by parameters.start"),
    (changed(parameters={"shape": 1}), "parameters.shape is not a known parameter"),
    (changed(parameters=[1]), "parameters must be a mapping"),
    (changed(times=[]), "times is an empty list"),
    (changed(times=[-1, 2]), "times = -1 is not allowed (a time is >= 0)"),
    (changed(times=[0, 2, 1]), "times: 1 comes after 2 (times must increase)"),
    (changed(times={"stop": 1, "num": 10**9}), "times has 1000000000 values"),
    (changed(methods={}), "methods must name at least one method"),
    (changed(methods={"wlak": {}}), "methods.wlak is not a method of Toy (did you mean 'walk'?"),
    (changed(methods={"walk": {"seeds": 3}}), "methods.walk.n is missing"),
    (changed(methods={"walk": {"n": [10]}}), "methods.walk.seeds is missing"),
    (changed(methods={"line": {"n": [10]}}), "methods.line.n is not allowed"),
    (changed(methods={"walk": {"n": [2], "seeds": 1}}), "methods.walk.n = 2 is not allowed"),
    (changed(methods={"walk": {"n": [9.5], "seeds": 1}}), "methods.walk.n = 9.5 is not allowed"),
    (changed(methods={"walk": {"n": [9, 9], "seeds": 1}}), "methods.walk.n: value 9 appears twice"),
    (changed(methods={"walk": {"n": [10**17], "seeds": 1}}), "is not allowed (a whole number <="),
    (changed(methods={"walk": {"n": [9], "seeds": 0}}), "methods.walk.seeds = 0 is not allowed"),
    (changed(methods={"walk": {"n": [9], "seeds": [-1]}}), "methods.walk.seeds = -1 is not"),
    (changed(methods={"walk": {"n": [9], "sedes": 1}}), "methods.walk.sedes is not a known key"),
    (
        changed(methods={"walk": {"n": [2**52], "seeds": 1}}, times=[0, 5]),
        "methods.walk.n = 4503599627370496 is not allowed with times up to 5",
    ),
    (
        changed(parameters={"gain": 99}),
        "methods.line does not apply: the gain 99 is too large for line",
    ),
    (
        changed(grid={"tau": [0.1], "gain": [1, 2, 99]}),
        "methods.line does not apply: the gain 99 is too large for line",
    ),
    (changed(grid={"tau": {"start": 1, "stop": 2, "num": 10**9}}), "max_points = 10000000"),
    (changed(methods={"walk": {"n": [9], "seeds": 10**9}}), "max_points = 10000000"),
    (changed(max_points=78), "the grid has 79 points (max_points = 78 are allowed)"),
    (
        changed(analysis={"convergence": {"simulation": "walk", "limit": "ode"}}),
        "analysis.convergence.limit = 'ode' is not a method of this study",
    ),
    (
        changed(analysis={"phase": {"simulation": "walk", "x": "tau", "y": "rho"}}),
        "analysis.phase.y = 'rho' is not swept",
    ),
    (
        changed(analysis={"convergence": {"simulation": "line", "limit": "line"}}),
        "analysis.convergence.simulation = 'line' is not allowed (a stochastic method is needed)",
    ),
    (
        changed(analysis={"convergence": {"simulation": "walk", "limit": "walk"}}),
        "analysis.convergence.limit = 'walk' is not allowed (one without seeds is needed)",
    ),
    (
        changed(
            analysis={"convergence": {"simulation": "walk", "limit": "line", "variable": "twice"}}
        ),
        "analysis.convergence.variable = 'twice' is no output of walk",
    ),
    (
        changed(grid={"tau": [1], "Q": [1]}, parameters={"formula": "Q*x"}),
        "grid.Q is not allowed (datasets use the name 'Q')",
    ),
    (changed(analysis={"fase": {}}), "analysis.fase is not a known key (did you mean 'phase'?)"),
    (changed(grid={"tau": [0.1], "time": [1]}), "grid.time is not a known parameter"),
]


@pytest.mark.parametrize(("content", "message"), REFUSED, ids=[m[:40] for _, m in REFUSED])
def test_a_wrong_study_is_refused_in_one_sentence(content: dict[str, Any], message: str) -> None:
    with pytest.raises(HdicaError) as caught:
        study_from(content)
    assert message in str(caught.value)
    assert str(caught.value).startswith("study ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"grid": {"tau": {"start": 0.1, "stop": 1, "num": 10**9}}},
        {"grid": {k: {"start": 0.1, "stop": 1, "num": 1000} for k in ("tau", "gain", "Q0")}},
        {"methods": {"walk": {"n": [10], "seeds": 10**9}}},
        {"methods": {"steady": {}}, "grid": {"tau": {"start": 1, "stop": 2, "num": 10**9}}},
    ],
)
def test_a_grid_of_a_thousand_million_points_is_refused_at_once(changes: dict[str, Any]) -> None:
    content = toy.study(**changes)
    tracemalloc.start()
    try:
        with pytest.raises(HdicaError, match="max_points"):
            study_from(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # nothing was expanded: a thousand million points would take gigabytes


def test_points_are_counted_without_the_parameters_that_a_method_ignores() -> None:
    assert point_count(study_from(toy.study())) == 6 * 12 + 6 + 1


def test_hash_sees_numbers_and_not_words() -> None:
    base = study_from(toy.study())
    same = [
        toy.study(title="Another", description="text"),
        toy.study(max_points=1000),
        toy.study(grid={"Q0": [0.5, 0.25], "tau": [0.3, 0.2, 0.1]}),
        toy.study(
            methods={"steady": {}, "line": {}, "walk": {"n": [30, 10], "seeds": [*range(6)]}}
        ),
    ]
    for content in same:
        assert study_from(content).content_hash() == base.content_hash()
        assert study_from(content).full_hash() != base.full_hash()
    other = [
        toy.study(times=[0, 0.5]),
        toy.study(parameters={}),
        toy.study(grid={"tau": [0.1]}),
        toy.study(methods={"line": {}}),
    ]
    for content in other:
        assert study_from(content).content_hash() != base.content_hash()


def test_hash_sees_the_kernel() -> None:
    before = study_from(toy.study()).content_hash()
    toy.register(kernel="8")
    assert study_from(toy.study()).content_hash() != before


def test_a_study_survives_json() -> None:
    study = study_from(toy.study(grid={"tau": {"start": 0.1, "stop": 1, "num": 4}}))
    again = Study.model_validate_json(study.model_dump_json())
    assert again == study
    assert again.full_hash() == study.full_hash()


def test_keys_address_fields_aliases_paths_and_constants() -> None:
    study = study_from(
        toy.study(
            parameters={"formula": "beta*x", "constants": {"alpha": 2}},
            grid={"tau": [0.1], "Q0": [0.2], "prior.sparse": [0.5], "beta": [1, 2]},
        )
    )
    assert [(a.dim, a.path) for a in study.space.axes] == [
        ("tau", ("tau",)),
        ("Q0", ("start", "overlap")),
        ("prior_sparse", ("prior", "sparse")),
        ("beta", ("constants", "beta")),
    ]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


GOOD = """
study: toy
title: A toy
system: Toy
grid: {tau: [1e-3, .5, 2E-1]}
times: {stop: 4, num: 5}
methods: {line: }
"""


def test_yaml_numbers_are_numbers(tmp_path: Path) -> None:
    study = load_study(write(tmp_path / "toy.yaml", GOOD))
    assert study.space.axes[0].values == (0.001, 0.2, 0.5)
    assert study.times == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("toy.yaml", GOOD + "title: again\n", 'key "title" is given twice (line 8)'),
        ("toy.yaml", GOOD + "grid: {tau: [1], tau: [2]}", "is given twice"),
        ("toy.yaml", "study: [1, 2", "is not valid YAML at line 1, column 13"),
        ("toy.yaml", "- 1\n- 2\n", "is not a study (a mapping"),
        ("toy.yaml", "", "is not a study (a mapping"),
        (
            "toy.yaml",
            "study: !!python/object:os.system x",
            "is not valid YAML: a python/object:os.system is",
        ),
        ("other.yaml", GOOD, "study = 'toy' is not allowed (it must equal the file's name"),
        ("toy.yaml", GOOD.replace("study: toy", "study: no"), "study = 'no' is not allowed"),
        (
            "toy.yaml",
            GOOD.replace("1e-3", "2020-01-01"),
            "a timestamp is not allowed (line 5; texts,",
        ),
    ],
)
def test_a_file_that_is_no_study_is_refused(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(HdicaError) as caught:
        load_study(write(tmp_path / name, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HdicaError, match=r"cannot read .*absent.yaml"):
        load_study(tmp_path / "absent.yaml")
    with pytest.raises(HdicaError, match="cannot read"):
        load_study(tmp_path)


@pytest.mark.parametrize("key", ["x", "tanh", "pi", "laplace"])
def test_words_of_a_formula_that_are_no_constants_cannot_be_swept(key: str) -> None:
    parameters = {"formula": "beta*tanh(pi*x)", "source": "laplace", "constants": {"beta": 2}}
    with pytest.raises(HdicaError, match=f"grid.{key} is not a known parameter"):
        study_from(toy.study(parameters=parameters, grid={"tau": [0.1], key: [1, 2]}))
