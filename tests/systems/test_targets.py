"""The bits of a simulation and of its limit do not depend on the instructions of the processor."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.store import provenance
from hdica.systems.method import Bits, Method, Role
from hdica.systems.system import System, methods_of
from tests.systems.test_contract import RECORDS, TIMES, problems, size

PROGRAM = """
import hashlib, numba, hdica
digest = hashlib.sha256()
sparse = {"prior": {"sparse": 0.3}, "start": {"overlap": 0.6}}
ica = hdica.OnlineICA(tau=0.05, **sparse)
pca = hdica.SparsePCA(tau=0.5, regularizer="0.3*sign(x) + x/5", **sparse)
several = [
    (ica, 1100, "vector"),
    (ica.model_copy(update={"regularizer": "0.2*sign(x)"}), 70, "vector"),
    (ica.model_copy(update={"regularizer": "x**3/9 - x"}), 70, "vector"),
    (pca, 70, "vector"),
    (pca.model_copy(update={"variant": "proximal"}), 70, "vector"),
    (ica, 5, "chain"),
    (pca.model_copy(update={"regularizer": "x"}), 400, "chain"),
]
for system, n, method in several:
    for noise in ("own", "shared"):
        options = {"times": [0, 0.3], "seeds": range(3), "method": method, "noise": noise}
        options["timeout"] = None  # on a busy machine compilation takes minutes
        found = hdica.simulate(system, n=n, **options)
        digest.update(found["Q"].values.tobytes() + found["R"].values.tobytes())
for source in ("rademacher", "laplace"):
    ten = hdica.TensorialICA(dimension=70, source=source, eta=1e-4)
    found = hdica.simulate(ten, times=[0, 50], seeds=range(3), timeout=None, extra=["v"])
    digest.update(found["v"].values.tobytes() + found["tan2"].values.tobytes())
spikes = {"dimension": 40, "rank": 3, "beta": 1.0, "samples_per_dimension": 20}
for contrast in ("exp", "kurtosis"):
    sub = hdica.SubspaceICA(contrast=contrast, restarts=2, **spikes)
    for method in ("fastica", "fastica_scores"):
        found = hdica.simulate(sub, seeds=range(2), method=method, timeout=None)
        digest.update(found["overlap"].values.tobytes() + found["score"].values.tobytes())
for system in (ica, pca.model_copy(update={"regularizer": "0.2*tanh(4*x)"})):
    found = hdica.limit(system, times=[0, 1], method="pde", timeout=None)
    digest.update(found["Q"].values.tobytes() + found["R"].values.tobytes())
print(numba.config.CPU_NAME, digest.hexdigest())
"""
OLD = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse,+sse2,+64bit,+cx8"}
"""A processor without fused multiply-add."""


def digest_on(target: dict[str, str]) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_CPU")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**kept, **target},
        capture_output=True,
        text=True,
        check=True,
    )
    used, digest = done.stdout.split()
    assert used == target.get("NUMBA_CPU_NAME", "None")
    return digest


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86-64 processor"
)
def test_an_old_processor_gives_the_bits_of_this_one():
    assert digest_on(OLD) == digest_on({})


def bits() -> dict[str, dict[str, str]]:
    """Digests of what methods give for every example, and of the control, by their promise."""
    found: dict[str, dict[str, str]] = {kind.value: {} for kind in Bits}
    for record in RECORDS:
        for noise in ("own", "shared"):
            for name, method in methods_of(record.name, noise).items():
                control = record.name in CONTROL and method.role is Role.STEADY_STATES
                if method.about.bits is Bits.EVERY_KIND or (control and noise == "own"):
                    found[method.about.bits][f"{record.name}.{name} {noise}"] = _digest(
                        record, method
                    )
    return found


CONTROL = ("OnlineICA", "SparsePCA", "HebbianICA")
"""Systems whose steady states, by NumPy and BLAS, have other bits elsewhere."""


def _digest(record: System, method: Method) -> str:
    digest = hashlib.sha256()
    for system in problems(record):
        if method.scope.refuses(system):
            continue
        seed = 3 if method.stochastic else None
        try:
            found = method.run(system, TIMES, size(method), seed, NOTHING).values
        except HdicaError as exc:
            digest.update(str(exc).encode())
            continue
        for name in sorted(found):
            digest.update(np.ascontiguousarray(found[name]).tobytes())
    return digest.hexdigest()


ASKED = """
import json
from hdica.store.provenance import this_processor
from tests.systems.test_targets import bits
print(json.dumps([bits(), this_processor()]))
"""


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_methods_keep_their_bits_whatever_numpy_and_blas_use_if_they_promise_it() -> None:
    """What other processors would let them use; results say that they used something else."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if platform.machine() != "x86_64" or not found:
        pytest.skip("neither NumPy nor OpenBLAS can be told to use less: run it on x86-64")
    poorer = {"NPY_DISABLE_CPU_FEATURES": " ".join(found), "OPENBLAS_CORETYPE": "Nehalem"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASKED],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **more},
            stdout=subprocess.PIPE,
            text=True,
        )
        for more in ({}, poorer)
    ]
    (here, one), (there, other) = (json.loads(p.communicate()[0]) for p in processes)
    assert len(here[Bits.EVERY_KIND]) > 10
    assert here[Bits.EVERY_KIND] == there[Bits.EVERY_KIND]
    assert here[Bits.ONE_KIND] != there[Bits.ONE_KIND]
    assert provenance.several(f"{one}; {other}")
