"""Densities of rules that keep the norm: other solvers, simulation, and what there is none of."""

from __future__ import annotations

import numpy as np
import pytest

import hdica
from hdica.limits.mean_field.density import march

TIMES = [0.0, 0.5, 2.0, 6.0]
SHRUNK = {
    "update": "tau*tanh(v - u)",
    "entrywise": "-0.3*tau*sign(x)",
    "normalise": "norm",
    "prior": {"atoms": [0, 2], "weights": [0.75, 0.25]},
    "start": {"overlap": 0.5},
    "constants": {"tau": 0.6},
}


@pytest.mark.parametrize(("f", "source"), [("u**3", "uniform"), ("tanh(u)", "laplace")])
def test_online_ica_has_one_density(f: str, source: str) -> None:
    laws = {"source": source, "prior": {"sparse": 0.3}}
    ica = hdica.OnlineICA(
        nonlinearity=f.replace("u", "x"), tau=0.1, regularizer="0.2*sign(x)",
        start={"overlap": 0.4}, **laws,
    )  # fmt: skip
    rule = hdica.OnlineRule(
        update=f"-tau*{f}", entrywise="-tau*0.2*sign(x)", normalise="norm",
        start={"overlap": 0.4}, constants={"tau": 0.1}, **laws,
    )  # fmt: skip
    own, other = (hdica.limit(one, times=TIMES, method="pde") for one in (rule, ica))
    # The step size is a factor of phi in one and of the averages in the other.
    for name in ("Q", "curvature", "pull", "convex"):
        assert own[name].values == pytest.approx(other[name].values, abs=5e-7), name
    assert own.R.values == pytest.approx(0.1 * other.R.values, abs=1e-6)
    assert own.Q_error.values.max() < 5e-7
    assert np.abs(own.Q_control - own.Q).max() > 5e-5


CLOSED = {
    "perceptron": {"update": "tau*sign(v)*(u*v < 0)", "constants": {"tau": 0.7}},
    "spiked": {"update": "tau*u/norm", "spike": 2.0, "entrywise": "-0.3*x",
               "constants": {"tau": 0.3}},
    "noise": {"update": "tau*(v + s*z - u)", "noise": {"z": "laplace"},
              "constants": {"tau": 0.4, "s": 0.5}},
}  # fmt: skip


@pytest.mark.parametrize("normalise", ["norm", "none"])
@pytest.mark.parametrize("name", CLOSED)
def test_the_density_has_the_overlap_of_the_closed_limit(name: str, normalise: str) -> None:
    # From 0.3 to more than 1 a range of P is widened.
    start = {"overlap": 0.3} if normalise == "norm" else {"overlap": 0.1, "norm": 0.3}
    rule = hdica.OnlineRule(normalise=normalise, start=start, **CLOSED[name])
    density, closed = (hdica.limit(rule, times=TIMES, method=name) for name in ("pde", "ode"))
    for each in ("Q", "P"):
        gap = np.abs(density[each] - closed[each])
        assert np.all(gap <= density[f"{each}_error"] + closed[f"{each}_error"] + 1e-12), each
        assert gap.max() < 1e-6, each
    assert np.abs(density.Q_control - density.Q).max() > 1e-4
    assert density.cosine.values == pytest.approx(closed.cosine.values, abs=1e-6)


REGRESSION = {
    "update": "tau*(label - u)",
    "label": "v + s*z",
    "noise": {"z": "gaussian"},
    "entrywise": "-tau*beta*sign(x)",
    "prior": {"atoms": [0, 2], "weights": [0.75, 0.25]},
    "start": {"overlap": 0.0, "norm": 0.5},
    "constants": {"tau": 0.5, "s": 0.3, "beta": 0.4},
}


