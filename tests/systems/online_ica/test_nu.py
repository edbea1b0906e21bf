"""The step size as nu = n tau, and first passages of chains that leave Q = 0 on its scale."""

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.finite.projected.chain import run_together
from hdica.finite.projected.passage import passages
from hdica.finite.random.streams import streams_of
from hdica.finite.record import OVERLAP
from hdica.systems.fields import at_dimension
from hdica.systems.method import varied
from hdica.systems.online_ica.system import rule
from hdica.systems.system import methods_of
from hdica.systems.trials import content_of

METHODS = methods_of("OnlineICA").values()
ZERO = {"overlap": 0, "exact": True}


def ica(nu=1.0, source="rademacher", **more):
    return hdica.OnlineICA(nu=nu, source=source, **({"start": ZERO} | more))


def stream(seed, n=20):
    return streams_of("a test", "chain", n)(seed)


def plain_passages(nu, n, runs, threshold=0.8, seed=0):
    """First passages in n^3 steps of the rule in n dimensions with f = u^3, by NumPy alone."""
    rng = np.random.default_rng(seed)
    q, times = np.zeros(runs), np.full(runs, np.nan)
    for step in range(1, 100 * n**3):
        going = np.isnan(times)
        if not going.any():
            return times / n**3
        c = rng.choice([-1.0, 1.0], size=runs)
        # In a basis with xi/sqrt(n) first and the rest of x second, |x|^2 = n.
        y = rng.standard_normal((n, runs))
        y[0] = c
        x = np.zeros((n, runs))
        x[0], x[1] = np.sqrt(n) * q, np.sqrt(n) * np.sqrt(1 - q * q)
        u = q * y[0] + np.sqrt(1 - q * q) * y[1]
        x -= nu / n / np.sqrt(n) * u**3 * y
        q = x[0] / np.linalg.norm(x, axis=0)
        times[going & (np.abs(q) >= threshold)] = step
    raise AssertionError("some never passed")


@pytest.mark.parametrize(
    ("nu", "tau"),
    [
        (2.0, 0.1),
        ("2/(1 + t)", "(2/(1 + t))/20"),
        (
            {"steps": {"times": [3], "values": [2, 4]}},
            {"steps": {"times": [3], "values": [0.1, 0.2]}},
        ),
    ],
    ids=["a number", "a formula", "steps"],
)
def test_nu_is_n_times_tau(nu, tau):
    one, other = at_dimension(ica(nu), 20), hdica.OnlineICA(tau=tau, source="rademacher")
    when = np.linspace(0.0, 9.0, 7)
    assert rule(one).schedule.value(when) == pytest.approx(rule(other).schedule.value(when))
    assert at_dimension(other, 20) is other


def test_simulations_with_nu_have_the_law_of_those_with_tau_and_not_of_another_n():
    times, more = [0.0, 15.0], {"source": "rademacher", "start": {"overlap": 0.6, "exact": True}}

    def end(system, method="chain", seeds=500):
        found = hdica.simulate(system, times=times, n=25, seeds=seeds, method=method)
        return found["Q"].values[:, -1]

    nu, tau, wrong = hdica.OnlineICA(nu=2.5, **more), 0.1, 0.05
    expected = end(hdica.OnlineICA(tau=tau, **more))
    assert stats.ks_2samp(end(nu), expected).pvalue > 1e-3
    assert stats.ks_2samp(end(nu, "vector", 200), expected).pvalue > 1e-3
    assert stats.ks_2samp(end(nu), end(hdica.OnlineICA(tau=wrong, **more))).pvalue < 1e-6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "tau is missing (a step size: tau, or nu = n tau in its place)"),
        ({"tau": 0.1, "nu": 1.0}, "tau and nu are not allowed together"),
        ({"nu": -1.0}, "nu = -1.0 is not allowed (a step size is a finite number > 0)"),
        ({"nu": "b*t"}, "'b' is neither a variable nor a constant"),
        ({"tau": 0.1, "threshold": 1.0}, "threshold = 1.0 is not allowed (0 < threshold < 1)"),
    ],
)
def test_step_sizes_and_thresholds_are_refused_in_one_sentence(given, said):
    with pytest.raises(hdica.HdicaError) as refused:
        hdica.OnlineICA(**given)
    assert said in str(refused.value)


def test_limits_in_t_refuse_nu_and_simulations_do_not():
    for method in METHODS:
        why = method.scope.refuses(ica())
        if method.name in ("stream", "blind", "best_step", "escape", "escape_exponent"):
            continue
        if method.name == "fall_diffusion":  # from an exact start alone
            assert "exact" in why
            continue
        if method.takes_n and method.name not in ("particles", "entries"):
            assert not why
        elif varied(method) == "tau":
            assert why == "parameter = 'tau' is not allowed with nu = 1.0 (give tau)"
        else:
            assert why.startswith("nu is not allowed for limits in t = k/n (give tau: ")


