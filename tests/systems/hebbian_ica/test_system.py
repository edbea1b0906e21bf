"""HebbianICA: what its fields mean, and one sentence for whatever is not allowed."""

import numpy as np
import pytest

from hdica import limit, simulate
from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream
from hdica.ingredients.sources import make_source
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica.rule import (
    run_chains,
    run_varied_chain,
    run_varied_vector,
    run_vector,
)
from hdica.systems.hebbian_ica.system import (
    HebbianICA,
    escape,
    in_unit,
    mu_of,
    plain_refusal,
    rule,
    signs,
    stability,
    start_overlap,
)
from hdica.systems.system import record_of


def stream(part):
    return point_stream({"test": "system"}, "hebbian", 10, 0, part)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, r"mu, eta, nu, nu2: none of them is not allowed \(exactly one of them"),
        ({"mu": 0.1, "nu": 1}, r"mu, eta, nu, nu2: mu and nu is not allowed"),
        ({"mu": 0.1, "eta": 0.1, "nu": 1}, r"mu, eta, nu, nu2: eta and mu and nu is not allowed"),
        ({"mu": 0.0}, r"mu = 0.0 is not allowed \(a step size is a finite number > 0\)"),
        ({"nu": -3}, r"nu = -3.0 is not allowed"),
        ({"eta": True}, r"eta: True is not allowed"),
        ({"mu": "t - 1"}, r"mu = 't - 1' is not allowed \(it is not positive at t = 0\)"),
        ({"nu": {"steps": {"times": [1], "values": [1]}}}, r"nu: steps .* is not allowed"),
        ({"mu": 0.1, "alpha": 2}, r"alpha = 2 is not allowed \(0 < alpha < 2\)"),
        ({"mu": 0.1, "alpha": 0}, r"alpha = 0 is not allowed"),
        ({"mu": 0.1, "alpha": "one"}, r"alpha = 'one' is not allowed"),
        ({"mu": 0.1, "alpha": float("nan")}, r"alpha = nan is not allowed"),
        ({"mu": 0.1, "threshold": 1}, r"threshold = 1 is not allowed \(0 < threshold < 1\)"),
        ({"mu": 0.1, "threshold": True}, r"threshold = True is not allowed"),
        ({"mu": 0.1, "projections": 0}, r"projections = 0 is not allowed"),
        ({"mu": 0.1, "sources": []}, r"sources = \[\] is not allowed"),
        ({"mu": 0.1, "sources": "uniform"}, r"sources = 'uniform' is not allowed"),
        ({"mu": 0.1, "sources": ["unifrom"]}, r"'unifrom' is not known"),
        ({"mu": 0.1, "nonlinearity": "0*x"}, r"nonlinearity = 0 is not allowed"),
        ({"mu": 0.1, "nonlinearity": "sqrt(x)"}, r"nonlinearity = 'sqrt\(x\)' is not allowed"),
        ({"mu": 0.1, "sigma": [1, -1]}, r"sigma = \[1, -1\] is not allowed \(one sign a proj.*: 1"),
        (
            {"mu": 0.1, "sigma": [0.5]},
            r"sigma = \[0.5\] is not allowed \(allowed: a list of one \+1 or -1",
        ),
        ({"mu": 0.1, "sigma": []}, r"sigma = \[\] is not allowed"),
        ({"mu": 0.1, "sigma": -1}, r"sigma = -1 is not allowed"),
        ({"mu": 0.1, "sigma": "best"}, r"sigma = 'best' is not allowed"),
        ({"mu": 0.1, "sources": ["gaussian"]}, r"sigma = 'stability' is not allowed .*no sign"),
        (
            {"mu": 0.1, "sigma": "escape", "nonlinearity": "x**2"},
            r"sigma = 'escape' is not allowed .*has no sign",
        ),
        ({"mu": 0.1, "start": "near"}, r"start = 'near' is not allowed \(allowed: \{overlap: R0\}"),
        ({"mu": 0.1, "start": {"random": False}}, r"start = \{'random': False\} is not allowed"),
        ({"mu": 0.1, "start": {"overlap": "a"}}, r"start: overlap = 'a' is not allowed"),
        ({"mu": 0.1, "start": {"overlap": True}}, r"start: overlap = True is not allowed"),
        ({"mu": 0.1, "start": {"overlap": [[0.1], [0.2, 0.3]]}}, r"equally long rows"),
        ({"mu": 0.1, "start": {"overlap": [[float("inf")]]}}, r"start: overlap = .* not allowed"),
        ({"mu": 0.1, "start": {"overlap": []}}, r"start: overlap = \[\] is not allowed"),
        (
            {"mu": 0.1, "start": {"overlap": [[0.5], [0.1]]}},
            r"start: overlap of shape 2 x 1 is not allowed \(1 x 1: a row a projection",
        ),
        (
            {"mu": 0.1, "start": {"overlap": 1.01}},
            r"start: overlap = \[\[1.01\]\] is not allowed \(I - R0 R0' must not have a negative",
        ),
        (
            {
                "mu": 0.1,
                "sources": ["uniform"],
                "projections": 2,
                "start": {"overlap": [[0.8], [0.7]]},
            },
            r"I - R0 R0' must not have a negative eigenvalue; the largest singular value",
        ),
        ({"mu": 0.1, "tau": 1}, r"tau is not a known key"),
    ],
    ids=str,
)
def test_what_is_not_allowed_is_said_in_one_sentence(given, sentence):
    with pytest.raises(HdicaError, match=sentence) as caught:
        HebbianICA(**given)
    assert str(caught.value).startswith("HebbianICA: ")
    assert "\n" not in str(caught.value)


