"""Lemma 5 of Li and Jordan: the product of mean factors, and how far paths stray from it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hdica.systems.tensorial_ica.paths import run_vessel
from hdica.systems.tensorial_ica.rule import draws
from tests.systems.tensorial_ica.cases import near_axis, rule_of, stream_of
from tests.systems.tensorial_ica.reference import path

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())
VESSEL = GOLDEN["lj_vessel"]["cases"]
D, PATHS = 20, 300


def expected(rule, steps, stream):
    """The error of Lemma 5 in plain NumPy, shape (steps + 1,): mean, largest, and inside."""
    samples = draws(rule.source, rule.dimension, stream("source"))(steps)
    eta, beta = rule.schedule.value, abs(rule.source.moment(4) - 3)
    v, _ = path(rule.start(stream("start")), samples, eta, rule.sign)
    m = int(np.argmax(np.abs(v[0])))
    product, most, rows, inside = v[0] / v[0, m], np.zeros(v.shape[1]), [], True
    for k in range(steps + 1):
        ratio = v[k] / v[k, m]
        inside = inside and np.sum(np.delete(ratio, m) ** 2) <= 0.5
        if inside:
            most = np.maximum(most, np.abs(ratio - product))
        rows.append([np.mean(np.delete(most, m)), np.max(most), float(inside)])
        product = product * (1 - eta(k) * beta * (v[k, m] ** 2 - v[k] ** 2))
    return np.array(rows).T


@pytest.mark.parametrize("source", ["rademacher", "uniform", "laplace", {"student": 9}], ids=str)
def test_the_error_is_that_of_the_lemma(source):
    times, leaves = np.arange(401.0), 0
    for seed, tangent in enumerate((0.0, 0.5, 0.7, 0.705, 0.705, 0.705, 0.9)):
        rule = rule_of(source, 6, 5e-3, start=near_axis(6, tangent))
        values, why = run_vessel(rule, stream_of(seed), times)
        assert why == ""
        for found, exact in zip(
            (values["sup"], values["sup_max"], values["inside"]),
            expected(rule, 400, stream_of(seed)),
            strict=True,
        ):
            assert np.max(np.abs(found - exact)) < 1e-9
        leaves += values["inside"][0] > values["inside"][-1]
        assert values["inside"][0] == (tangent < 0.8)
        assert np.all(np.diff(values["sup"]) >= 0)
    assert leaves >= 1


def test_a_divergence_is_no_way_out_of_the_vessel():
    late = {"steps": {"times": [5], "values": [1e-3, 1e200]}}
    rule = rule_of("uniform", 5, late, start=near_axis(5, 0.1))
    values, why = run_vessel(rule, stream_of(0), np.array([5.0, 6.0]))
    assert why == "the update was not finite at step 5 (t = 5)"
    assert np.isfinite(values["sup"]).tolist() == [True, False]


@pytest.mark.parametrize("name", VESSEL)
def test_the_error_grows_as_known(name):
    """Means over paths within four standard errors, of as many paths there as here."""
    eta, tangent = (float(part[3:]) for part in name.split("_")[1:3])
    rule = rule_of("rademacher", D, eta, start=near_axis(D, tangent))
    steps = VESSEL[name]["T"]
    found = [run_vessel(rule, stream_of(k), np.array([steps])) for k in range(PATHS)]
    scale = eta * math.sqrt(steps)
    for output, key in (("sup", "ratio"), ("sup_max", "ratio_max")):
        ratio = np.array([values[output][0] for values, _ in found]) / scale
        error = math.sqrt(2 * np.var(ratio) / PATHS)
        assert abs(np.mean(ratio) - VESSEL[name][key]) < 4 * error
    assert all(values["inside"][0] == 1 for values, _ in found)
