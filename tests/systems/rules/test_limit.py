"""The limit of any rule: numbers of published rules, closed forms, and runs at large n."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.ingredients.switches import vectorised
from hdica.ingredients.update import values_of
from hdica.limits.rules.averages import FIRST, Averages, Sample
from hdica.limits.rules.equations import QUANTILE
from hdica.limits.rules.points import quasi_random
from hdica.systems.rules.system import limit_of, start_of, update_of
from tests.systems.rules.rules import PUBLISHED, committee, system

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/any_rule.json").read_text())
CASES = [
    pytest.param(group, name, id=f"{group}-{name}")
    for group, cases in GOLDEN.items()
    if group != "about"
    for name in cases
]


def written(group: str, given: dict[str, Any]) -> Any:
    """A golden case as a user writes it."""
    if group in ("saad_solla", "several_ica"):
        start = {"overlap": given["R0"], "products": given["P0"]}
    else:
        start = {"overlap": given["Q0"], "norm": given["rho0"] ** 0.5}
    tau = given.get("tau", given.get("eta", 0.1))
    fields: dict[str, Any] = {"start": start, "constants": {"tau": tau}}
    if group == "ino_pca":
        fields |= {"update": "tau*u/norm", "entrywise": "-tau*x", "spike": given["omega"]}
    elif group == "lms":
        fields |= {"update": "tau*(label - u)", "label": "v + s*z", "noise": {"z": "gaussian"}}
        fields["constants"]["s"] = given["noise"]
    elif group == "perceptron":
        fields["update"] = "tau*sign(v)*(u*v < 0)"
    elif group == "phase_retrieval":
        fields["update"] = "tau*(v**2 - u**2)*u"
    elif group == "saad_solla":
        fields["update"] = committee(given["K"], given["M"])
        fields["source"] = ["gaussian"] * given["M"]
    else:
        fields |= {"update": "-tau*u**3", "normalise": given["orthonormalise"]}
        fields["source"] = given["sources"]
    return hdica.OnlineRule(**fields)


@pytest.mark.parametrize(("group", "name"), CASES)
def test_it_has_the_golden_numbers(group: str, name: str) -> None:
    case = GOLDEN[group][name]
    path = hdica.limit(written(group, case["parameters"]), times=case["times"])
    overlaps = path["Q" if "Q" in path else "R"]
    for variable, key in ((overlaps, "Q"), (path["P"], "rho")):
        error = path[f"{variable.name}_error"].values
        gap = np.abs(variable.values - np.array(case[key]))
        assert gap.max() < case["tolerance"]
        # The golden numbers have their own rounding.
        assert np.all(gap <= 3 * error + 2e-9)


@pytest.mark.parametrize("group", ["ino_pca"])
def test_ino_pca_ends_where_its_paper_says(group: str) -> None:
    for case in GOLDEN[group].values():
        given, steady = case["parameters"], case["steady"]
        path = hdica.limit(written(group, given), times=[0, 400])
        assert path.P.values[-1] == pytest.approx(steady["norm"] ** 2, abs=1e-5)
        assert path.cosine.values[-1] ** 2 == pytest.approx(steady["cos2"], abs=1e-5)


def test_the_perceptron_has_its_closed_form() -> None:
    """<F v>, <F u> and <F^2> of Kinzel, in a case where product rules are off by 1 %."""
    sample = limit_of(system("perceptron")).sample
    for q, p in ((0.1, 1.0), (0.6, 0.7), (1.9, 4.0), (-0.5, 1.0)):
        mean = Averages(sample, 4).at(np.array([[q]]), np.array([[p]]), 0.0)
        cosine, norm = q / p**0.5, p**0.5
        along = (1 - cosine) / np.sqrt(2 * np.pi)
        assert mean.v[0, 0] == pytest.approx(along, abs=1e-10)
        assert mean.u[0, 0] == pytest.approx(-norm * along, abs=1e-10)
        assert mean.square[0, 0] == pytest.approx(np.arccos(cosine) / np.pi, abs=1e-10)


def test_orthonormal_estimates_stay_so() -> None:
    for name in ("symmetric", "gram-schmidt"):
        path = hdica.limit(system(name), times=[0, 20])
        np.testing.assert_allclose(path.P.values[-1], np.eye(2), atol=1e-9)


def test_one_cubic_estimate_is_online_ica() -> None:
    rule = hdica.OnlineRule(
        update="-tau*u**3",
        normalise="norm",
        source="uniform",
        start={"overlap": 0.4},
        constants={"tau": 0.05},
    )
    times = [0, 2, 20]
    other = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.4})
    np.testing.assert_allclose(
        hdica.limit(rule, times=times).Q, hdica.limit(other, times=times, method="ode").Q, atol=1e-9
    )


@pytest.mark.deep
@pytest.mark.parametrize("name", PUBLISHED)
def test_runs_tend_to_the_limit(name: str) -> None:
    rule, times, runs = system(name), [0, 1, 4], 512
    path = hdica.limit(rule, times=times)
    variable = "Q" if "Q" in path else "R"
    means = {}
    for n in (400, 1600):
        seen = hdica.simulate(rule, n=n, times=times, seeds=runs, method="chain")[variable]
        means[n] = seen.mean("seed"), seen.std("seed") / runs**0.5
    # A bias of order 1/n is taken out; the control is off by 2 % and is seen.
    best = (4 * means[1600][0] - means[400][0]) / 3
    error = np.sqrt(16 * means[1600][1] ** 2 + means[400][1] ** 2) / 3
    late = {"time": slice(1, None)}
    z = ((best - path[variable]) / error).isel(late)
    assert np.abs(z.values).max() < 4.5


@pytest.mark.parametrize(
    ("update", "source"),
    [
        ("tau*tanh(v - u)", "laplace"),
        ("tau*clip(v - u, -1, 1)", "uniform"),
        ("tau*sign(v - u)", "rademacher"),
        ("tau*(u*v < 0)*v", {"student": 5}),
        ("tau*where(u**2 > v**2 + 1, u, v)", "gaussian"),
        ("tau*exp(-u**2)*v", {"mixture": {"weights": [1, 1], "means": [-1, 1], "sds": [0.3, 1]}}),
    ],
)
def test_averages_are_those_of_samples(update: str, source: Any) -> None:
    """Against a million samples, with their own error, and a control off by 5 %."""
    rule = hdica.OnlineRule(update=update, source=source, constants={"tau": 1.0})
    sample, rng = limit_of(rule).sample, np.random.default_rng(5)
    r, p = np.array([[0.5]]), np.array([[0.8]])
    size = 400_000
    v = sample.sources[0].sample(rng, size)
    u = 0.5 * v + np.sqrt(0.55) * rng.standard_normal(size)
    expression, symbols = update_of(rule).written_out[0], update_of(rule).random
    force = vectorised(expression, *symbols)(u, v)
    mean = Averages(sample, 3).at(r, p, 0.0)
    for found, values in ((mean.v, force * v), (mean.u, force * u), (mean.square, force**2)):
        error = values.std() / size**0.5
        assert abs(found[0, 0] - values.mean()) < 5 * error + 1e-9
        assert abs(1.05 * found[0, 0] - values.mean()) > 5 * error or abs(found[0, 0]) < 100 * error


def test_quasi_random_points_have_honest_errors() -> None:
    """Five variables by replicates against the closed form, which such a rule has too."""
    case = GOLDEN["saad_solla"]["K=3 M=2 eta=0.3"]
    rule = written("saad_solla", case["parameters"])
    sample, (r, p) = limit_of(rule).sample, start_of(rule)
    assert isinstance(sample, Sample)
    exact = Averages(sample, 0).at(r, p, 0.0)
    runs = [
        Averages(sample, 0).over(quasi_random(sample.variables, replicate), r, p, 0.0)
        for replicate in range(8)
    ]
    for place in range(3):
        values = np.array([run[place] for run in runs])
        error = QUANTILE * values.std(axis=0, ddof=1) / 8**0.5
        gap = np.abs(values.mean(axis=0) - exact[place])
        assert np.mean(gap <= error) >= 0.8
        assert gap.max() < 3e-4


FEWER = [
    ("clip(label - u, -1, 1)", "gaussian", "gaussian"),
    ("(label > 0) - sigmoid(u)", "gaussian", "gaussian"),
    ("tanh(label - u/norm)", "gaussian", "gaussian"),
    ("sign(label)*(u*label < 0)", "gaussian", "gaussian"),
    ("(label - u)*where(abs(label - u) < 1, 1, 0.2)", "rademacher", "gaussian"),
    ("(label - u)*where(abs(label - u) < 1, 1, 0.2)", "rademacher", "laplace"),
]


@pytest.mark.parametrize(("update", "source", "noise"), FEWER)
def test_averages_over_few_or_discrete_variables_are_those_of_samples(update, source, noise):
    """Of three variables F sees one or two combinations, or one has two values."""
    rule = hdica.OnlineRule(
        update=update, label="v + 0.5*z", noise={"z": noise}, source=source,
        start={"overlap": 0.6, "norm": 1.2},
    )  # fmt: skip
    sample, (r, p) = limit_of(rule).sample, start_of(rule)
    first, last = (Averages(sample, level).at(r, p, 0.0) for level in (FIRST + 3, FIRST + 4))
    for one, other in zip(first, last, strict=True):
        assert np.abs(one - other).max() < 1e-6
    assert sample.size(FIRST + 2) < 2e5
    rng = np.random.default_rng(20)
    v, z = (make_source(law).sample(rng, 10**6) for law in (source, noise))
    u = r[0, 0] * v + np.sqrt(p[0, 0] - r[0, 0] ** 2) * rng.standard_normal(v.size)
    force = values_of(sample.update, np.stack([u, v, z, np.full(v.size, 1.2), 0 * v]))[0]
    for value, draws in zip(last, (force * v, force * u, force * force), strict=True):
        assert abs(float(value[0, 0]) - draws.mean()) < 4 * draws.std() / 1e3


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"update": "exp(u**2/4)"}, "the mean of F\\^2 over the normal part is infinite"),
        (
            {"update": "u**3", "source": {"student": 5}},
            "over the source student\\(5\\) is infinite",
        ),
        ({"update": "u", "entrywise": "sign(x)"}, "R and P alone do not close the limit"),
        ({"update": "v/u"}, "infinite, because u is a denominator of the update"),
        ({"update": "v/sqrt(abs(u))"}, "because u is a denominator"),
        ({"update": "where(u < 0, 1/u, 0)"}, "because u is a denominator"),
        ({"update": "exp(1/abs(u))"}, "because u is a denominator"),
        ({"update": "1/(1 - cos(u))"}, "because 1 - cos\\(u\\) is a denominator"),
        ({"update": "1/(u**4 - 2*u**2 + 1)**0.3"}, "is a denominator"),
        ({"update": "sign(v)*v**2", "source": {"student": 4}}, "student\\(4\\) is infinite"),
        ({"update": "exp(abs(v))*u", "source": "laplace"}, "source laplace is infinite"),
        ({"update": "1/(exp(u - v) - 1)"}, "because exp\\(u - v\\) - 1 is a denominator"),
        ({"update": "tanh(u)/v", "source": "uniform"}, "because v is a denominator"),
        (
            {"update": "u/(label - u)", "label": "v + z", "noise": {"z": "gaussian"}},
            "because -u \\+ v \\+ z is a denominator",
        ),
    ],
)
def test_a_limit_that_does_not_exist_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HdicaError, match=sentence):
        hdica.limit(hdica.OnlineRule(**fields), times=[0, 1], method="ode")


@pytest.mark.parametrize(
    "fields",
    [
        {"update": "tanh(u)/u*v"},
        {"update": "v/abs(u)**0.25"},
        {"update": "v/(1 + u**2)"},
        {"update": "(label - u)/norm", "label": "v"},
        {"update": "tanh(u)/v", "source": "rademacher"},
        {"update": "u*tanh(v)/v"},
        {"update": "tanh(u)/u", "start": {"overlap": 0.0, "norm": 1.0}},
        {"update": "0.1*exp(u**2/5)"},
        {"update": "tanh(u)*v", "source": {"student": 2.5}},
        {"update": "0.1*sign(v)*v**2", "source": {"student": 5}},
        {"update": "tanh(u)/v", "source": {"discrete": {"values": [-2, 1], "weights": [1, 2]}}},
    ],
)
def test_an_update_is_allowed_where_the_mean_of_the_square_is_finite(fields) -> None:
    found = hdica.limit(hdica.OnlineRule(**fields), times=[0, 0.1], method="ode")
    assert np.isfinite(found.Q.values).all()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"update": "x*u"}, "x is an entry of the estimate, on which this formula does not depend"),
        ({"update": "q*u"}, "'q' is neither a variable nor a constant"),
        ({"update": "u*(v + z)"}, "update: .* or a law in noise, {z: gaussian}"),
        ({"update": "u*label", "label": "v + z"}, "^OnlineRule: label: .* {z: gaussian}"),
        ({"update": "u*label"}, "no label is given, as a formula in v and the noise"),
        ({"update": "u", "noise": {"u": "gaussian"}}, "the name 'u' is not allowed"),
        ({"update": "u", "constants": {"norm": 1}}, "the name 'norm' is not allowed"),
        ({"update": "u", "start": {"overlap": 2}}, "no estimates have such overlaps"),
        ({"update": "u", "normalise": "twice"}, "normalise = 'twice' is not allowed"),
        ({"update": "u", "normalise": "norm", "start": {"overlap": 0, "norm": 2}}, "every norm 1"),
        ({"update": "u", "spike": -1.0}, "spike = -1.0 is not allowed"),
        ({"update": [], "start": {"overlap": [0.1]}}, "update = \\[\\] is not allowed"),
        ({"update": ["u1", "u2"], "start": {"overlap": 0.1}}, "2 x 1 finite numbers"),
        ({"update": "u", "source": {"sum": []}}, "sum = \\[\\] is not allowed"),
    ],
)
def test_what_is_no_rule_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HdicaError, match=sentence):
        hdica.OnlineRule(**fields)


def test_components_of_a_decoupled_start_are_learned_up_to_the_step_size_of_each_alone() -> None:
    laws = ["rademacher", "uniform", {"beta": 3}]
    critical = [
        float(hdica.critical(hdica.OnlineICA(tau=0.1, source=law), "tau").value[0]) for law in laws
    ]
    assert critical == pytest.approx([0.1621792606, 0.0591301670, 0.0268413612], rel=1e-8)
    three = hdica.OnlineRule(
        update="-tau*u**3", normalise="gram-schmidt", source=laws, constants={"tau": 0.1},
        start={"overlap": (0.9 * np.eye(3)).tolist()},
    )  # fmt: skip
    steps = [0.015, 0.04, 0.1, 0.2]
    found = hdica.limit(three, times=[0, 400], over={"tau": steps}).learned
    expected = [sum(one > tau for one in critical) for tau in steps]
    assert found.isel(time=0).values.tolist() == [3, 3, 3, 3]
    assert found.isel(time=1).values.tolist() == expected == [3, 2, 1, 0]
    runs = hdica.simulate(three, n=400, times=[0, 400], seeds=2, over={"tau": steps}).learned
    assert (expected == runs.isel(time=1).values.T).all()


def test_a_list_makes_a_rule_of_several() -> None:
    one = hdica.OnlineRule(update="u", start={"overlap": 0.1})
    several = hdica.OnlineRule(
        update="u", source=["uniform", "uniform"], start={"overlap": [0, 0.1]}
    )
    assert type(one).__name__ == "OnlineRule"
    assert type(several).__name__ == "SeveralRule"
    assert several.dims() == {"estimate": (1,), "other": (1,), "feature": (1, 2)}
