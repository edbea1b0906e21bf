"""Results that show no learning say why and what to change, and what they say is true."""

import itertools

import numpy as np
import pytest

import hdica
from hdica import HebbianICA, OnlineICA, SparsePCA
from hdica.systems.projected.learning import negated

SKEWED = {"chi2": 4}
LATE = [0.0, 3000.0]
POWER = {"x**3": 15, "x**2": 3, "tanh(x)": 0.39, "x**2 + x**3": 18}
"""<f(z)^2> of a standard normal z: Q = 0 is approached at the rate tau^2 <f^2>/2."""


def note(found):
    return found.attrs.get("note", "")


def ica(source="uniform", f="x**3", start=0.7, tau=0.02, **rest):
    return OnlineICA(tau=tau, source=source, nonlinearity=f, start={"overlap": start}, **rest)


CASES = list(
    itertools.product(
        ["uniform", "laplace", "gaussian", SKEWED, "rademacher"],
        ["x**3", "-(x**3)", "x**2", "-(x**2)", "tanh(x)", "-tanh(x)", "x**2 + x**3"],
        [0.9, 0.3, -0.9],
        [0.02, 1.0],
    )
)


@pytest.mark.deep
@pytest.mark.parametrize(("source", "f"), sorted({(str(s), f) for s, f, _, _ in CASES}))
def test_a_limit_has_a_note_exactly_where_the_overlap_falls_to_zero(source, f):
    for law, own, start, tau in CASES:
        if (str(law), own) != (source, f):
            continue
        system = ica(law, f, start, tau)
        power = POWER[own.strip("-()") if "tanh" not in own else "tanh(x)"]
        end = hdica.limit(system, times=[0, 20 / (tau**2 * power)])
        fallen = abs(float(end["Q"][-1])) < 0.05
        assert fallen == bool(note(end)), (system, note(end))


@pytest.mark.deep
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tau", [0.05, 2.0])
def test_an_f_that_vanishes_on_the_source_is_not_called_one_that_learns_nothing(tau):
    system = ica("rademacher", "x**3 - x", 0.7, tau)  # f(+-1) = 0
    end = hdica.limit(system, times=LATE)
    assert (abs(float(end["Q"][-1])) > 0.9) == (tau < 0.9)
    said = note(end) + note(hdica.fixed_points(system)) + note(hdica.critical(system))
    assert "no step size learns" not in said
    assert ("critical value 0.9935" in said) == (tau > 1), said


@pytest.mark.parametrize("f", ["x**3", "-tanh(x)"])
def test_the_wrong_sign_of_f_is_said_wherever_it_shows(f):
    system = ica("laplace", f)
    for found in (
        hdica.limit(system, times=LATE),
        hdica.fixed_points(system),
        hdica.critical(system),
    ):
        assert "no step size learns the source laplace with this sign of f" in note(found)
        assert f"take nonlinearity = {negated(f)!r}" in note(found)
        assert "'uniform' (kappa4 < 0)" in note(found)
    assert hdica.critical(system)["value"].size == 0
    for remedy in ({"nonlinearity": negated(f)}, {"source": "uniform"}):
        other = system.model_copy(update=remedy)
        assert hdica.critical(other)["value"].size == 1
        assert note(hdica.critical(other)) == ""
        learned = hdica.limit(other.model_copy(update={"tau": 0.01}), times=LATE)
        assert note(learned) == ""
        assert float(learned["Q"][-1]) > 0.9


@pytest.mark.deep
def test_a_source_without_a_fourth_moment_is_no_obstacle():
    found = note(hdica.critical(ica({"student": 3.5}, "-tanh(x)")))
    assert "with this sign of f: Q falls to 0 from every start; take" in found


@pytest.mark.parametrize(
    ("source", "f"), [("gaussian", "x**3"), ("gaussian", "tanh(x)"), ("uniform", "x")]
)
def test_what_no_sign_learns_is_said(source, f):
    for found in (hdica.critical(ica(source, f)), hdica.limit(ica(source, f), times=LATE)):
        assert "nor with -f" in note(found)


def test_a_skewed_source_is_learned_with_the_other_sign():
    system = ica(SKEWED, "x**2")
    for found in (
        hdica.limit(system, times=LATE),
        hdica.fixed_points(system),
        hdica.critical(system),
    ):
        assert "is learned with Q < 0 alone, as -xi: take nonlinearity = '-(x**2)'" in note(found)
    assert float(hdica.limit(ica(SKEWED, "x**2", -0.7), times=LATE)["Q"][-1]) < -0.9
    right = ica(SKEWED, "-(x**2)")
    assert float(hdica.limit(right, times=LATE)["Q"][-1]) > 0.9
    for found in (hdica.limit(right, times=LATE), hdica.fixed_points(right)):
        assert note(found) == ""
    assert note(hdica.limit(ica(SKEWED, "x**2", -0.7), times=LATE)) == ""
    assert note(hdica.fixed_points(ica(SKEWED, "x**2", -0.7))) == ""


def test_too_large_steps_name_the_critical_one():
    system = ica(tau=0.5)
    critical = float(hdica.critical(system)["value"][0])
    for found in (hdica.limit(system, times=LATE), hdica.fixed_points(system)):
        assert f"take tau below its critical value {critical:.4g}" in note(found)


def test_a_start_below_the_unstable_state_names_it():
    system = ica(start=0.3, tau=0.05)
    states = hdica.fixed_points(system)
    edge = states["Q"].values[~states["stable"].values].max()
    assert f"below the unstable state Q = {edge:.4g}" in note(hdica.limit(system, times=LATE))
    assert note(states) == ""


