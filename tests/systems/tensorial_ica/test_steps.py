"""Online tensorial ICA against plain NumPy, step by step, and against independent numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from hdica.systems.tensorial_ica.kernels import FROM_ARRAY, observed_steps
from hdica.systems.tensorial_ica.paths import run_observed
from hdica.systems.tensorial_ica.rule import Lanes, draws, run_together
from tests.systems.tensorial_ica.cases import SOURCES, rule_of, stream_of
from tests.systems.tensorial_ica.reference import path, step, tan2

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())
UNIT = GOLDEN["unit_lj_step"]
CASES = [(c["v"], c["Z"], c["eta"], c["sgn"], c["v_next"]) for c in UNIT["cases"]]
DIMENSIONS = (1, 2, 3, 20, 63, 64, 65, 129, 200)


def close(one, other, error=1e-10):
    assert np.max(np.abs(np.asarray(one) - np.asarray(other))) < error


@pytest.mark.parametrize(("v", "z", "eta", "sign", "after"), CASES)
def test_the_reference_makes_the_step(v, z, eta, sign, after):
    close(step(np.array(v), np.array(z), eta, sign), after, UNIT["tol_abs"])


@pytest.mark.parametrize(("v", "z", "eta", "sign", "after"), CASES)
def test_the_kernels_make_the_step(v, z, eta, sign, after):
    d = len(v)
    rule = rule_of({"student": 9}, d, eta, float(sign), lambda rng: np.array(v))
    lanes = Lanes([rule], [stream_of(0)])
    assert lanes.kind == FROM_ARRAY
    lanes.z[lanes.x.size : 2 * lanes.x.size] = np.repeat(z, 8)
    assert lanes.advance(np.array([[eta]]), 0, 1).tolist() == [1] * 8
    x = lanes.x[:, 0]
    close(x / np.linalg.norm(x), after, UNIT["tol_abs"])
    u = np.array(v)
    samples, law = np.array([z]), np.array([0.0, sign, 0.0])
    assert observed_steps(u, np.zeros((0, 0)), samples, np.array([eta]), law) == 1
    close(u, after, UNIT["tol_abs"])


def follow(rule, steps, stream):
    """What the kernel and the reference find at every step."""
    times = np.arange(steps + 1.0)
    ((values, diverged),) = run_together([rule], times, [stream], frozenset({"v"}))
    assert diverged == ""
    samples = draws(rule.source, rule.dimension, stream("source"))(steps)
    expected = path(
        rule.start(stream("start")), samples, lambda k: rule.schedule.value(k), rule.sign
    )
    return values, *expected


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_kernel_follows_the_rule_step_by_step(source, d):
    values, v, sign = follow(rule_of(source, d, 0.02 / d), 300, stream_of(1))
    assert values["v"].shape == v.shape
    assert np.max(np.abs(v[-1] - v[0])) > (0.005 if d > 1 else -1)
    close(values["v"], v)
    assert np.all(values["update_sign"] == sign)
    for k in range(len(v)):
        square, m = tan2(v[k])
        assert values["tan2"][k] == pytest.approx(square, rel=1e-9, abs=1e-30)
        assert values["nearest"][k] == m


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_length_one_is_kept_over_thousands_of_steps(source):
    """x is made of length one every 1024 steps: before, at and after them."""
    values, v, _ = follow(rule_of(source, 20, 1e-3), 4500, stream_of(2))
    close(np.sum(values["v"] ** 2, axis=1), 1, 1e-14)
    close(values["v"], v, 1e-9)


@pytest.mark.parametrize("eta", [0.3, 1e3, 1e60])
@pytest.mark.parametrize("source", SOURCES[:4], ids=str)
def test_steps_of_any_size_are_followed_while_they_are_finite(source, eta):
    """Far from length one x is made of length one at once: no false divergence."""
    values, v, _ = follow(rule_of(source, 7, eta), 30, stream_of(3))
    close(values["v"], v, 1e-5)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_sign_is_that_of_the_mean_of_all_samples_so_far(source):
    rule = rule_of(source, 6, 5e-3, sign=None)
    values, v, last = follow(rule, 400, stream_of(4))
    close(values["v"], v)
    assert values["update_sign"][0] == 0
    assert set(values["update_sign"][1:]) <= {-1.0, 1.0}
    assert values["update_sign"][-1] == last
    known = follow(rule_of(source, 6, 5e-3), 400, stream_of(4))
    assert known[1].shape == v.shape


def test_an_estimated_sign_may_change_on_the_way():
    seen = [
        follow(rule_of("uniform", 4, 1e-3, sign=None), 50, stream_of(k))[0]["update_sign"]
        for k in range(20)
    ]
    assert any(1 in signs for signs in seen)
    assert all(signs[-1] == -1 for signs in seen[:1])


@pytest.mark.parametrize("source", ["rademacher", {"student": 9}], ids=str)
def test_a_schedule_is_read_at_every_step(source):
    values, v, _ = follow(rule_of(source, 10, "0.02/(1 + t/30)"), 2500, stream_of(5))
    close(values["v"], v, 1e-9)
    jump = {"steps": {"times": [1030], "values": [1e-3, 2e-2]}}
    values, v, _ = follow(rule_of(source, 10, jump), 1100, stream_of(6))
    close(values["v"], v, 1e-9)


def orthogonal(d):
    return np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0]


@pytest.mark.parametrize("sign", ["known", None])
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_coordinates_of_the_data_follow_the_same_path(source, sign):
    d, times = 12, np.array([0.0, 1.0, 700.0, 3000.0])
    rule = rule_of(source, d, 2e-3, sign)
    ((expected, _),) = run_together([rule], times, [stream_of(7)], frozenset({"v"}))
    for mixing in (None, orthogonal(d), np.eye(d)):
        found, diverged = run_observed(rule, mixing, times, stream_of(7), frozenset({"u", "v"}))
        assert diverged == ""
        assert found.keys() == {"tan2", "nearest", "update_sign", "u", "v"}
        for name in ("v", "update_sign", "nearest"):
            close(found[name], expected[name], 1e-9)
        np.testing.assert_allclose(found["tan2"], expected["tan2"], rtol=1e-8)
        u = found["v"] if mixing is None else found["v"] @ mixing.T
        close(found["u"], u, 1e-12)
    assert run_observed(rule, None, times, stream_of(7))[0].keys() == {
        "tan2",
        "nearest",
        "update_sign",
    }
