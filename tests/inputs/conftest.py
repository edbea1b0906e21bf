from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("HDICA_DATA", str(folder))
    return folder
