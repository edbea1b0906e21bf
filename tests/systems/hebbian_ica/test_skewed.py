"""The trap of order n^2 of skewed sources: its law against chains, its best rate, its limits."""

import math

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, trapezoid
from scipy.optimize import minimize_scalar
from scipy.stats import kstest

import hdica
from hdica.analysis.escape import Escape
from hdica.analysis.escape.compute import escape, steps
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.systems.hebbian_ica.passage import passages
from hdica.systems.hebbian_ica.skewed import (
    skew_near_zero,
    skewed_escape,
    skewed_optimum,
    skewed_range,
    skewed_time,
)
from hdica.systems.hebbian_ica.system import rule
from tests.systems.hebbian_ica.cases import hebbian, stream_of

TWO = {"discrete": {"values": [2, -0.5], "weights": [0.2, 0.8]}}  # kappa3 = 1.5
SOURCE = make_source(TWO)
PHI = parse_formula("x**2 - 1", "x")  # P = 2, <phi''> = 2
NU2 = 2.5  # h = 0.3


def system(**given):
    shape = {"sources": [TWO], "nonlinearity": "x**2 - 1", "sigma": [1], "start": "random"}
    return hebbian(**shape | {"nu2": NU2} | given)


def times(one, n, count, most=40.0):
    """Steps over n^2 of the first and the last passage, and R at the last."""
    streams = [stream_of(seed, n, "skewed") for seed in range(count)]
    found = passages(rule(one), n, streams, 0.8, int(most * n**2))
    assert all(p.last >= 0 for p in found)
    first, last = ([getattr(p, k) / n**2 for p in found] for k in ("first", "last"))
    return np.array(first), np.array(last), np.array([p.overlaps for p in found])


def z_of(sample, mean):
    return (sample.mean() - mean) / (sample.std() / math.sqrt(sample.size))


def reference(h, start):
    """The mean time by two plain integrals of the scale function and the speed density."""
    r = np.concatenate([np.linspace(-9, 12, 400_001), np.geomspace(12, 1e6, 400_001)[1:]])
    psi = r * r / 2 - 2 * h * r**3 / 3
    # J slaved to the drift far out, where the exponents would overflow.
    near = r <= 12
    speed = cumulative_trapezoid(np.exp(-psi[near]), r[near], initial=0.0)
    j = np.concatenate([2 * np.exp(psi[near]) * speed, 1 / (h * r[~near] ** 2 - r[~near] / 2)])
    if start == "zero":
        return trapezoid(np.where(r >= 0, j, 0.0), r)
    from scipy.special import ndtr

    return trapezoid(j * ndtr(r), r)


@pytest.mark.parametrize("start", ["zero", "random"])
def test_the_mean_is_that_of_plain_integrals(start):
    for h in (0.2, 0.3, 0.5):
        # Beyond 12 the reference leaves out the noise: J is slaved to 1e-3 there.
        assert skewed_time(h, start).mean == pytest.approx(reference(h, start), rel=2e-4)


def test_kramers_formula_is_the_mean_of_a_high_barrier():
    skew = skew_near_zero(PHI, SOURCE)
    assert (skew.power, skew.product) == pytest.approx((2.0, 3.0))
    errors = []
    for nu2 in (10.0, 14.0):
        found = skewed_escape([SOURCE], PHI, 1, nu2, "zero")
        assert skew.depth(nu2) == pytest.approx(3 / (2 * 2 * nu2))
        errors.append(abs(found.kramers[0, 0] / found.mean[0, 0] - 1))
        assert found.exponent[0, 0] == pytest.approx(4 * nu2**2 / (6 * 9))
    assert errors[1] < 0.6 * errors[0] < 0.1


