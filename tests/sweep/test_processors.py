"""A store says on which processors its numbers were computed."""

from pathlib import Path

import pytest

import hdica
from hdica.report import report_of
from hdica.run.runner import run
from hdica.store import provenance
from hdica.store.publish import publish
from hdica.store.verify import verify
from hdica.study.study import study_from
from tests.sweep.test_noise import content


@pytest.mark.deep
def test_every_processor_that_computed_is_named_in_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, here = tmp_path / "noise.zarr", provenance.this_processor()
    study = study_from(content())
    run(study, out, progress=False, cluster={"mode": "serial"})
    publish(study, out)
    assert hdica.open_results(out).attrs["processors"] == here
    # A later part of the study runs elsewhere.
    monkeypatch.setattr("hdica.run.block.this_processor", lambda: "another")
    more = study_from(content(grid={"tau": [0.02, 0.05, 0.08, 0.11], "Q0": [0.4, 0.8]}))
    run(more, out, progress=False, cluster={"mode": "serial"})
    publish(more, out)
    assert hdica.open_results(out).attrs["processors"] == f"another; {here}"
    (note,) = verify(out).notes
    assert note.startswith("2 kinds of processors have computed these results")
    assert note in report_of(out)[0].read_text()


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        ("", 0),
        ("skylake (x86_64, glibc 2.36)", 0),
        ("skylake (x86_64, glibc 2.36); skylake (x86_64, glibc 2.36, NumPy AVX2)", 0),
        ("skylake (x86_64, glibc 2.36, NumPy X86_V3); skylake (x86_64, glibc 2.36, NumPy AVX)", 2),
        ("znver3 (x86_64, glibc 2.36); skylake (x86_64, glibc 2.36, NumPy X86_V3)", 2),
    ],
)
def test_kinds_of_processors_are_told_apart(names: str, kinds: int) -> None:
    assert provenance.several(names).startswith(f"{kinds} kinds" if kinds else "")
    assert bool(provenance.several(names)) == bool(kinds)


def test_a_processor_has_a_name() -> None:
    assert "(" in provenance.this_processor()
