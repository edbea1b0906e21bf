"""Falls from the feature at the critical step size: chains, plain NumPy, the diffusion at n."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.ingredients.sources import make_source
from hdica.systems.system import systems

METHODS = {method.name: method for method in systems()["OnlineICA"].methods}
BEGIN, LEVEL = 0.95, 0.6
CRITICAL = 0.16217926063


def _ica(tau: float = CRITICAL, **more) -> hdica.OnlineICA:
    given = {"start": {"overlap": BEGIN, "exact": True}, "threshold": LEVEL, **more}
    return hdica.OnlineICA(tau=tau, source="rademacher", **given)


def _falls(system: hdica.OnlineICA, n: int, seeds: int, end: float) -> tuple[np.ndarray, ...]:
    trials = [(system, seed) for seed in range(seeds)]
    found = METHODS["fall_times"].run_all(trials, np.array([end]), n, NOTHING)
    values = [(float(one.values["first"]), float(one.values["first_seen"])) for one in found]
    first, seen = np.array(values).T
    return first, seen


def _plain(n: int, tau: float, runs: int) -> np.ndarray:
    """Times of falls of the update (1)-(2) itself, by its exact reduction, in NumPy."""
    rng, law = np.random.default_rng(n), make_source("rademacher")
    q, out, step = np.full(runs, BEGIN), np.full(runs, np.nan), 0
    alive = np.arange(runs)
    while alive.size:
        step += 1
        s = np.sqrt(1 - q**2)
        c, e = law.sample(rng, alive.size), rng.standard_normal(alive.size)
        rest = rng.chisquare(n - 2, alive.size)
        g = -tau * (q * c + s * e) ** 3
        along, across = q + g * c / n, s + g * e / n
        q = along / np.sqrt(along**2 + across**2 + g**2 * rest / n**2)
        fallen = np.abs(q) <= LEVEL
        out[alive[fallen]] = step / n
        q, alive = q[~fallen], alive[~fallen]
    return out


@pytest.mark.deep
def test_falls_have_the_law_of_a_plain_chain() -> None:
    n = 60
    first, seen = _falls(_ica(), n, 512, 5000.0)
    assert seen.all()
    plain = _plain(n, CRITICAL, 400)
    error = math.hypot(first.std() / 512**0.5, plain.std() / 400**0.5)
    assert abs(first.mean() - plain.mean()) < 3.5 * error
    for share in (0.25, 0.5, 0.75):
        level = np.quantile(plain, share)
        spread = math.sqrt(share * (1 - share) * (1 / 512 + 1 / 400))
        assert abs(np.mean(first <= level) - share) < 3.5 * spread
    # Another step size, within the window of the fold at this n, has another law.
    other, _ = _falls(_ica(CRITICAL + 0.005), n, 512, 5000.0)
    error = math.hypot(other.std() / 512**0.5, plain.std() / 400**0.5)
    assert abs(other.mean() - plain.mean()) > 3.5 * error


def test_a_fall_is_of_the_path_that_the_chain_takes() -> None:
    n, system = 50, _ica(0.17)
    first, seen = _falls(system, n, 6, 400.0)
    times = np.arange(0, 400 * n + 1) / n
    for seed in range(6):
        path = METHODS["chain"].run(system, times, n, seed, NOTHING).values["Q"]
        below = np.flatnonzero(np.abs(path) <= LEVEL)
        assert bool(seen[seed]) == bool(below.size)
        assert first[seed] == pytest.approx(times[below[0]] if below.size else 400.0, abs=1e-12)


def test_runs_that_end_before_they_fall_say_so() -> None:
    first, seen = _falls(_ica(0.1), 400, 8, 5.0)
    assert not seen.any()
    assert np.array_equal(first, np.full(8, 5.0))
    there, seen = _falls(_ica(0.1, start={"overlap": 0.3, "exact": True}), 400, 2, 5.0)
    assert seen.all()
    assert np.array_equal(there, np.zeros(2))


@pytest.mark.deep
def test_the_diffusion_at_n_predicts_the_mean() -> None:
    n = 1000
    first, seen = _falls(_ica(), n, 256, 20_000.0)
    assert seen.all()
    found = METHODS["fall_diffusion"].run(_ica(), np.array([1.0]), n, None, NOTHING).values
    error = first.std() / 256**0.5
    assert abs(first.mean() - float(found["predicted"])) < 3.5 * error
    # The law of all n alone has no such offset, and is not the mean at this n.
    assert abs(first.mean() - float(found["unit"] * found["law"])) > 3.5 * error


def test_what_has_no_diffusion_of_falls_is_refused() -> None:
    refuses = METHODS["fall_diffusion"].scope.refuses
    assert refuses(_ica()) == ""
    assert "exact" in refuses(_ica(start={"overlap": 0.9}))
    assert "threshold 0.6" in refuses(_ica(start={"overlap": 0.5, "exact": True}))
    assert "regularizer" in refuses(_ica(regularizer="0.1*sign(x)"))
    assert "tau" in refuses(_ica("0.1/(1 + t)"))
    # Of a source with the kurtosis of a normal one nothing can be learned, and nothing is lost.
    still = {"discrete": {"values": [-1, 0, 1], "weights": [1, 4, 1]}}
    one = _ica().model_copy(update={"source": still})
    with pytest.raises(HdicaError, match="no fold with Q > 0"):
        METHODS["fall_diffusion"].run(one, np.array([1.0]), 100, None, NOTHING)


def test_odds_refuse_a_start_on_the_other_side() -> None:
    refuses = METHODS["success_diffusion"].scope.refuses
    assert refuses(_ica(start={"overlap": 0.5})) == ""
    assert "Q >= 0" in refuses(_ica(start={"overlap": -0.5}))


def test_a_step_size_in_units_of_one_over_n_is_one_at_n() -> None:
    for name in ("fall_diffusion", "success_diffusion"):
        method = METHODS[name]
        assert method.scope.refuses(_ica(None, nu=17.0)) == ""
        by_nu, by_tau = (
            method.run(one, np.array([1.0]), 100, None, NOTHING).values["predicted"]
            for one in (_ica(None, nu=17.0), _ica(0.17))
        )
        assert by_nu == by_tau


def test_nothing_goes_up_beyond_the_fold() -> None:
    run = METHODS["success_diffusion"].run
    found = run(_ica(0.2), np.array([1.0]), 1000, None, NOTHING).values
    assert float(found["predicted"]) == 0.0
    assert float(found["scaled"]) == -math.inf
    assert float(found["edge"]) == 1.0


@pytest.mark.deep
def test_a_sampled_start_brings_its_own_spread() -> None:
    n, q = 2000, 0.62
    run = METHODS["success_diffusion"].run
    sampled, exact = (
        float(
            run(
                _ica(0.08, start={"overlap": q, "exact": one}), np.array([1.0]), n, None, NOTHING
            ).values["predicted"]
        )
        for one in (False, True)
    )
    chains = METHODS["chain"].run_all(
        [(_ica(0.08, start={"overlap": q}), seed) for seed in range(1000)],
        np.array([60.0]),
        n,
        NOTHING,
    )
    share = np.mean([float(one.values["Q"][0]) > 0.6097 for one in chains])
    error = math.sqrt(sampled * (1 - sampled) / 1000)
    assert abs(share - sampled) < 3.5 * error
    assert abs(share - exact) > 5 * error
