"""What parameters of subspace ICA are allowed, and in which sentence the others are refused."""

from __future__ import annotations

import pytest

import hdica
from hdica.errors import HdicaError
from hdica.systems.subspace_ica.system import needed_samples, samples_of, size_of_space
from hdica.systems.system import methods_of

BASE = {"dimension": 20, "rank": 3, "beta": 1.0}
SGD = {**BASE, "algorithm": "sgd", "eta": 0.1, "batch": 5}
REFUSED = [
    ({"dimension": 1}, r"dimension = 1 is not allowed \(a whole number from 2"),
    ({"dimension": 2.5}, "dimension = 2.5 is not allowed"),
    ({"rank": 0}, "rank = 0 is not allowed"),
    ({"rank": 21}, r"rank = 21 is not allowed \(at most dimension = 20\)"),
    ({"rank": True}, "rank = True is not allowed"),
    ({"beta": 0}, "beta = 0 is not allowed"),
    ({"beta": [1, 2]}, r"beta with 2 numbers is not allowed \(one a spike: rank = 3\)"),
    ({"beta": [1, 2, -1]}, r"beta = \[1, 2, -1\] is not allowed"),
    ({"beta": []}, r"beta = \[\] is not allowed"),
    ({"alpha": [0, 0, 0]}, r"alpha = \[0, 0, 0\] is not allowed"),
    ({"alpha": "even"}, "alpha = 'even' is not allowed"),
    ({"latent": "cauchy"}, "latent: 'cauchy' is not known"),
    ({"contrast": "s"}, "its slope is constant"),
    ({"contrast": "abs(s)"}, "its slope jumps"),
    ({"samples_per_dimension": 2, "samples": 40}, "both are not allowed"),
    ({"samples_per_dimension": 0}, "samples_per_dimension = 0 is not allowed"),
    ({"samples_per_dimension": 0.05}, "at least 2 samples are needed"),
    ({"samples": 1}, "samples = 1 is not allowed"),
    ({"samples": 3}, "samples = 3 is not allowed with space = 'principal'"),
    ({"samples": 20, "space": "ambient"}, "more than its dimension 20"),
    ({"space": {"principal": 21}}, r"space.principal = 21 is not allowed \(at most"),
    ({"space": "own"}, "space = 'own' is not allowed"),
    ({"whitening": "none"}, "whitening = 'none' is not allowed"),
    ({"algorithm": "adam"}, "algorithm = 'adam' is not allowed"),
    ({"batch": 5}, "batch = 5 is not allowed with algorithm = 'fastica'"),
    ({"batch": 0}, "batch = 0 is not allowed"),
    ({"eta": 0.1}, r"eta = 0.1 is not allowed with algorithm = 'fastica' \(it is for sgd\)"),
    ({"direction": "descent"}, "it is for sgd and flow"),
    ({"iterations": 0}, "iterations = 0 is not allowed"),
    ({"restarts": 1.5}, "restarts = 1.5 is not allowed"),
    ({"tolerance": 0}, "tolerance = 0 is not allowed"),
    ({"start": {"overlap": 1.5}}, "0 <= a0 <= 1"),
    ({"start": "north"}, "start = 'north' is not allowed"),
    ({**SGD, "eta": None}, "eta is missing"),
    ({**SGD, "eta": 0}, "eta = 0 is not allowed"),
    ({**SGD, "batch": "all"}, "infinitely many samples"),
    ({**SGD, "batch": "fresh"}, "batch = 'fresh' is not allowed with algorithm = 'sgd'"),
    ({**SGD, "samples": 4}, "batch = 5 is not allowed"),
    ({**SGD, "restarts": 3}, r"restarts = 3 is not allowed .*\(it is for fastica\)"),
    ({**BASE, "algorithm": "flow", "batch": 5}, "batch = 5 is not allowed"),
    ({**BASE, "algorithm": "flow", "eta": 0.5}, "it is for sgd"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_is_not_allowed_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(HdicaError, match=sentence) as refused:
        hdica.SubspaceICA(**{**BASE, **given})
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_short_names_go_to_their_fields():
    found = hdica.SubspaceICA(**BASE, a0=0.2, d=5)
    assert found.start == {"overlap": 0.2}
    assert found.space == {"principal": 5}
    assert size_of_space(found) == 5


def test_the_number_of_samples_is_told_in_two_ways():
    assert samples_of(hdica.SubspaceICA(**BASE)) is None
    assert samples_of(hdica.SubspaceICA(**BASE, samples_per_dimension=2.5)) == 50
    assert samples_of(hdica.SubspaceICA(**BASE, samples=77)) == 77
    with pytest.raises(HdicaError, match="samples_per_dimension or samples is needed"):
        needed_samples(hdica.SubspaceICA(**BASE))


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("fastica", {}, "samples_per_dimension or samples is needed"),
        ("fastica", {"dimension": 10**5, "samples": 10**6}, "at most 16384; scores without"),
        ("fastica", {"samples": 2**40, "space": "known"}, "they are in memory"),
        ("fastica", SGD, "algorithm = 'sgd' is not allowed for FastICA"),
        ("fastica_scores", {"space": "known", "samples": 99}, "space = 'known' is not allowed"),
        ("fastica_scores", {"samples": 4}, "at least rank \\+ 2 = 5"),
        ("projected_sgd", {"samples": 99}, "allowed: 'sgd'"),
        ("projected_sgd", {**SGD, "space": "ambient"}, "space = 'ambient' is not allowed"),
        ("projected_sgd", {**SGD, "d": 4}, "as many dimensions as spikes"),
        ("projected_sgd", {**SGD, "latent": "gaussian"}, "does not depend on the overlap"),
        ("batch_flow", {"algorithm": "flow"}, "samples_per_dimension or samples is needed"),
    ],
)
def test_a_method_says_what_it_needs(name, given, sentence):
    refused = methods_of("SubspaceICA")[name].scope.refuses(hdica.SubspaceICA(**{**BASE, **given}))
    assert sentence.replace("\\", "") in refused


def test_the_first_method_that_fits_is_taken():
    small = hdica.SubspaceICA(**BASE, samples=100, restarts=1)
    assert hdica.simulate(small, seeds=1).attrs["method"] == "fastica"
    large = small.model_copy(update={"dimension": 20_000, "samples": 60})
    assert hdica.simulate(large, seeds=1).attrs["method"] == "fastica_scores"
    assert set(hdica.simulate(small, seeds=2)["overlap"].dims) == {"seed"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "samples_per_dimension or samples is needed"),
        ({"dimension": 10**5, "space": "ambient", "samples": 10**6}, "they are in memory"),
        ({"dimension": 20000, "space": "ambient", "samples": 20001}, "at most 16384"),
        ({"samples": 2**40, "space": "known"}, "they are in memory"),
        ({**SGD, "space": "ambient"}, "space = 'ambient' is not allowed"),
        ({**SGD, "latent": "gaussian"}, "does not depend on the overlap"),
        ({"algorithm": "flow"}, "samples_per_dimension or samples is needed"),
    ],
)
def test_whoever_asks_for_any_simulation_is_told_what_is_amiss(given, sentence):
    """Not that the last method, which is asked when no other will do, is for another algorithm."""
    with pytest.raises(HdicaError, match=sentence):
        hdica.simulate(hdica.SubspaceICA(**{**BASE, **given}), times=[0, 1], seeds=1)