@pytest.mark.deep
def test_chains_escape_in_units_of_n_squared_steps():
    law = skewed_escape([SOURCE], PHI, 1, NU2, "random")
    for n, count in ((60, 300), (200, 300)):
        first, _, r = times(system(), n, count)
        assert abs(z_of(first, law.first)) < 3
        assert kstest(first, lambda t: 1 - law.survival(t)).pvalue > 0.005
        assert np.all(r > 0.8 - 1e-12)
        # In units of n^3 steps, or with half the drift, it would be another law.
        assert abs(z_of(first / n, law.first)) > 20
        assert z_of(first, skewed_time(0.15, "random").mean / (2 * NU2**2)) < -10
        # And R = 0 as the start is slower by more than the errors.
    zero = skewed_escape([SOURCE], PHI, 1, NU2, "zero")
    assert zero.first > 1.05 * law.first


def test_sigma_decides_the_side_and_not_the_time():
    law = skewed_escape([SOURCE], PHI, 1, NU2, "random")
    first, _, r = times(system(sigma=[-1]), 100, 200)
    assert np.all(r < 0)
    assert abs(z_of(first, law.first)) < 3
    for sign in (1, -1):
        found = hdica.escape_time(system(sigma=[sign]))
        assert found["side"].item() == sign
        assert float(found["mean"]) == law.first


@pytest.mark.deep
def test_another_nonlinearity_and_a_continuous_source():
    phi, source = parse_formula("x**2", "x"), make_source({"chi2": 4})
    skew = skew_near_zero(phi, source)
    assert skew.power == pytest.approx(3.0)
    nu2 = skew.product / (2 * 3 * 0.4)
    law = skewed_escape([source], phi, 1, nu2, "random")
    first, _, _ = times(system(sources=[{"chi2": 4}], nonlinearity="x**2", nu2=nu2), 200, 200)
    assert abs(z_of(first, law.first)) < 3
    assert abs(z_of(first, 1.5 * law.first)) > 4


@pytest.mark.deep
def test_pairs_are_independent_copies_where_the_mean_of_phi_vanishes():
    law = skewed_escape([SOURCE] * 2, PHI, 2, NU2, "random")
    one = system(sources=[TWO] * 2, projections=2, sigma=[1, 1])
    first, last, r = times(one, 100, 400, most=80.0)
    assert abs(z_of(first, law.first)) < 3
    assert abs(z_of(last, law.last)) < 3
    assert np.all(np.abs(r).max(axis=2) > 0.8)
    # One entry alone is slower, and a last escape of two entries is sooner.
    assert z_of(first, law.mean[0, 0]) < -20
    assert z_of(last, 1.5 * law.mean[0, 0] / 2) > 5
    assert law.error < 1e-3


@pytest.mark.deep
def test_the_best_rate_is_the_same_number_for_all():
    for start in ("zero", "random"):
        best = skewed_optimum(start)

        def scaled(log, start=start):
            return math.exp(2 * log) * skewed_time(math.exp(log), start).mean

        found = minimize_scalar(scaled, bounds=(-2, -1), method="bounded", options={"xatol": 1e-6})
        assert best.value == pytest.approx(found.fun, rel=1e-10)
        assert best.depth == pytest.approx(math.exp(found.x), rel=1e-4)
    assert skewed_optimum("zero").depth == pytest.approx(0.227823, abs=1e-6)
    assert skewed_optimum("random").depth == pytest.approx(0.234283, abs=1e-6)
    at = hdica.escape_time(system(start="zero"))
    nu2, least = at["nu_optimal"].item(), at["mean_optimal"].item()
    assert float(hdica.escape_time(system(nu2=nu2, start="zero"))["mean"]) == pytest.approx(least)
    for factor in (0.9, 1.1):
        assert float(hdica.escape_time(system(nu2=nu2 * factor, start="zero"))["mean"]) > least


def test_x_squared_needs_longer_than_x_squared_minus_one():
    """<phi>, which tells nothing of the source, is noise: the best times are as P."""
    best = [
        hdica.escape_time(system(nonlinearity=text))["mean_optimal"].item()
        for text in ("x**2", "x**2 - 1")
    ]
    assert best[0] == pytest.approx(1.5 * best[1])


def test_sources_without_skew_stay_on_this_scale():
    found = hdica.escape_time(system(sources=[TWO, "uniform"], nonlinearity="x**2 - 1"))
    alone = hdica.escape_time(system())
    assert found["pair_mean"].values[0].tolist() == [float(alone["mean"]), math.inf]
    assert found["side"].values.tolist() == [[1.0, 0.0]]
    assert float(found["mean"]) == pytest.approx(float(alone["mean"]), rel=1e-3)