def test_step_sizes_in_three_units():
    n, t = 50, np.array([0.0, 1.0, 9.0])
    for given in ({"mu": "2/(1 + t)"}, {"eta": "0.04/(1 + t)"}, {"nu": "100/(1 + t)"}):
        system = HebbianICA(**given)
        assert in_unit("eta", system, n).value(t) == pytest.approx(0.04 / (1 + t))
        assert mu_of(system, n).value(t) == pytest.approx(2 / (1 + t))
        assert in_unit("nu", system, n).value(t) == pytest.approx(100 / (1 + t))
        assert in_unit("eta", system, n).constant is None
    fixed = in_unit("eta", HebbianICA(nu=4), 100)
    assert fixed.constant == pytest.approx(4e-4)
    assert fixed.value(t).tolist() == [fixed.constant] * 3
    steps = mu_of(HebbianICA(nu={"steps": {"times": [2.0], "values": [1.0, 3.0]}}), 10)
    assert steps.value(np.array([1.9, 2.1])) == pytest.approx([0.1, 0.3])
    assert steps.breaks == (2.0,)


def test_the_limit_needs_the_unit_that_stays_finite():
    assert mu_of(HebbianICA(mu=0.3)).constant == 0.3
    assert in_unit("nu", HebbianICA(nu=0.3)).constant == 0.3
    with pytest.raises(HdicaError, match="^nu is not allowed where n -> infinity .give mu"):
        mu_of(HebbianICA(nu=0.3))
    with pytest.raises(HdicaError, match="^mu is not allowed where n -> infinity .give nu"):
        in_unit("nu", HebbianICA(mu=0.3))


def test_signs_of_14_follow_the_nearest_source():
    laws = ["uniform", "laplace"]
    near = {"overlap": [[0.1, -0.5], [0.6, 0.2]]}
    cubic = HebbianICA(mu=0.1, sources=laws, projections=2, start=near)
    assert signs(cubic).tolist() == [1.0, -1.0]
    tanh = HebbianICA(mu=0.1, sources=laws, projections=2, start=near, nonlinearity="tanh(x)")
    assert signs(tanh).tolist() == [-1.0, 1.0]
    for start in ("random", "zero"):
        assert signs(HebbianICA(mu=0.1, sources=laws, projections=3, start=start)).tolist() == [
            -1.0,
            1.0,
            -1.0,
        ]


@pytest.mark.parametrize(
    ("source", "phi", "at_source", "at_zero"),
    [
        # E s^4 - 3 and 6 kappa_4; the numbers of tanh by other code, to 1e-9.
        ("uniform", "x**3", -1.2, -7.2),
        ("laplace", "x**3", 3.0, 18.0),
        ("rademacher", "x**3", -2.0, -12.0),
        ("uniform", "tanh(x)", 0.12608310685920265, 1.2 * 0.36359537628095934),
        ("laplace", "tanh(x)", -0.14776210382958438, -3 * 0.36359537628095934),
        ("rademacher", "tanh(x)", 0.3416198143417387, 2 * 0.36359537628095934),
    ],
)
def test_averages_that_decide_on_signs(source, phi, at_source, at_zero):
    f = formula(HebbianICA(mu=1, nonlinearity=phi), "nonlinearity")
    assert stability(f, make_source(source)) == pytest.approx(at_source, abs=1e-8)
    assert escape(f, make_source(source)) == pytest.approx(at_zero, abs=1e-8)


@pytest.mark.parametrize(
    ("p", "conflict"), [(0.32, False), (0.36, True), (0.47, True), (0.48, False)]
)
def test_14_and_23_conflict_for_tanh_and_a_source_that_is_mostly_zero(p, conflict):
    """s = 0 with probability 1 - p, else +-p^(-1/2): conflict for 1/3 < p < 0.47634."""
    law = {"discrete": {"values": [-1, 0, 1], "weights": [p / 2, 1 - p, p / 2]}}
    one, other = (
        signs(HebbianICA(mu=1, sources=[law], nonlinearity="tanh(x)", sigma=sigma))
        for sigma in ("stability", "escape")
    )
    assert (one[0] != other[0]) == conflict


