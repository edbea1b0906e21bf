"""A function of Python in a system, and the formula that says the same."""

import json
import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.finite.projected.chain import run_together
from hdica.finite.random.streams import streams_of
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.functions import word_for
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import averages
from hdica.systems.online_ica.system import rule

TIMES = np.array([0.0, 0.5, 2.0])


def soft(x):
    return math.tanh(x)


def cube(x):
    return x * x * x


def jump(x):
    return np.sign(x)


def step(x):
    if x > 0.3:
        return x * x
    return -1.0 if x < -0.7 else x


def mcp(x):
    return 0.5 * np.sign(x) - x / 2 if abs(x) < 1.0 else 0.0


TWINS = [
    (soft, "tanh(x)"),
    (cube, "x**3"),
    (jump, "sign(x)"),
    (step, "where(x > 0.3, x**2, -1 if x < -0.7 else x)"),
]


@pytest.mark.parametrize(("function", "text"), TWINS)
def test_averages_differ_by_less_than_their_errors(function, text):
    law, q = make_source("uniform"), np.linspace(-0.97, 0.97, 23)
    one, other = (averages(parse_formula(t), law) for t in (word_for(function), text))
    for name in ("gain", "power"):
        error = getattr(one, f"{name}_error") + getattr(other, f"{name}_error")
        apart = np.abs(getattr(one, name)(q) - getattr(other, name)(q)) * np.sqrt(1 - q * q)
        assert apart.max() <= error
        assert error < 1e-10


@pytest.mark.deep
def test_limits_differ_by_less_than_their_errors():
    kept = {"tau": 0.1, "source": "laplace", "start": {"overlap": 0.6}}
    one, other = (
        hdica.limit(hdica.OnlineICA(nonlinearity=f, **kept), times=TIMES) for f in (soft, "tanh(x)")
    )
    error = (one.Q_error + other.Q_error).values
    assert np.all(np.abs((one.Q - other.Q).values) <= error)
    assert error.max() < 1e-10
    changed = hdica.limit(hdica.OnlineICA(nonlinearity=jump, **kept), times=TIMES)
    assert abs(float((one.Q - changed.Q)[-1])) > 1e-4
    states = [
        hdica.fixed_points(hdica.OnlineICA(nonlinearity=f, **kept)) for f in (soft, "tanh(x)")
    ]
    assert np.allclose(states[0].Q, states[1].Q, atol=1e-9)
    edges = [
        hdica.critical(hdica.OnlineICA(nonlinearity=f, **kept), "tau") for f in (jump, "sign(x)")
    ]
    assert np.allclose(edges[0].value, edges[1].value, atol=1e-9)


@pytest.mark.parametrize(("function", "text"), TWINS)
def test_chains_with_the_same_noise_are_those_of_the_formula(function, text):
    found = []
    for f in (function, text):
        system = hdica.OnlineICA(tau=0.05, nonlinearity=f, start={"overlap": 0.6})
        streams = [streams_of("the same", "chain", 60)(seed) for seed in range(3)]
        results = run_together([rule(system).chain] * 3, TIMES, 60, streams)
        found.append(np.array([values["xi.x/n"] for values, *_ in results]))
    assert np.allclose(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_streams_follow_the_function_and_results_repeat():
    system = hdica.OnlineICA(tau=0.05, nonlinearity=soft, start={"overlap": 0.6})
    same = hdica.OnlineICA(tau=0.05, nonlinearity=soft, start={"overlap": 0.6})
    assert system == same
    one, again = (
        hdica.simulate(s, times=TIMES, n=40, seeds=2, method="chain") for s in (system, same)
    )
    assert np.array_equal(one.Q, again.Q)
    assert system.nonlinearity.startswith("soft@")
    for text in (repr(system), str(system), system.model_dump_json(), json.dumps(one.attrs)):
        assert "soft@" in text
        assert "0x" not in text
    back = hdica.OnlineICA.model_validate_json(system.model_dump_json())
    assert back == system


def test_a_grid_over_functions_and_formulas():
    system = hdica.OnlineICA(tau=0.05, source="laplace", start={"overlap": 0.6})
    found = hdica.limit(system, times=TIMES, over={"nonlinearity": [soft, "tanh(x)", jump]})
    assert found.nonlinearity.values.tolist() == [word_for(soft), "tanh(x)", word_for(jump)]
    assert np.allclose(found.Q[0], found.Q[1], atol=1e-11)
    assert abs(float(found.Q[0, -1] - found.Q[2, -1])) > 1e-5


def test_a_study_refuses_a_function_in_a_sentence():
    content = {
        "study": "mine",
        "system": "OnlineICA",
        "parameters": {"tau": 0.1, "nonlinearity": soft},
        "methods": {"ode": {}},
        "times": [1.0],
    }
    with pytest.raises(HdicaError, match="soft is not allowed .*which a study cannot hold"):
        hdica.Study.from_mapping(content)
    swept = {**content, "parameters": {"tau": 0.1}, "grid": {"nonlinearity": ["x**3", soft]}}
    for one in (soft, word_for(soft)):
        swept["grid"] = {"nonlinearity": ["x**3", one]}
        with pytest.raises(HdicaError, match="soft is not allowed .*which a study cannot hold"):
            hdica.Study.from_mapping(swept)