@pytest.mark.parametrize(
    ("fields", "psi", "methods"),
    [
        (SHRUNK, "0.3*tau*sign(x)", (("vector", 1000, 24), ("particles", 4000, 6))),
        (REGRESSION, "-tau*0.3*sign(x)", (("vector", 1000, 24), ("particles", 4000, 6))),
    ],
    ids=["norm", "free"],
)
def test_simulation_tends_to_the_density(fields, psi: str, methods) -> None:
    """All coordinates and particles of a rule against its limit, and against a wrong psi."""
    rule, times = hdica.OnlineRule(**fields), [1.0, 3.0]
    limit = hdica.limit(rule, times=times, method="pde")
    off = hdica.limit(rule.model_copy(update={"entrywise": psi}), times=times, method="pde")
    for name, n, runs in methods:
        many = hdica.simulate(rule, n=n, times=times, seeds=runs, method=name)
        q = many.Q.transpose("seed", "time").values
        error = q.std(axis=0, ddof=1) / np.sqrt(runs)
        bias = 2.0 / n if name == "vector" else 4e-4
        assert np.all(np.abs(q.mean(axis=0) - limit.Q.values) < 4 * error + bias)
        assert np.any(np.abs(q.mean(axis=0) - off.Q.values) > 8 * error + bias)


def test_entries_move_with_the_limit() -> None:
    rule = hdica.OnlineRule(**SHRUNK)
    entries = hdica.simulate(rule, n=20_000, times=[1.0, 3.0], method="entries")
    limit = hdica.limit(rule, times=[1.0, 3.0], method="pde")
    assert entries.Q.values.ravel() == pytest.approx(limit.Q.values, abs=0.02)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"update": "tau*tanh(v - u)/(1 + t)"}, "is not allowed for densities (one without t)"),
        ({"start": {"overlap": 1.0}}, "cannot resolve"),
        ({"update": "tau*(v + v**3*z - u)", "noise": {"z": {"student": 3}}}, "does not exist"),
    ],
)
def test_what_has_no_density_is_refused(fields, why: str) -> None:
    rule = hdica.OnlineRule(**{**SHRUNK, **fields})
    with pytest.raises(hdica.HdicaError) as raised:
        hdica.limit(rule, times=TIMES, method="pde")
    assert why in str(raised.value)


def test_a_norm_that_diverges_is_followed_as_far_as_cells_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(march, "BUDGET", 1e6)
    fields = {**SHRUNK, "normalise": "none", "update": "30*tau*(v - u)"}
    limit = hdica.limit(hdica.OnlineRule(**fields), times=TIMES, method="pde")
    assert "not followed beyond t = 0.0227" in limit.attrs["note"]
    assert np.isnan(limit.P.values[1:]).all()


PAIR = {
    "update": "-tau*u**3",
    "source": ["uniform", "rademacher"],
    "start": {"overlap": [[0.6, 0.3], [0.2, 0.5]]},
    "constants": {"tau": 0.04},
}


@pytest.mark.parametrize("normalise", ["symmetric", "gram-schmidt", "norm", "none"])
def test_particles_of_two_estimates_follow_the_closed_limit(normalise: str) -> None:
    rule = hdica.OnlineRule(**PAIR, entrywise="-0.02*x", normalise=normalise)
    closed = hdica.limit(rule, times=[5, 20])
    runs = hdica.simulate(rule, n=2000, times=[5, 20], method="particles")
    for name in ("R", "P"):
        assert np.abs(runs[name] - closed[name]).max() < 3e-4, name
    assert np.abs(closed.R_control - closed.R).max() > 1e-3


def test_particles_with_an_update_in_t_follow_the_closed_limit() -> None:
    update = "where(t < 1, 1, 0.3)*tau*(v - u)/(1 + t)"
    rule = hdica.OnlineRule(update=update, entrywise="-0.1*x", constants={"tau": 0.5})
    closed = hdica.limit(rule, times=[1, 3])
    runs = hdica.simulate(rule, n=2000, times=[1, 3], method="particles")
    assert runs.Q.values.ravel() == pytest.approx(closed.Q.values, abs=3e-4)


