"""FastICA of the subspace model: golden experiments, and what is the same however it is run."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import hdica
from hdica.finite.random.streams import streams_of
from hdica.ingredients.contrasts import make_contrast
from hdica.systems.subspace_ica.fastica import _iterate, starts
from hdica.systems.subspace_ica.samples import known
from tests.systems.subspace_ica.golden import GOLDEN

GOLD = GOLDEN["subspace_experiment"]["values"]
COLUMNS = {"overlap": "best", "correlation": "best_pc", "single": "single"}
BASE = {"dimension": 40, "rank": 2, "beta": 1.0, "samples_per_dimension": 40, "restarts": 3}


def system(case, **given):
    return hdica.SubspaceICA(
        dimension=case["D"],
        rank=case["r"],
        beta=case["beta"],
        samples_per_dimension=case["ratio"],
        latent=case["law"],
        contrast=case["G"],
        restarts=case.get("starts", 10),
        **given,
    )


def agree(values, golden):
    """Within five combined standard errors, and 0.01 for what D leaves."""
    error = np.hypot(values.std(ddof=1) / np.sqrt(values.size), golden[1])
    return abs(values.mean() - golden[0]) <= 5 * error + 0.01


@pytest.mark.parametrize("method", ["fastica", "fastica_scores"])
@pytest.mark.parametrize(
    "case", GOLD, ids=[f"{c['D']}-{c['ratio']}-{c['r']}-{c['beta']}" for c in GOLD]
)
def test_golden_experiments(case, method):
    seeds = 10 if case["ratio"] > 8 else 24
    found = hdica.simulate(system(case), seeds=seeds, method=method, timeout=None)
    for name, column in COLUMNS.items():
        assert agree(found[name].values, case[column]), name


@pytest.mark.parametrize("case", [GOLD[0], GOLD[2]], ids=["64", "256"])
def test_without_principal_components_nothing_is_found(case):
    found = hdica.simulate(system(case, space="ambient"), seeds=10, timeout=None)
    assert agree(found["overlap"].values, case["amb"])
    assert np.all(found["pca_overlap"] == pytest.approx(1.0))


def test_what_is_found_is_what_the_limit_predicts():
    """Where FastICA finds the feature: D = 256, n = 32 D, unequal strengths."""
    given = hdica.SubspaceICA(
        dimension=256, rank=2, beta=[2, 1], alpha=[0.6, 0.8], samples_per_dimension=32
    )
    found = hdica.simulate(given, seeds=16, method="fastica_scores")
    limit = hdica.limit(given)
    for name in ("overlap", "correlation", "pca_overlap"):
        values = found[name].values
        expected = float(limit[name if name in limit else f"predicted_{name}"])
        error = values.std(ddof=1) / np.sqrt(values.size)
        assert values.mean() == pytest.approx(expected, abs=4 * error + 2 / 256), name


@pytest.mark.parametrize("space", ["principal", "ambient", "known"])
@pytest.mark.parametrize("whitening", ["sample", "population"])
def test_bits_do_not_depend_on_threads(space, whitening):
    given = hdica.SubspaceICA(**BASE, space=space, whitening=whitening)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(hdica.simulate(given, seeds=2, extra=["w", "overlaps"]))
    for name in ("overlap", "score", "w", "overlaps", "pca_overlap"):
        assert found[0][name].values.tobytes() == found[1][name].values.tobytes(), name


def test_extras_say_where_every_start_leads():
    found = hdica.simulate(hdica.SubspaceICA(**BASE), seeds=3, extra=["w", "overlaps", "variances"])
    assert found["overlaps"].sizes == {"seed": 3, "restart": 3}
    assert np.array_equal(found["overlaps"].isel(restart=0), found["single"])
    assert np.all(np.any(found["overlaps"] == found["overlap"], axis=1))
    # Equal strengths: the whitened v is along (1, 1).
    along = np.abs(found["w"].values @ [0.5**0.5, 0.5**0.5])
    assert along == pytest.approx(found["overlap"].values, rel=1e-12)
    assert np.all(np.linalg.norm(found["w"], axis=1) <= 1 + 1e-12)
    assert np.all(found["variances"].values[:, 0] > found["variances"].values[:, 1])


@pytest.mark.parametrize("space", ["principal", "ambient", "known"])
def test_fresh_samples_lead_to_the_feature_as_well(space):
    given = {**BASE, "dimension": 12, "samples_per_dimension": 2000, "batch": "fresh", "a0": 0.8}
    found = hdica.simulate(hdica.SubspaceICA(**given, space=space, iterations=12), seeds=3)
    assert np.all(found["overlap"] > 0.97)
    assert np.all(found["converged"] == 0)
    assert np.all(found["iterations"] == 12)


def test_fresh_samples_are_other_ones_in_every_iteration():
    """Negative control: with the same ones it stands still, with new ones it moves by noise."""
    given = {**BASE, "space": "known", "start": {"overlap": 1.0}, "restarts": 1}
    same, fresh = (
        hdica.simulate(
            hdica.SubspaceICA(**given, batch=batch, iterations=60, tolerance=1e-9), seeds=4
        )
        for batch in ("all", "fresh")
    )
    assert np.all(same["converged"] == 1)
    assert np.all(fresh["converged"] == 0)


@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
def test_starts_have_the_overlap_that_is_asked_for(overlap):
    model = hdica.SubspaceModel(dimension=9, rank=4, beta=[4, 3, 2, 1])
    stream = streams_of({"test": "starts"}, "starts")(0)
    frame = known(model.spiked, 100, stream, sample=True).frame
    w = starts(frame, 50, overlap, stream)
    assert np.linalg.norm(w, axis=1) == pytest.approx(1.0, abs=1e-14)
    assert frame.along(w) == pytest.approx(overlap, abs=1e-14)
    assert np.array_equal(starts(frame, 3, overlap, stream), w[:3])


def test_uniform_starts_are_uniform():
    model = hdica.SubspaceModel(dimension=9, rank=4, beta=1)
    stream = streams_of({"test": "starts"}, "starts")(1)
    w = starts(known(model.spiked, 100, stream, sample=False).frame, 20_000, None, stream)
    assert w.T @ w / len(w) == pytest.approx(np.eye(4) / 4, abs=5 * np.sqrt(1 / 8 / len(w)))
    assert np.abs(w.mean(axis=0)).max() < 5 * np.sqrt(1 / 4 / len(w))


def test_one_spike_is_found_by_principal_components_alone():
    given = hdica.SubspaceICA(dimension=30, rank=1, beta=2.0, samples=3000, start={"overlap": 0.5})
    found = hdica.simulate(given, seeds=2)
    assert found["overlap"].values == pytest.approx(found["pca_overlap"].values, rel=1e-12)


@pytest.mark.parametrize("contrast", ["exp", "logcosh", "kurtosis", "he4", "log(cosh(b*s))/b"])
@pytest.mark.parametrize("latent", ["rademacher", "laplace"])
def test_every_contrast_finds_the_feature_of_many_samples(contrast, latent):
    given = {**BASE, "samples_per_dimension": 1500, "latent": latent, "space": "known"}
    found = hdica.simulate(
        hdica.SubspaceICA(**given, contrast=contrast, constants={"b": 1.5}), seeds=2
    )
    assert np.all(found["overlap"] > 0.98)


def test_an_iterate_without_a_direction_stays_where_it_is():
    w = np.eye(3)[:2]
    nothing = _iterate(lambda count: np.zeros((count, 3)), 100, w, make_contrast("kurtosis"))
    assert np.array_equal(nothing, w)
