"""Excess overlap and excess kurtosis against golden numbers, and by what they must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/subspace_ica.json").read_text())


def orthonormal(k: int, d: int, seed: int = 0) -> Any:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0].T


def test_forms_of_a_tiny_filter() -> None:
    known = GOLDEN["excess_overlap_tiny"]
    w, basis = known["params"]["w"], known["params"]["U_rows"]
    found = {
        "printed": hdica.excess_overlap(w, basis, squared=False),
        "squared": hdica.excess_overlap(w, basis),
        "normalised": hdica.excess_overlap(w, basis, normalised=True),
    }
    for name, value in known["values"].items():
        assert found[name] == pytest.approx(value, abs=known["tol"])


@pytest.mark.parametrize("one", GOLDEN["excess_overlap_random_filter"]["values"])
def test_what_chance_gives_in_closed_form(one: dict[str, Any]) -> None:
    d, k = one["d"], one["k"]
    mean, sd = hdica.random_excess_overlap(d, k)
    assert (mean, sd) == pytest.approx((0.0, one["squared_sd_random"]), abs=1e-12)
    printed, _ = hdica.random_excess_overlap(d, k, squared=False)
    assert printed == pytest.approx(one["printed_mean_random"], abs=1e-12)
    inside = orthonormal(k, d)
    assert hdica.excess_overlap(inside[3], inside) == pytest.approx(one["squared_max"])
    at_most = hdica.excess_overlap(inside[3], inside, squared=False)
    assert at_most == pytest.approx(one["printed_max"], abs=1e-7)  # a root of a rounding error


@pytest.mark.parametrize("squared", [True, False])
def test_random_directions_have_the_mean_and_spread_of_the_closed_form(squared: bool) -> None:
    d, k, many = 30, 12, 40_000
    w = np.random.default_rng(1).standard_normal((many, d))
    found = hdica.excess_overlap(w, orthonormal(k, d), squared=squared)
    mean, sd = hdica.random_excess_overlap(d, k, squared=squared)
    assert abs(found.mean() - mean) < 4 * sd / np.sqrt(many)
    assert found.std() == pytest.approx(sd, rel=4 / np.sqrt(2 * many) * 1.5)
    other, _ = hdica.random_excess_overlap(d, k, squared=not squared)
    assert abs(found.mean() - other) > 20 * sd / np.sqrt(many)


def test_a_filter_may_be_of_any_size_and_many_come_at_once() -> None:
    basis, w = orthonormal(5, 20), np.random.default_rng(2).standard_normal((3, 2, 20))
    found = hdica.excess_overlap(w, basis)
    assert found.shape == (3, 2)
    for scale in (1e-200, 1e200, -3.0):
        assert hdica.excess_overlap(scale * w, basis) == pytest.approx(found, rel=1e-12)
    outside = w[0, 0] - basis.T @ (basis @ w[0, 0])
    assert hdica.excess_overlap(outside, basis, normalised=True) == pytest.approx(-0.25 / 0.75)


def test_kurtosis_is_of_centred_samples() -> None:
    known = GOLDEN["excess_kurtosis_tiny"]
    s = np.array(known["params"]["s"], dtype=float)
    assert hdica.excess_kurtosis(s) == pytest.approx(known["values"], abs=known["tol"])
    both = np.stack([s, 1e-180 * s + 1e-181, 100 - 7 * s], axis=1)
    assert hdica.excess_kurtosis(both) == pytest.approx(3 * [known["values"]], abs=1e-9)
    assert hdica.excess_kurtosis(both.T, axis=-1) == pytest.approx(3 * [known["values"]], abs=1e-9)
    assert np.isnan(hdica.excess_kurtosis(np.full(5, 3.0)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hdica.excess_overlap([0.0, 0.0], [[1.0, 0.0]]), "one that is 0"),
        (lambda: hdica.excess_overlap([1.0, np.nan], [[1.0, 0.0]]), "finite numbers"),
        (lambda: hdica.excess_overlap([1.0, 2.0], [[1.0, 0.1]]), "orthonormal"),
        (lambda: hdica.excess_overlap([1.0, 2.0, 3.0], [[1.0, 0.0]]), "shape"),
        (
            lambda: hdica.excess_overlap([1, 2], [[1, 0]], squared=False, normalised=True),
            "normalised",
        ),
        (lambda: hdica.excess_overlap([1, 2], np.eye(2), normalised=True), "normalised"),
        (lambda: hdica.excess_kurtosis([1, 2], axis=1), "axis = 1"),
        (lambda: hdica.excess_kurtosis("many"), "projections"),
        (lambda: hdica.random_excess_overlap(10, 11), "k = 11"),
        (lambda: hdica.random_excess_overlap(True, 1), "d = True"),
    ],
)
def test_what_has_no_answer_is_refused_in_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(HdicaError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
