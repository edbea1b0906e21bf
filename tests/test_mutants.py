"""Faults that are put in to test the tests are faults, and go away again."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tests import mutants


def test_a_fault_is_valid_python_that_means_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = mutants.drawn(7, 60)
    assert len({fault.room for fault in chosen}) >= 20
    assert {fault.kind for fault in chosen} == {"sign", "factor", "one", "order", "condition"}
    for fault in chosen:
        place = tmp_path / "module.py"
        source = (mutants.ROOT / fault.file).read_bytes()
        place.write_bytes(source)
        with monkeypatch.context() as patch:
            patch.setattr(mutants, "ROOT", tmp_path)
            with mutants.put(replace(fault, file="module.py")):
                changed = place.read_bytes()
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), fault
        assert place.read_bytes() == source
    assert mutants.drawn(7, 60) == chosen
