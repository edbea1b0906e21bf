from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import trouble
from tests.faults.bench import Bench
from tests.sweep import toy


@pytest.fixture(autouse=True)
def toy_system() -> Iterator[None]:
    trouble.register()
    yield
    toy.forget()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A folder in which runs are started and disturbed; whatever is left of them ends with it."""
    with Bench(tmp_path) as made:
        yield made
