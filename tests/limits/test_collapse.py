"""Transitions of one overlap at n: normal forms, their laws, and the same by quadrature."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from hdica.errors import HdicaError
from hdica.limits import collapse
from hdica.limits.collapse import (
    fall_time,
    fold,
    fold_of,
    law,
    pitchfork,
    pitchfork_of,
    separatrix,
    separatrix_of,
    steady_square,
    success_odds,
)
from hdica.systems.online_ica import system as ica
from hdica.systems.sparse_pca import system as pca

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/collapse.json").read_text())
FOLD, EDGE, FORK = (GOLDEN[kind] for kind in ("fold", "separatrix", "pitchfork"))


def _cubic(source: str = "rademacher"):
    one = ica.OnlineICA(tau=0.1, source=source)
    return ica.drift(one), ica.second(one)


def _oja(omega: float, tau: float = FORK["tau"]):
    one = pca.SparsePCA(tau=tau, omega=omega)
    return pca.drift(one), pca.second(one)


def test_the_law_of_falls() -> None:
    for eps, wanted in FOLD["F"].items():
        assert fold(float(eps)) == pytest.approx(wanted, rel=1e-10)
    closed = math.sqrt(2 * math.pi) * 6 ** (1 / 6) * math.gamma(1 / 6) / 3
    assert fold(0.0) == pytest.approx(closed, rel=1e-12)
    # Without noise the time is that of dX = -(eps + X^2) dT.
    assert fold(1e4) == pytest.approx(math.pi / 100, rel=1e-3)
    # Kramers: pi/sqrt(|eps|) exp(8/3 |eps|^(3/2)).
    kramers = math.pi / math.sqrt(5) * math.exp(8 / 3 * 5**1.5)
    assert fold(-5.0) == pytest.approx(kramers, rel=0.03)
    assert fold(-50.0) == math.inf


def test_the_law_at_a_pitchfork() -> None:
    for x, wanted in FORK["Psi"].items():
        assert pitchfork(float(x)) == pytest.approx(wanted, rel=1e-10)
    assert pitchfork(0.0) == pytest.approx(math.gamma(0.75) / math.gamma(0.25), rel=1e-12)
    assert pitchfork(-100.0) == pytest.approx(1 / 200, rel=1e-3)
    assert pitchfork(60.0) == pytest.approx(30.0, rel=1e-3)


def test_laws_of_arrays_leave_out_what_is_not_known() -> None:
    at = np.array([[0.0, np.nan], [np.inf, 1.0]])
    found = law("separatrix", at)
    assert np.array_equal(np.isnan(found), [[False, True], [True, False]])
    assert found[1, 1] == pytest.approx(special.ndtr(1.0)) == separatrix(1.0)


def test_the_form_of_a_fold() -> None:
    drift, _ = _cubic()
    one, tolerance = fold_of(drift, 0.1), FOLD["tolerance"]
    found = (one.tau, one.q, one.a, one.b, one.variance)
    wanted = [FOLD[k] for k in ("tau_c", "Q_c", "a", "b", "V")]
    assert found == pytest.approx(wanted, rel=tolerance)
    assert fold(0.0) * one.unit(1) == pytest.approx(FOLD["time_coefficient"], rel=tolerance)
    per = FOLD["eps_per_dtau_n23"]
    assert one.scaled(one.tau + 1e-3, 1000) == pytest.approx(0.1 * per, rel=tolerance)


def test_times_of_falls_at_n() -> None:
    drift, second = _cubic()
    one = fold_of(drift, 0.1)
    for row in FOLD["quadrature"]:
        tau = one.tau + row["eps"] / one.scaled(one.tau + 1, row["n"])
        found = fall_time(drift, second, tau, row["n"], FOLD["start"], FOLD["stop"])
        mean = found.mean
        assert mean == pytest.approx(row["mean"], abs=0.06)
        assert found.error < 1e-6
        # What n leaves is of order one, whatever n is.
        assert -60 < mean - fold(row["eps"]) * one.unit(row["n"]) < -10
    for row in FOLD["runs"]:
        tau = one.tau + row["eps"] / one.scaled(one.tau + 1, row["n"])
        mean = fall_time(drift, second, tau, row["n"], FOLD["start"], FOLD["stop"]).mean
        assert abs(mean - row["mean"]) < 3 * row["se"]
        # The law alone, without what n leaves, is not what runs do.
        assert abs(fold(row["eps"]) * one.unit(row["n"]) - row["mean"]) > 8 * row["se"]


def test_falls_from_below_the_level_are_refused() -> None:
    drift, second = _cubic()
    with pytest.raises(HdicaError, match=r"threshold = 0.7 is not allowed for falls"):
        fall_time(drift, second, 0.17, 100, 0.5, 0.7)


def test_the_form_of_a_separatrix() -> None:
    drift, second = _cubic()
    one = separatrix_of(drift, second, EDGE["tau"])
    assert one is not None
    wanted = [EDGE[k] for k in ("Q_u", "lambda", "V")]
    assert [one.q, one.rate, one.variance] == pytest.approx(wanted, rel=EDGE["tolerance"])
    assert one.width(1) == pytest.approx(EDGE["width"], rel=EDGE["tolerance"])
    moved = one.at(1000)
    # A root of D + D1/n, to a relative order of 1/n.
    rest = (
        float(drift.at(np.array(moved), EDGE["tau"]))
        + float(second(np.array(moved), EDGE["tau"])) / 1000
    )
    assert abs(rest) < 1e-2 * abs(one.rate * one.shift / 1000)
    assert separatrix_of(drift, second, 0.17) is None


def test_odds_at_n_tend_to_the_error_function() -> None:
    drift, second = _cubic()
    one = separatrix_of(drift, second, EDGE["tau"])
    assert one is not None
    for z in (-1.0, 0.0, 1.0):
        off = [
            success_odds(drift, second, EDGE["tau"], n, one, (one.q + z * one.width(n), 0.0))[0]
            - separatrix(z)
            for n in (1000, 10_000, 100_000)
        ]
        # What n leaves falls as n^(-1/2), by which the edge moves in units of its width.
        assert abs(off[0]) < 0.006
        assert np.array(off[1:]) * 10**0.5 == pytest.approx(off[:-1], rel=0.1)
    for row in EDGE["runs"]:
        begin = (one.q + row["z"] * one.width(row["n"]), 0.0)
        found, _ = success_odds(drift, second, EDGE["tau"], row["n"], one, begin)
        assert abs(found - row["share"]) < 3 * row["se"]


def test_a_spread_start_widens_the_edge() -> None:
    drift, second = _cubic()
    one = separatrix_of(drift, second, EDGE["tau"])
    assert one is not None
    n, spread, q = 100_000, 0.3, one.q + 0.001
    found, _ = success_odds(drift, second, EDGE["tau"], n, one, (q, spread / n))
    z = (q - one.q) / one.width(n, spread)
    assert found == pytest.approx(separatrix(z), abs=1e-3)
    assert abs(found - separatrix((q - one.q) / one.width(n))) > 0.1


def test_the_form_of_a_pitchfork() -> None:
    omega, tau = 0.26, 0.5
    one = pitchfork_of(_oja(omega)[0], tau)
    assert one.mu == pytest.approx(tau * (omega - tau / 2), rel=1e-9)
    assert one.damping == pytest.approx(tau * omega * (1 + tau / 2), rel=1e-7)
    assert one.variance == pytest.approx(tau**2 * (1 + omega), rel=1e-12)
    k = 1000 * one.damping / (2 * one.variance)
    assert one.unit(1000) == pytest.approx(k**-0.5)
    assert one.scaled(1000) == pytest.approx(1000 * one.mu / (one.variance * k**0.5))


def test_no_pitchfork_where_states_are_not_born_at_zero() -> None:
    with pytest.raises(HdicaError, match="bends away from Q = 0"):
        pitchfork_of(_cubic()[0], 0.1)


def test_steady_squares_at_n_tend_to_the_law() -> None:
    drift, second = _oja(0.25)
    one = pitchfork_of(drift, 0.5)
    off = [
        steady_square(drift, second, 0.5, n)[0] / one.unit(n) - pitchfork(0.0)
        for n in (10_000, 40_000, 160_000)
    ]
    assert np.array(off[1:]) * 2 == pytest.approx(off[:-1], rel=0.05)
    for row in FORK["runs"]:
        found = steady_square(drift, second, 0.5, row["n"])[0] / one.unit(row["n"])
        assert abs(found - row["value"]) < 3 * row["se"]


def test_panels_are_doubled_where_the_steady_law_is_narrow() -> None:
    """600 panels of [-1, 1] are wider than the law from n = 10^7 on."""
    drift, second = _oja(0.1)
    form, n = pitchfork_of(drift, 0.5), 10**8
    square, error = steady_square(drift, second, 0.5, n)
    assert error < 1e-7 * square
    assert square == pytest.approx(form.variance / (2 * n * abs(form.mu)), rel=1e-5)


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 100.0])
def test_odds_have_an_error_that_holds(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    drift, second = _cubic()
    edge = separatrix_of(drift, second, EDGE["tau"])
    assert edge is not None
    asked = (drift, second, EDGE["tau"], 1000, edge, (edge.q + edge.width(1000), spread / 1000))
    odds, error = success_odds(*asked)
    monkeypatch.setattr(collapse, "_PANELS", 9600)
    assert abs(success_odds(*asked)[0] - odds) <= error + 1e-12
    assert error < 1e-7