RANDOM = {
    "ode": ica(start=0.0),
    "pde": ica(start=0.0, regularizer="0.05*sign(x)", prior={"sparse": 0.25}),
    "oja": SparsePCA(tau=0.1, start={"overlap": 0.0}),
    "oist": SparsePCA(
        tau=0.1, regularizer="0.05*sign(x)", prior={"sparse": 0.25}, start={"overlap": 0.0}
    ),
    "hebbian": HebbianICA(mu=0.05, sigma=[-1]),
    "zero": HebbianICA(mu=0.05, sigma=[-1, 1], projections=2, sources=["uniform", "laplace"]),
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_random_start_stays_at_zero_and_says_so(name):
    found = hdica.limit(RANDOM[name], times=[0, 4])
    path = found["R" if "projection" in found.dims else "Q"]
    assert np.abs(path).max() < 1e-9
    assert "the limit stays at" in note(found)
    assert "start with an overlap, such as start={'overlap': 0.5}" in note(found)
    assert ("escape_time" in note(found)) == (name not in ("oja", "oist"))
    assert ("Theorem 1 of Wang and Lu 2016" in note(found)) == (name in ("oja", "oist"))


def test_noise_leaves_zero_at_the_rate_that_is_said():
    found = note(hdica.limit(RANDOM["oja"], times=[0, 4]))
    assert "grows like exp(0.095 t)" in found
    small = SparsePCA(tau=0.1, start={"overlap": 1e-6})
    q = hdica.limit(small, times=[0, 40])["Q"].values
    assert np.log(q[1] / q[0]) / 40 == pytest.approx(0.095, rel=1e-6)


def test_one_projection_of_two_may_stay():
    pair = HebbianICA(
        mu=0.02,
        sources=["uniform", "laplace"],
        projections=2,
        sigma=[-1, 1],
        start={"overlap": [[0.8, 0], [0, 0]]},
    )
    found = hdica.limit(pair, times=[0, 50])
    assert note(found).startswith("of projection 1 the start has R = 0")
    assert np.abs(found["R"][:, 1]).max() < 1e-9 < 0.9 < float(found["R"][-1, 0, 0])


def test_a_start_that_a_regularizer_moves_off_zero_has_no_such_note():
    system = ica(start=0.0, regularizer="0.3*x**2", prior="dense")
    found = hdica.limit(system, times=[0, 1])
    assert abs(float(found["Q"][-1])) > 1e-3
    assert "stays" not in note(found)


def test_hebbian_signs_are_named():
    wrong = HebbianICA(mu=0.02, sigma=[1], start={"overlap": 0.7})
    for found in (
        hdica.limit(wrong, times=LATE),
        hdica.fixed_points(wrong),
        hdica.critical(wrong),
    ):
        assert "R falls to 0 from every start" in note(found)
        assert "take sigma = [-1]" in note(found)
    right = HebbianICA(mu=0.02, sigma=[-1], start={"overlap": 0.7})
    for found in (hdica.limit(right, times=LATE), hdica.fixed_points(right)):
        assert note(found) == ""
    skewed = HebbianICA(
        mu=0.02, sigma=[-1], sources=[SKEWED], nonlinearity="x**2", start={"overlap": 0.7}
    )
    assert "take sigma = [1] for +xi" in note(hdica.limit(skewed, times=LATE))


def test_a_weak_signal_is_said_to_be_too_weak():
    weak = SparsePCA(tau=0.5, omega=0.1)
    for found in (hdica.limit(weak, times=LATE), hdica.fixed_points(weak)):
        assert "take tau < 2 omega" in note(found)
    none = SparsePCA(tau=0.5, omega=0.0)
    assert "omega = 0 leaves nothing to learn" in note(hdica.critical(none))
    assert note(hdica.limit(SparsePCA(tau=0.1, omega=0.1), times=LATE)) == ""


def test_an_empty_search_says_where_it_searched():
    found = hdica.critical(SparsePCA(tau=0.1, omega=9.0))
    assert found["value"].size == 0
    assert "no transition was found for tau from 0.0001 to 10: give low and high" in note(found)
    found = hdica.critical(SparsePCA(tau=0.1, omega=9.0), low=1.0, high=30.0)
    assert found["value"].values == pytest.approx([18.0])
    assert note(found) == ""


@pytest.mark.deep
def test_grids_have_a_note_a_point():
    system = ica(f="a*x**3", constants={"a": 1.0}, start=0.7)
    found = hdica.limit(system, times=LATE, over={"tau": [0.02, 0.5], "a": [-1.0, 1.0]})
    notes = found["note"]
    assert notes.sel(tau=0.02, a=1.0).item() == ""
    assert "no step size learns" in notes.sel(tau=0.02, a=-1.0).item()
    assert "take tau below its critical value" in notes.sel(tau=0.5, a=1.0).item()


def test_notes_of_the_density_and_of_learning_are_both_kept():
    system = SparsePCA(
        tau=0.5, regularizer="0.2*sign(x)", prior={"sparse": 0.2}, start={"overlap": 0.0}
    )
    found = note(hdica.limit(system, times=[0, 5]))
    assert "h < 0" in found
    assert "stays at Q = 0" in found


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("x**3", "-(x**3)"),
        ("-(x**3)", "x**3"),
        ("-(x) + (x**3)", "-(-(x) + (x**3))"),
        ("-x**2", "-(-x**2)"),
    ],
)
def test_the_other_sign_of_a_formula(text, other):
    from hdica.ingredients.formula import parse_formula

    assert negated(text) == other
    assert float(parse_formula(other).value(1.7)) == -float(parse_formula(text).value(1.7))
