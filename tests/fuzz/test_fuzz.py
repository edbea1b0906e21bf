"""Some hundreds of generated study files; ``python -m tests.fuzz --cases 10000`` takes more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from hdica.sweep.study.study import Study
from tests.fuzz.broken import CASES, laughs, nested, texts
from tests.fuzz.check import outcome
from tests.fuzz.valid import studies

CHECKS = [*HealthCheck]
VALID, BROKEN = 40, 260


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert os.listdir(tmp_path) in ([], ["fuzz.yaml"])


@pytest.mark.slow
@settings(max_examples=VALID, derandomize=True, deadline=None, suppress_health_check=CHECKS)
@given(raw=texts(studies()))
def test_a_valid_study_is_accepted(folder: Path, raw: bytes) -> None:
    found = outcome(raw, folder)
    assert isinstance(found, Study), found


@pytest.mark.slow
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


def test_valid_studies_are_broad() -> None:
    seen: dict[str, set[Any]] = {
        "system": set(),
        "methods": set(),
        "analysis": set(),
        "save": set(),
    }

    @settings(max_examples=800, derandomize=True, deadline=None, suppress_health_check=CHECKS)
    @given(study=studies())
    def collect(study: dict[str, Any]) -> None:
        seen["system"].add(study["system"])
        seen["methods"] |= set(study["methods"])
        seen["analysis"] |= set(study["analysis"])
        seen["save"] |= set(study.get("save", {}))

    collect()
    assert seen["system"] >= {"OnlineICA", "SparsePCA", "HebbianICA"}
    assert seen["methods"] >= {"vector", "chain", "ode", "pde", "fixed_points", "critical"}
    assert seen["methods"] >= {"escape_times", "escape_diffusion", "asymptotics"}
    assert seen["analysis"] >= {"convergence", "compare", "steady", "paths", "decay"}
    assert seen["save"] >= {"snapshots", "x", "thresholds", "functionals"}
