"""Gradient steps and their flow on whitened samples."""

from __future__ import annotations

import numpy as np
import pytest

import hdica
from hdica.ingredients.contrasts import make_contrast
from hdica.ingredients.save import Save
from hdica.systems.subspace_ica.gradient import cyclic, descend, flow
from hdica.systems.system import methods_of

BASE = {"dimension": 30, "rank": 3, "beta": 1.0}
RNG = np.random.default_rng(0)
Y = RNG.standard_normal((60, 3))
W = np.array([0.6, 0.0, 0.8])


def steps(y, w, contrast, rate, batch):
    """(B.5) as it is printed."""
    for first in range(0, len(y), batch):
        x = y[first : first + batch]
        push = np.mean(contrast.slope(x @ w)[:, None] * x, axis=0)
        w = w + rate * (np.eye(3) - np.outer(w, w)) @ push
        w = w / np.linalg.norm(w)
    return w


@pytest.mark.parametrize("contrast", ["exp", "logcosh", "kurtosis", "he4", "s**4/5 + tanh(s)**2"])
@pytest.mark.parametrize("rate", [0.1, -0.1])
def test_steps_are_those_of_the_paper(contrast, rate):
    given = make_contrast(contrast)
    path, why = descend(cyclic(Y), W, given, rate, 6, np.array([0.0, 0.5, 1.0]), 0.1)
    assert not why
    assert path[0] == pytest.approx(W, abs=0)
    assert path[1] == pytest.approx(steps(Y[:30], W, given, rate, 6), abs=1e-13)
    assert path[2] == pytest.approx(steps(Y, W, given, rate, 6), abs=1e-13)


def test_samples_begin_again_when_they_are_used_up():
    take = cyclic(Y)
    found = np.concatenate([take(size) for size in (50, 7, 130, 33)])
    assert np.array_equal(found, np.tile(Y, (4, 1))[:220])


def test_a_path_does_not_depend_on_the_output_times():
    given = hdica.SubspaceICA(**BASE, algorithm="sgd", eta=0.05, batch=7)
    whole = hdica.simulate(given, times=[0, 1, 2, 5], seeds=2)["overlap"]
    last = hdica.simulate(given, times=[5], seeds=2)["overlap"]
    assert whole.sel(time=5).values.tobytes() == last.sel(time=5).values.tobytes()


def test_what_is_not_finite_is_told():
    with np.errstate(all="ignore"):
        huge = np.full((6, 3), 1e200)
        path, why = descend(
            cyclic(huge), W, make_contrast("kurtosis"), 1.0, 2, np.array([0.0, 2.0]), 1.0
        )
    assert "no longer finite at step 0" in why
    assert np.all(np.isfinite(path[0]))
    assert np.all(np.isnan(path[1]))


@pytest.mark.parametrize(
    ("latent", "contrast", "eta"),
    [("rademacher", "kurtosis", 0.005), ("laplace", "kurtosis", 0.002), ("rademacher", "exp", 0.1)],
)
def test_small_steps_on_fresh_samples_follow_the_flow_of_the_population(latent, contrast, eta):
    given = hdica.SubspaceICA(
        **BASE, latent=latent, contrast=contrast, algorithm="sgd", eta=eta, batch=2000,
        start={"overlap": 0.5},
    )  # fmt: skip
    times = [0, 0.4, 1.0] if contrast == "kurtosis" else [0, 10, 25]
    runs = hdica.simulate(given, times=times, seeds=6, timeout=None)["overlap"]
    limit = hdica.limit(given, times=times)["overlap"]
    error = runs.std("seed", ddof=1) / 6**0.5
    assert float(runs.isel(time=0)[0]) == pytest.approx(0.5, abs=1e-14)
    assert float(limit[-1]) > 0.55
    assert np.all(abs(runs.mean("seed") - limit) < 4 * error + eta)


def test_the_other_direction_leads_away():
    given = {**BASE, "contrast": "kurtosis", "algorithm": "sgd", "eta": 0.01, "batch": 500}
    to, away = (
        hdica.simulate(
            hdica.SubspaceICA(**given, direction=direction, start={"overlap": 0.5}),
            times=[3],
            seeds=3,
        )["overlap"]
        for direction in ("auto", "ascent")
    )
    assert np.all(to > 0.9)
    assert np.all(away < 0.4)


def test_steps_end_at_the_level_of_their_noise():
    given = hdica.SubspaceICA(
        **BASE, contrast="exp", algorithm="sgd", eta=0.25, batch=50, start={"overlap": 1.0}
    )
    times = np.arange(100, 800, 10)
    runs = hdica.simulate(given, times=times, seeds=24, timeout=None)["overlap"]
    left = (1 - runs**2).mean("time")
    told = methods_of("SubspaceICA")["sgd_level"].run(given, times, None, None, Save())
    level = float(told.values["noise"])
    error = float(left.std("seed", ddof=1)) / 24**0.5
    # First order in the level itself.
    assert float(left.mean()) == pytest.approx(level, abs=4 * error + 3 * level**2)


def test_a_flow_is_where_small_steps_of_all_samples_go():
    y, given = RNG.standard_normal((200, 3)) ** 3 / 4, make_contrast("logcosh")
    times = np.array([0.0, 1.0, 4.0])
    path = flow(y, W, given, 1, times)
    ends = [descend(cyclic(y), W, given, eta, 200, times, eta)[0] for eta in (1 / 256, 1 / 512)]
    assert path == pytest.approx(2 * ends[1] - ends[0], abs=2e-5)
    assert not np.allclose(path[2], ends[0][2], atol=2e-5)
    means = np.mean(given.value(y @ path.T), axis=0)
    assert np.all(np.diff(means) > 0)
    assert np.linalg.norm(path, axis=1) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("algorithm", ["flow", "sgd"])
@pytest.mark.parametrize("space", ["principal", "known", "ambient"])
def test_all_samples_lead_near_the_feature(algorithm, space):
    more = {"eta": 0.5} if algorithm == "sgd" else {}
    given = hdica.SubspaceICA(
        **BASE, samples=20_000, space=space, algorithm=algorithm, start={"overlap": 0.8}, **more
    )
    found = hdica.simulate(given, times=[0, 60], seeds=2, extra=["w_path"], timeout=None)
    assert found["overlap"].isel(time=0).values == pytest.approx(0.8, abs=1e-12)
    assert np.all(found["overlap"].isel(time=1) > (0.9 if space == "ambient" else 0.97))
    assert found["w_path"].sizes == {"seed": 2, "time": 2, "component": 3}
