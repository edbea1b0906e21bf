"""Some hundreds of generated study files; ``python -m tests.fuzz --cases 10000`` takes more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from hdica.study.study import Study
from tests.fuzz.broken import CASES, laughs, nested, texts
from tests.fuzz.check import outcome
from tests.fuzz.valid import studies

CHECKS = [*HealthCheck]
VALID, BROKEN = 40, 50


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert os.listdir(tmp_path) in ([], ["fuzz.yaml"])


@pytest.mark.deep
@settings(max_examples=VALID, derandomize=True, deadline=None, suppress_health_check=CHECKS)
@given(raw=texts(studies()))
def test_a_valid_study_is_accepted(folder: Path, raw: bytes) -> None:
    found = outcome(raw, folder)
    assert isinstance(found, Study), found


@pytest.mark.deep
@settings(max_examples=BROKEN, derandomize=True, deadline=None, suppress_health_check=CHECKS)
@given(raw=CASES)
def test_a_broken_study_ends_in_a_study_or_one_sentence(folder: Path, raw: bytes) -> None:
    outcome(raw, folder)


@pytest.mark.parametrize("merge", [True, False])
def test_a_file_that_stands_for_a_thousand_million_values_is_refused(
    folder: Path, merge: bool
) -> None:
    raw = laughs(30, 10, merge).encode()
    assert len(raw) < 3000
    assert "more than" in str(outcome(raw, folder))


@pytest.mark.parametrize("kind", ["list", "mapping", "block"])
@pytest.mark.parametrize("depth", [40, 100_000])
def test_deep_nesting_is_refused(folder: Path, kind: str, depth: int) -> None:
    assert "nested deeper than 32" in str(outcome(nested(depth, kind).encode(), folder))


BROAD: dict[str, dict[str, set[str]]] = {
    "OnlineICA": {
        "methods": {"vector", "chain", "ode", "pde", "fixed_points", "critical"},
        "analysis": {"convergence", "compare", "steady"},
        "save": {"snapshots", "x", "thresholds", "functionals"},
    },
    "SparsePCA": {"methods": {"vector", "ode", "pde"}, "save": {"snapshots", "functionals"}},
    "HebbianICA": {
        "methods": {"escape_times", "escape_diffusion", "asymptotics"},
        "analysis": {"paths", "decay"},
    },
}


@pytest.mark.deep
@pytest.mark.parametrize("system", list(BROAD))
def test_valid_studies_are_broad(system: str) -> None:
    seen: dict[str, set[str]] = {"methods": set(), "analysis": set(), "save": set()}

    @settings(max_examples=250, derandomize=True, deadline=None, suppress_health_check=CHECKS)
    @given(study=studies(system))
    def collect(study: dict[str, Any]) -> None:
        for part, found in seen.items():
            found.update(study.get(part, {}))

    collect()
    missing = {part: names - seen[part] for part, names in BROAD[system].items()}
    assert not any(missing.values()), missing
