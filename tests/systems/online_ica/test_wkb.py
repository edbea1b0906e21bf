"""Escape of online ICA at a fixed step size: n C exp(n S) steps."""

import json
import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.passage import wkb
from tests.systems.online_ica.exponent_reference import GOLDEN as DRAWN
from tests.systems.online_ica.exponent_reference import reference

ZERO = {"overlap": 0, "exact": True}
GOLDEN = [  # computed independently: source, tau, Q_u, S, exponent of the diffusion, C
    ("uniform", 0.01, 0.258094811287, 0.0179877501718, 0.0180352722314, 2556.81098053),
    ("uniform", 0.04, 0.575042621694, 0.116148535054, 0.121147285911, 110.018244465),
    ("rademacher", 0.08, 0.609668827177, 0.186698538952, 0.235312379239, 20.8408778979),
]


def ica(source, **step):
    return hdica.OnlineICA(source=source, start=ZERO, **step)


@pytest.mark.parametrize(("source", "tau", "top", "s", "wrong", "c"), GOLDEN)
def test_golden_exponents(source, tau, top, s, wrong, c):
    found = hdica.escape_exponent(ica(source, tau=tau))
    assert float(found["Q_unstable"]) == pytest.approx(top, rel=1e-9)
    assert float(found["S"]) == pytest.approx(s, rel=1e-8)
    assert float(found["S_diffusion"]) == pytest.approx(wrong, rel=1e-8)
    assert float(found["prefactor"]) == pytest.approx(c, rel=1e-3)


@pytest.mark.deep
@pytest.mark.parametrize(("source", "tau"), [("uniform", 0.04), ("rademacher", 0.08)])
def test_the_exact_time_tends_to_it_as_one_over_n(source, tau):
    """The exponent of a diffusion does not."""
    known = hdica.escape_exponent(ica(source, tau=tau))
    off, wrong = {}, {}
    for n in (80, 160):
        exact = float(hdica.escape_time(ica(source, tau=tau), n=n)["mean"])
        off[n] = exact / float(hdica.escape_time(ica(source, tau=tau), n=n, method="wkb")["mean"])
        wrong[n] = off[n] * math.exp(n * float(known["S"] - known["S_diffusion"]))
    assert (off[80] - 1) / (off[160] - 1) == pytest.approx(2, rel=0.2)
    assert abs(off[160] - 1) < 0.06
    assert abs(wrong[160] - 1) > 0.3


def test_small_steps_have_the_exponent_of_the_trap():
    """n S -> 3 P nu/(4 C), with the next order in tau: 1 + 15 (1 - kappa4) tau/(2 |kappa4|)."""
    k = 2.0
    for tau in (4e-3, 2e-3):
        s = float(hdica.escape_exponent(ica("rademacher", tau=tau))["S"])
        lead = 15 * tau / (8 * k)
        assert s / lead - 1 == pytest.approx(15 * (1 + k) * tau / (2 * k), rel=0.05)
        trap = hdica.escape_time(ica("rademacher", nu=100 * tau))
        assert float(trap["exponent"]) == pytest.approx(100 * lead, rel=1e-9)


@pytest.mark.deep
def test_where_the_exact_equation_has_lost_its_digits_the_asymptotics_go_on():
    deep = ica("uniform", tau=0.04)
    with pytest.raises(HdicaError, match="WKB is the better the longer it is"):
        hdica.escape_time(deep, n=400)
    found = hdica.escape_time(deep, n=400, method="wkb")
    assert float(found["mean"]) == pytest.approx(
        400 * 110.018 * math.exp(400 * 0.1161485350) / 400**3, rel=1e-3
    )
    assert np.array_equal(found["survival"], np.exp(-found["age"]))


def of_case(case):
    keys = ("nonlinearity", "source", "tau")
    return hdica.escape_exponent(hdica.OnlineICA(start=ZERO, **{k: case[k] for k in keys}))


CASES = json.loads(DRAWN.read_text())
NAMES = ("Q_unstable", "S", "S_diffusion", "prefactor")