def test_the_error_of_the_averages_moves_the_mean_as_it_says():
    skew = skew_near_zero(PHI, SOURCE)
    from dataclasses import replace

    off = replace(skew, product=skew.product * (1 + 1e-6))
    moved = skewed_escape([SOURCE], PHI, 1, NU2, "zero").first
    wrong = skewed_time(off.depth(NU2)).mean / (off.power * NU2**2)
    told = skewed_range(replace(skew, product_error=1e-6), NU2, "zero").doubt
    told -= skewed_range(replace(skew, product_error=0.0), NU2, "zero").doubt
    assert 0.1 * told < abs(wrong / moved - 1) < told


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nonlinearity": "x**3"}, r"'x\*\*3' with the sources discrete is not allowed for esc"),
        ({"sources": ["uniform"]}, "with the sources uniform is not allowed for escapes in n"),
        ({"start": {"overlap": 0.1}}, "start = .* is not allowed for escape times"),
        ({"nu2": "1/(1 + t)"}, "nu2 = .* is not allowed for the diffusion of skewed sources"),
        ({"batch": 2}, "needs fixed signs, single samples and sources that stay"),
        ({"motion": {"drift": 0.1}}, "needs fixed signs, single samples and sources that stay"),
        (
            {"projections": 2, "sigma": [1, 1], "nonlinearity": "x**2"},
            r"<phi\(z\)> = 1 is not allowed for escapes of 2 projections",
        ),
        ({"nu2": None, "nu": 1.0}, "escapes in n.2 steps: give nu2"),
    ],
)
def test_refusals_say_what_is_allowed(given, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.escape_time(system(**given))


def test_nu2_is_a_unit_of_the_step_size():
    n = 50
    assert rule(system()).step_size(n).constant == pytest.approx(NU2 * n**-1.5)
    with pytest.raises(HdicaError, match="needs mu, and nu2 is given"):
        hdica.limit(system(start={"overlap": 0.5}), times=[0.0, 1.0])
    with pytest.raises(HdicaError, match="mu, eta, nu, nu2: nu and nu2 is not allowed"):
        system(nu=1.0)


@pytest.mark.deep
def test_studies_have_both_units_and_do_not_mix_them():
    spec = {
        "study": "skewed",
        "system": "HebbianICA",
        "parameters": {
            "sources": [TWO],
            "nonlinearity": "x**2 - 1",
            "sigma": [1],
        },
        "grid": {"nu2": [2.0, 3.0]},
        "times": [400],
        "methods": {"skewed_escape_times": {"n": [40], "seeds": 8}, "skewed_escape": {}},
    }
    tree = hdica.Study(**spec).run()
    theory = tree["skewed_escape"].to_dataset()
    assert theory["mean"].attrs["units"] == "n^2 steps"
    assert theory["exponent"].attrs["long_name"].startswith("exponent P^2 nu2^2/(6 kappa3^2")
    runs = tree["skewed_escape_times"].to_dataset()
    assert np.all(runs["first_seen"] == 1)
    assert runs["first"].attrs["units"] == "n^2 steps"
    assert 0.2 < float(runs["first"].mean() / theory["mean"].mean()) < 4
    found = escape(tree, Escape(x="nu2", simulation="skewed_escape_times", limits="skewed_escape"))
    assert found["mean"].attrs["units"] == found["theory"].attrs["units"] == "n^2 steps"
    assert steps(found).plain == "n² steps"
    cubed = hdica.Study(
        **spec | {"methods": {"escape_times": {"n": [40], "seeds": 8}, "skewed_escape": {}}}
    ).run()
    with pytest.raises(HdicaError, match=r"times in n\^2 steps and in n\^3 steps are not allowed"):
        escape(cubed, Escape(x="nu2", simulation="escape_times", limits="skewed_escape"))
    ratio = cubed["escape_times"].to_dataset()["first"] / runs["first"]
    assert 40 * float(ratio.mean()) == pytest.approx(1.0)
