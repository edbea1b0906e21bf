"""A store says on which processors its numbers were computed."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.report import report_of
from hdica.sweep.files import processors
from hdica.sweep.files.paths import work_path
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.publish import publish
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import study_from
from tests.sweep.test_noise import content


@pytest.fixture(autouse=True)
def _anew() -> None:
    processors.note.cache_clear()


def test_every_processor_that_computed_is_named_in_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, here = tmp_path / "noise.zarr", processors.this_processor()
    study = study_from(content())
    run(study, out, progress=False, cluster={"mode": "serial"})
    publish(study, out)
    assert hdica.open_results(out).attrs["processors"] == here
    # A later part of the study runs elsewhere.
    processors.note.cache_clear()
    monkeypatch.setattr(processors, "this_processor", lambda: "another")
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
    assert processors.several(names).startswith(f"{kinds} kinds" if kinds else "")
    assert bool(processors.several(names)) == bool(kinds)


BITS = """
import hashlib, hdica
from hdica.sweep.files.processors import this_processor
ica = hdica.OnlineICA(tau=0.05, source="laplace")
for method in ("vector", "chain"):
    found = hdica.simulate(ica, n=50, times=[0, 1], seeds=2, method=method)
    print(hashlib.sha256(found.Q.values.tobytes()).hexdigest())
print(this_processor())
"""


def test_vector_and_chain_have_the_same_bits_whatever_numpy_and_blas_use() -> None:
    """What other processors would let them use; results say that they used something else."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if platform.machine() != "x86_64" or not found:
        pytest.skip("neither NumPy nor OpenBLAS can be told to use less: run it on x86-64")
    poorer = {"NPY_DISABLE_CPU_FEATURES": " ".join(found), "OPENBLAS_CORETYPE": "Nehalem"}
    (*bits, here), (*others, there) = (
        subprocess.run(
            [sys.executable, "-c", BITS], env={**os.environ, **more}, capture_output=True, text=True
        ).stdout.splitlines()
        for more in ({}, poorer)
    )
    assert len(bits) == 2
    assert bits == others
    assert processors.several(f"{here}; {there}")


def test_a_processor_is_noted_once(tmp_path: Path) -> None:
    out = work_path(tmp_path / "noise.zarr")
    out.mkdir()
    assert processors.noted(out) == []
    processors.note(out)
    processors.note.cache_clear()
    processors.note(out)
    assert processors.noted(out) == [processors.this_processor()]
    assert "(" in processors.this_processor()