def is_quick(case):
    """Atoms alone are averaged over e alone."""
    return case["source"] == "rademacher" or "discrete" in case["source"]


@pytest.mark.deep
@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=[] if is_quick(one) else pytest.mark.deep) for one in CASES],
    ids=lambda case: f"{case['nonlinearity']}-{case['tau']:.4g}",
)
def test_true_errors_lie_within_the_stated_ones(case):
    """Random sources, f and tau, most of them near the fold, by an independent reference."""
    exponent = of_case(case)
    for name, value, off in zip(NAMES, case["values"], case["off"], strict=True):
        error = float(exponent[f"{name}_error"])
        assert off * value <= error / 10, f"the reference of {name} is not ten times better"
        assert abs(float(exponent[name]) - value) <= error, name
        assert error <= 1e-6 * value, name


def test_the_reference_is_that_of_its_script():
    case = next(one for one in CASES if one["source"] == "rademacher")
    top, *_ = case["values"]
    again = reference(case["nonlinearity"], case["source"], case["tau"], top, 22)
    assert again == pytest.approx(case["values"], rel=1e-10)


def test_near_the_fold_the_bend_of_p_is_seen():
    """28 nodes over Q had S = 0.6231742 and C = 6.6307 here."""
    exponent = hdica.escape_exponent(ica("rademacher", tau=0.15))
    assert float(exponent["S"]) == pytest.approx(0.6234242255, abs=1e-10)
    assert float(exponent["prefactor"]) == pytest.approx(5.43011264, abs=2e-8)
    assert float(exponent["S_error"]) < 1e-9
    assert float(exponent["prefactor_error"]) < 1e-6


def test_what_refinement_does_not_find_is_refused(monkeypatch):
    monkeypatch.setattr(wkb, "WORST_PREFACTOR", 1e-12)
    with pytest.raises(HdicaError, match="refinement does not find the exponent"):
        hdica.escape_exponent(ica("rademacher", tau=0.08))


def test_tails_that_the_tilted_law_moves_into_are_refused():
    """A fifth of the samples is normal and wider than 1: E exp(p J) is infinite as Q -> 0."""
    wide = make_source({"mixture": {"weights": [0.8, 0.2], "means": [0, 0], "sds": [0.5, 2]}})
    with pytest.raises(HdicaError, match="heavier than Gaussian"):
        wkb.action(parse_formula("-x**3", "x"), wide, 0.01, 0.3)


def test_the_time_at_n_carries_the_errors_of_both():
    at_n = hdica.escape_time(ica("rademacher", tau=0.08), n=200, method="wkb")
    exponent = hdica.escape_exponent(ica("rademacher", tau=0.08))
    relative = exponent["prefactor_error"] / exponent["prefactor"] + 200 * exponent["S_error"]
    assert float(at_n["error"]) == pytest.approx(float(relative), rel=1e-6)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"source": "laplace", "nonlinearity": "-tanh(x)", "tau": 0.01}, "heavier than Gaussian"),
        ({"source": "uniform", "tau": 0.07}, "no unstable overlap .* below the critical step size"),
        ({"source": "uniform", "nu": 1.0}, "nu = 1.0 is not allowed .*give tau"),
        ({"source": "uniform", "tau": "0.1/(1 + t)"}, "a constant step"),
        ({"source": "uniform", "tau": 0.01, "regularizer": "0.1*sign(x)"}, "only for the regul"),
    ],
)
def test_refusals_say_what_is_allowed(given, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.escape_exponent(hdica.OnlineICA(start=ZERO, **given))


def test_a_limit_between_two_states_that_nearly_merge_never_arrives():
    """They are nearer than any even grid of overlaps resolves."""
    fold = float(
        hdica.critical(hdica.OnlineICA(source="rademacher", tau=0.1), "tau")["value"].max()
    )
    step = {"source": "rademacher", "tau": fold * (1 - 1e-9), "threshold": 0.97}
    start = {"overlap": 0.85, "exact": True}
    slow = hdica.escape_time(hdica.OnlineICA(start=start, **step), n=100, method="ode")
    assert float(slow["mean"]) == math.inf