def test_what_is_given_by_tau_keeps_its_streams_and_the_threshold_moves_none():
    plain = {"system": "OnlineICA", "tau": 0.1, "start": {"overlap": 0.3}}
    one = hdica.OnlineICA(tau=0.1, start={"overlap": 0.3})
    assert content_of(one) == plain
    other = one.model_copy(update={"threshold": 0.5})
    for name in ("chain", "vector"):
        q = [
            hdica.simulate(s, times=[0.0, 2.0], n=20, seeds=3, method=name)["Q"].values.tobytes()
            for s in (one, other)
        ]
        assert q[0] == q[1]
    # At a given n an escape is that over the threshold.
    at_n = {"escape_exact", "escape_diffusion", "escape_wkb", "escape_ode", "fall_diffusion"}
    assert not any("threshold" in m.scope.ignores for m in METHODS if m.name in at_n)
    known = (m for m in METHODS if not m.stochastic or m.name in ("chain", "vector"))
    assert all("threshold" in m.scope.ignores for m in known if m.name not in at_n)


@pytest.mark.deep
def test_a_passage_is_the_first_of_the_chain_s_own_path_whatever_runs_beside_it():
    n, problem = 20, rule(at_dimension(ica(2.0, start={"overlap": 0}), 20)).chain
    found = passages(problem, n, [stream(seed) for seed in range(21)], 0.7, 30_000)
    ends = [passage.first for passage in found]
    assert 0 < ends.count(-1) < 21
    for seed, passage in enumerate(found):
        assert passages(problem, n, [stream(seed)], 0.7, 30_000) == [passage]
        times = np.arange(passage.steps + 1) / n
        ((values, _),) = run_together([problem], times, n, [stream(seed)])
        far = np.flatnonzero(np.abs(values[OVERLAP]) >= 0.7)
        assert far.tolist() == ([] if passage.first < 0 else [passage.steps])
        assert passage.first in (-1, passage.steps)


def test_who_is_there_at_the_start_and_who_never_comes():
    there = rule(at_dimension(ica(start={"overlap": 0.6, "exact": True}), 20)).chain

    def end(level, most):
        passage = passages(there, 20, [stream(0)], level, most)[0]
        return passage.first, passage.last, passage.steps, passage.diverged

    assert end(0.5, 10) == (0, 0, 0, "")
    assert end(0.999999, 300) == (-1, -1, 300, "")
    assert end(0.999999, 0) == (-1, -1, 0, "")


def test_a_chain_that_diverges_says_so():
    bad = rule(at_dimension(ica(1.0, "laplace", nonlinearity="exp(400*x**2)"), 20)).chain
    for passage in passages(bad, 20, [stream(seed) for seed in range(3)], 0.999999999, 500):
        assert passage.first == -1
        assert passage.diverged.startswith(f"the update was not finite at step {passage.steps} ")


@pytest.mark.deep
def test_passage_times_have_the_law_of_plain_numpy_and_not_of_a_smaller_step():
    n, runs = 12, 600
    found = hdica.simulate(ica(1.0), times=[200.0 * n**2], n=n, seeds=runs, method="escape_times")
    assert found["first_seen"].values.all()
    times = found["first"].values
    assert stats.ks_2samp(times, plain_passages(1.0, n, runs)).pvalue > 1e-3
    assert stats.ks_2samp(times, plain_passages(0.4, n, runs)).pvalue < 1e-6


@pytest.mark.deep
@pytest.mark.parametrize(
    ("nu", "source", "n", "start", "exact", "runs"),
    [
        (2.0, "rademacher", 50, {"overlap": 0}, 1.11220, 400),
        (2.0, "rademacher", 50, ZERO, 1.14171, 400),
        (1.0, "uniform", 100, ZERO, 1.89384, 64),
    ],
)
def test_mean_escape_times_are_those_of_the_exact_equation(nu, source, n, start, exact, runs):
    """By collocation of the Markov chain in Q, independently computed, in n^3 steps."""
    system = ica(nu, source, start=start)
    found = hdica.simulate(system, times=[40.0 * n**2], n=n, seeds=runs, method="escape_times")
    times = found["first"].values
    assert found["first_seen"].values.all()
    error = times.std(ddof=1) / np.sqrt(runs)
    assert abs(times.mean() - exact) < 4 * error
    assert error < 0.13 * exact


def test_runs_that_end_before_they_escape_are_censored():
    found = hdica.simulate(ica(2.0), times=[100.0], n=50, seeds=8, method="escape_times")
    assert not found["first_seen"].values.any()
    assert np.all(found["first"].values == 100.0 * 50 / 50**3)


def test_escapes_refuse_batches_and_other_regularizers():
    for more, said in (
        ({"batch": 2}, "batch = 2 is not allowed for first passages"),
        ({"regularizer": "sign(x)"}, "regularizers 0 and beta*x, not for 'sign(x)'"),
    ):
        with pytest.raises(hdica.HdicaError) as refused:
            hdica.simulate(ica(**more), times=[1.0], n=20, seeds=1, method="escape_times")
        assert said in str(refused.value)


def test_hebbian_ica_has_the_same_nu_and_threshold():
    found = hdica.convert(ica(2.0, threshold=0.5), hdica.HebbianICA)
    assert (found.nu, found.mu, found.threshold) == (2.0, None, 0.5)