@pytest.mark.deep
def test_particles_of_two_estimates_go_where_all_coordinates_go() -> None:
    rule = hdica.OnlineRule(**PAIR, entrywise="-0.08*sign(x)")
    wrong = rule.model_copy(update={"entrywise": "-0.04*sign(x)"})
    mean = [
        hdica.simulate(one, n=2000, times=[2, 4], method="particles").R.mean("seed")
        for one in (rule, wrong)
    ]
    runs = hdica.simulate(rule, n=400, times=[2, 4], seeds=48, method="vector", timeout=None).R
    error = 4 * runs.std("seed", ddof=1) / np.sqrt(48) + 2 / 400
    assert bool((np.abs(runs.mean("seed") - mean[0]) < error).all())
    assert bool((np.abs(runs.mean("seed") - mean[1]) > error).any())


@pytest.mark.parametrize("fields", [SHRUNK, REGRESSION], ids=["norm", "free"])
def test_a_finer_step_of_particles_changes_little(fields) -> None:
    from hdica.finite.rules.rule import placed
    from hdica.limits.rules.particles import STEP, run
    from hdica.systems.rules.system import limit_of, rule_of

    system = hdica.OnlineRule(**fields)
    rule, times = rule_of(system), np.array([1.0, 3.0])
    begin = placed(rule, 4000, np.random.default_rng(0))
    ends = []
    for step in (STEP, STEP / 2):
        each = [
            run(limit_of(system), rule.psi, *begin, times, np.random.default_rng(k), step)[0]
            for k in range(4)
        ]
        ends.append(np.mean(each, axis=0))
    assert np.abs(ends[0] - ends[1]).max() < 1.5e-3


KEPT = {
    "snapshots": [2.0, 6.0],
    "x": np.linspace(-3, 3, 9).tolist(),
    "thresholds": [0.5],
    "functionals": {"fourth": "x**4"},
}


def distances(found, limit) -> np.ndarray:
    """What runs have beyond the limit, in standard errors of their mean."""
    gaps = []
    for name in ("cdf", "tpr", "fpr", "misclassified", "fourth"):
        each = found[name].isel(time=slice(1, None)) if name == "fourth" else found[name]
        other = limit[name].isel(time=slice(1, None)) if name == "fourth" else limit[name]
        error = each.std("seed", ddof=1) / each.sizes["seed"] ** 0.5
        gaps.append(((each.mean("seed") - other) / error.where(error > 1e-4)).values.ravel())
    return np.concatenate(gaps)


def test_entries_of_all_coordinates_have_the_density_of_the_limit() -> None:
    rule = hdica.OnlineRule(**SHRUNK)
    found = hdica.simulate(rule, n=2000, times=TIMES, seeds=24, method="vector", **KEPT)
    assert found.density.dims == ("seed", "snapshot", "feature", "x")
    assert np.isfinite(found.cdf).all()
    right, wrong = (
        distances(found, hdica.limit(one, times=TIMES, method="pde", **KEPT))
        for one in (rule, rule.model_copy(update={"entrywise": "-0.45*tau*sign(x)"}))
    )
    known = np.isfinite(right)
    assert known.sum() > 15
    # Runs have n^-1 beyond the limit, and their mean is known to n^-1/2 over 5.
    assert np.abs(right[known]).max() < 5
    assert np.abs(wrong[known]).max() > 15
    # The same runs without what is kept.
    plain = hdica.simulate(rule, n=2000, times=TIMES, seeds=2, method="vector")
    assert np.array_equal(plain.Q, found.Q[:2])


def test_what_several_estimates_have_no_groups_for_is_refused() -> None:
    committee = hdica.OnlineRule(
        update=["tau*(v1 + v2 - u1 - u2)"] * 2, source=["gaussian", "gaussian"],
        start={"overlap": [[0.1, 0.0], [0.0, 0.1]]}, constants={"tau": 0.1},
    )  # fmt: skip
    with pytest.raises(hdica.HdicaError, match="method"):
        hdica.simulate(committee, n=50, times=TIMES, seeds=1, method="vector", **KEPT)