def test_signs_of_a_function_with_a_jump():
    """phi = sign: <|s|> - 2 p_s(0), which is sqrt(3)/2 - 1/sqrt(3) for the uniform source."""
    f = formula(HebbianICA(mu=1, nonlinearity="sign(x)"), "nonlinearity")
    exact = np.sqrt(3) / 2 - 1 / np.sqrt(3)
    assert stability(f, make_source("uniform")) == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(
    "given",
    [
        {"sigma": "adaptive"},
        {"sigma": {"steps": {"times": [1.0], "values": [[-1], [1]]}}},
        {"batch": 2},
        {"batch": "full"},
        {"motion": {"drift": 0.1}},
    ],
    ids=str,
)
def test_what_the_theory_of_13_does_not_cover_is_refused_by_its_methods(given):
    for unit, values in METHODS.items():
        system = HebbianICA(**{unit: 0.1}, start="random", **given)
        for name in values:
            why = {m.name: m for m in record_of(system).methods}[name].scope.refuses(system)
            batched = name == "fixed_points"
            if batched and given == {"batch": 2}:
                assert why == ""
                continue
            samples = "single samples" + batched * " or batches of a given number"
            assert f"needs fixed signs, {samples} and sources that stay" in why, name
            assert str(next(iter(given.values()))) in why
    assert plain_refusal(HebbianICA(mu=0.1), "it") == ""


METHODS = {
    "mu": ["clt", "fixed_points", "critical", "annealed", "asymptotics"],
    "nu": ["escape", "escape_diffusion", "escape_times", "trapping", "diffusion", "fokker_planck"],
}


def test_adaptive_signs_are_told_by_both_simulations():
    system = HebbianICA(mu=0.1, sigma="adaptive", nonlinearity="tanh(x)")
    with pytest.raises(HdicaError, match="sigma = 'adaptive' is not allowed here"):
        signs(system)
    for run in (run_vector, run_varied_vector, run_varied_chain):
        values, _ = run(rule(system), np.array([0.0, 1.0]), 10, stream)
        assert values["sigma"][0].tolist() == [0.0]
        assert abs(values["sigma"][1, 0]) == 1.0


def test_all_samples_at_once_are_for_the_limit():
    system = HebbianICA(mu=0.1, batch="full", start={"overlap": 0.5})
    for method in ("vector", "chain"):
        with pytest.raises(HdicaError, match="batch = 'full' is not allowed at finite n"):
            simulate(system, n=10, times=[1.0], seeds=1, method=method)
    assert limit(system, times=[0.0, 1.0])["R"].values[1, 0, 0] > 0.5


def test_starts():
    assert start_overlap(HebbianICA(mu=1)) is None
    assert start_overlap(HebbianICA(mu=1, start={"random": True})) is None
    assert HebbianICA(mu=1, start={"random": True}) == HebbianICA(mu=1, start="random")
    assert start_overlap(HebbianICA(mu=1, start="zero", projections=2)).tolist() == [[0.0], [0.0]]
    system = HebbianICA(mu=1, start={"overlap": -0.5})
    assert start_overlap(system).tolist() == [[-0.5]]
    given = (np.array([0.0]), 10)
    runs = run_vector(rule(system), *given, stream), *run_chains([rule(system)], *given, [stream])
    for values, _ in runs:
        assert values["R"].tolist() == [[[-0.5]]]
        assert values["Q"] == pytest.approx(np.ones((1, 1, 1)), abs=1e-14)


def test_both_sides_of_the_trap_follow_the_limit():
    """Uniform, x^3, mu = 0.05: R = 0.7 is drawn up to 0.7255 at t = 40, R = 0.5 down to 0.348."""
    for first, last in ((0.7, 0.7254766651), (0.5, 0.3481697168)):
        system = HebbianICA(mu=0.05, start={"overlap": first})
        streams = [lambda part, k=k: point_stream({}, "hebbian", 4000, k, part) for k in range(24)]
        chains = [run_chains([rule(system)], np.array([40.0]), 4000, [one])[0] for one in streams]
        found = [values["R"][0, 0, 0] for values, _ in chains]
        error = np.std(found, ddof=1) / np.sqrt(24)
        assert error < 0.005
        assert abs(np.mean(found) - last) < 4 * error


def test_dims_name_projections_and_sources():
    system = HebbianICA(mu=1, sources=["uniform"] * 3, projections=2)
    assert system.dims() == {
        "projection": (0.0, 1.0),
        "other": (0.0, 1.0),
        "source": (0.0, 1.0, 2.0),
        "row": (0.0, 1.0),
        "column": (0.0, 1.0, 2.0),
    }
