"""Studies of subspace ICA: without an analysis they are shown what suits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hdica.analysis.aggregate import aggregate
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.study import study_from

FASTICA = {"fastica_scores": {"seeds": 3}}
STEPS = {"algorithm": "sgd", "eta": 0.5, "batch": 20}


@pytest.mark.parametrize(
    ("parameters", "grid", "methods", "expected"),
    [
        ({}, {"samples_per_dimension": [4, 8]}, FASTICA, {"dependence"}),
        ({"samples_per_dimension": 8}, {"latent": ["rademacher", "uniform"]}, FASTICA, set()),
        (
            {"samples_per_dimension": 8, **STEPS},
            {"beta": [1, 2]},
            {"projected_sgd": {"seeds": 3}},
            {"ensemble", "dependence"},
        ),
    ],
)
def test_it_is_shown_what_suits_its_methods(
    tmp_path: Path,
    parameters: dict[str, Any],
    grid: dict[str, Any],
    methods: dict[str, Any],
    expected: set[str],
) -> None:
    common: dict[str, Any] = {"dimension": 30, "rank": 2, "beta": 1.0}
    common = {k: v for k, v in {**common, **parameters}.items() if k not in grid}
    content = {"study": "plain", "system": "SubspaceICA", "parameters": common, "grid": grid}
    timed = {"times": [0, 1, 2]} if "projected_sgd" in methods else {}
    study, out = study_from({**content, **timed, "methods": methods}), tmp_path / "plain.zarr"
    run(study, out, progress=False)
    publish(study, out)
    found = aggregate(open_results(out))
    assert set(found.children) - {"runs", "points"} == expected
    if "dependence" in expected:
        assert found["dependence"].attrs["over"] == next(iter(grid))
