"""The bits of a result do not depend on how many threads the libraries use."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.deep

PROGRAM = """
import hashlib, numpy as np, hdica
digest = hashlib.sha256()
for f, n, method, prior in [
    ("x**3", 40_000, "chain", "gaussian"),
    ("x**3", 20_000, "vector", {"sparse": 0.3}),
    ("x**3", 20_000, "vector", "dense"),
]:
    start = {"normal": {"mean": 0.7, "var": 0.5}} if prior != "gaussian" else {"overlap": 0.6}
    ica = hdica.OnlineICA(tau=0.05, nonlinearity=f, prior=prior, start=start)
    digest.update(hdica.simulate(ica, n=n, times=[0, 0.002], method=method)["Q"].values.tobytes())
for f, source in [("x**3", "uniform"), ("tanh(x)", "laplace")]:
    ica = hdica.OnlineICA(tau=0.05, nonlinearity=f, source=source)
    for found in (hdica.limit(ica, times=[0, 10]), hdica.fixed_points(ica), hdica.critical(ica)):
        for name in sorted(found.data_vars):
            if found[name].dtype != object:
                digest.update(np.ascontiguousarray(found[name].values).tobytes())
sparse = {"prior": {"sparse": 0.3}, "start": {"overlap": 0.6}}
ica = hdica.OnlineICA(tau=0.04, regularizer="0.1*sign(x)", **sparse)
pca = hdica.SparsePCA(tau=0.5, regularizer="0.2*tanh(4*x)", **sparse)
x = np.linspace(-3, 4, 50)
for found in (
    hdica.limit(ica, times=[0, 5], x=x),
    hdica.limit(pca, times=[0, 2], x=x),
    hdica.fixed_points(ica),
    hdica.fixed_points(pca),
    hdica.critical(ica),
    hdica.simulate(ica, n=20_000, times=[0, 1], method="particles"),
    hdica.simulate(pca, n=10_000, times=[0, 0.002], x=x, thresholds=[1.0]),
    hdica.simulate(pca, n=400, times=[0, 1], method="sample_pca"),
):
    for name in sorted(found.data_vars):
        if found[name].dtype != object:
            digest.update(np.ascontiguousarray(found[name].values).tobytes())
pair = {"sources": ["uniform", {"chi2": 3}], "projections": 2, "sigma": [-1, 1], "mu": 0.02}
for f in ("x**3", "x**2"):
    found = hdica.fixed_points(hdica.HebbianICA(nonlinearity=f, **pair))
    for name in ("R", "eigenvalue", "hits"):
        digest.update(np.ascontiguousarray(found[name].values).tobytes())
print(digest.hexdigest())
"""


def digest_with(threads: int) -> str:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(threads))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_one_and_two_threads_give_the_same_bits():
    assert digest_with(1) == digest_with(2)
