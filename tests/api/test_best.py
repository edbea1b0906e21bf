"""The best parameters of a limit: closed forms, brute force and constants found elsewhere."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import hdica
from hdica.api.best import Range, smallest
from hdica.errors import HdicaError

OJA = hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 0.1})
SPARSE = {"prior": {"sparse": 0.05}, "start": {"normal": {"mean": 0.5**0.5, "var": 0.5}}}
OIST = hdica.SparsePCA(
    tau=0.5, omega=0.3, regularizer="beta*sign(x)", constants={"beta": 0.1}, **SPARSE
)


def ica(source, q0):
    return hdica.OnlineICA(tau=0.02, source=source, start={"overlap": q0})


def oja_square(tau, omega, q0, t):
    """Q^2 by the solution of the Bernoulli equation d(Q^2)/dt = 2 a Q^2 - 2 b Q^4."""
    a, b = tau * omega - tau**2 / 2, tau * omega + tau**2 * omega / 2
    return 1 / (b / a + (1 / q0**2 - b / a) * np.exp(-2 * a * t))


def test_the_step_size_of_oja_is_that_of_the_closed_form():
    found = hdica.best(OJA, {"tau": (0.02, 1.5)}, {"overlap at": 15})
    brute = minimize_scalar(
        lambda tau: -oja_square(tau, 1.0, 0.1, 15.0), bounds=(0.1, 0.6), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert found.value.item() == pytest.approx(np.sqrt(-brute.fun), abs=1e-12)
    assert found.tau.item() == pytest.approx(brute.x, rel=1e-4)
    assert found.success.item()
    assert "note" not in found.attrs
    # Control: a step size 10 % off is told from the best one.
    assert oja_square(1.1 * brute.x, 1.0, 0.1, 15.0) < -brute.fun - 1e-3


@pytest.mark.deep
@pytest.mark.parametrize(
    ("system", "taus", "q", "time", "tau"),
    [
        (OJA, (0.02, 2.0), 0.9, 50.109, None),
        (ica("uniform", 0.5), (0.002, 0.06), 0.9, 230.64, 0.021524),
        (ica("rademacher", 0.5), (0.002, 0.16), 0.99, 116.32, None),
    ],
)
def test_the_time_to_an_overlap_is_that_of_constants_found_elsewhere(system, taus, q, time, tau):
    # By quadrature of dq/(dq/dt) and a search over the step size, in q = Q^2, to five digits.
    found = hdica.best(system, {"tau": taus}, {"time to": q**0.5})
    assert found.value.item() == pytest.approx(time, abs=0.006)
    assert tau is None or found.tau.item() == pytest.approx(tau, abs=1e-6)
    assert 0 < found.error.item() < 1e-6
    assert found.tried_value.min().item() == found.value.item()


def test_the_best_system_is_told_and_gives_the_value():
    found = hdica.best(OJA, {"tau": (0.05, 1)}, {"overlap at": 5})
    best = hdica.SparsePCA.model_validate_json(found.attrs["parameters"])
    assert best.tau == found.tau.item()
    assert hdica.limit(best, times=[5]).Q[-1].item() == pytest.approx(found.value.item(), abs=1e-13)


@pytest.mark.deep
def test_two_ranges_and_choices_are_no_worse_than_a_grid():
    over = {"regularizer": ["beta*sign(x)", "beta*sign(x)/(1 + abs(x)/g)", "0"], "beta": (0, 0.3)}
    found = hdica.best(OIST, over, "steady overlap", timeout=None)
    states = hdica.fixed_points(OIST, over={"beta": [0.05, 0.1, 0.2, 0.25]})
    states = states.where(states.stable)
    assert found.value.item() >= abs(states.Q).max().item()
    assert found.regularizer.item() != "0"
    # A constant that a formula does not use is left out with it: one trial without beta.
    plain = found.tried_regularizer.values == "0"
    assert plain.sum() == 1
    assert np.isnan(found.tried_beta.values[plain]).all()


def test_support_errors_are_those_of_the_limit():
    asked = {"regularizer": ["beta*sign(x)"], "beta": [0.0, 0.1, 0.2, 0.27]}
    strong = OIST.model_copy(update={"omega": 1.0})
    found = hdica.best(strong, asked, {"support errors": 1.0, "at": 5})
    kept = {"thresholds": [1.0], "snapshots": [5]}
    grid = hdica.limit(strong, times=[0, 5], over={"beta": asked["beta"]}, **kept)
    each = grid.misclassified.values.ravel()
    assert found.value.item() == pytest.approx(each.min(), abs=1e-9)
    assert found.beta.item() == asked["beta"][int(each.argmin())]


def test_a_matrix_of_overlaps_has_its_largest_entry():
    given = {"sources": ["uniform"], "nonlinearity": "x**3", "sigma": [-1]}
    hebbian = hdica.HebbianICA(mu=0.02, start={"overlap": [[0.5]]}, **given)
    found = hdica.best(hebbian, {"mu": (0.002, 0.06)}, {"overlap at": 200})
    path = hdica.limit(hebbian.model_copy(update={"mu": found.mu.item()}), times=[200])
    assert found.value.item() == pytest.approx(abs(path.R.values[-1]).max(), abs=1e-12)
    for factor in (0.8, 1.25):
        other = hebbian.model_copy(update={"mu": factor * found.mu.item()})
        assert abs(hdica.limit(other, times=[200]).R.values[-1]).max() < found.value.item()


@pytest.mark.deep
def test_an_end_of_a_range_and_a_goal_out_of_reach_are_said():
    low = hdica.best(OJA, {"tau": (0.05, 0.5)}, "steady overlap")
    assert low.tau.item() == 0.05
    assert "tau = 0.05 is at the lower end of its range" in low.attrs["note"]
    never = hdica.best(OJA, {"tau": (0.3, 1)}, {"time to": 0.999, "within": 100})
    assert not never.success.item()
    assert np.isinf(never.value.item())
    assert "not 0.999" in never.attrs["note"]


@pytest.mark.deep
def test_it_gives_the_same_bits_twice():
    one, two = (hdica.best(OJA, {"tau": (0.05, 1)}, {"overlap at": 5}) for _ in range(2))
    assert one.identical(two)


@pytest.mark.parametrize(
    ("over", "goal", "said"),
    [
        ({}, "steady overlap", "at least one parameter"),
        ({"tua": (0.1, 1)}, "steady overlap", "tua"),
        ({"beta": (0, 1)}, "steady overlap", "beta"),
        ({"tau": (1, 0.1)}, "steady overlap", "low < high"),
        ({"tau": (0.1, 0.2, 0.3)}, "steady overlap", "a range|a tuple"),
        ({"tau": (0.1, float("nan"))}, "steady overlap", "finite number"),
        ({"tau": [0.1, "x"]}, "steady overlap", "list of numbers or texts"),
        ({"tau": []}, "steady overlap", "list of numbers or texts"),
        ({"regularizer": "0"}, "steady overlap", "list of numbers or texts"),
        ({"tau": (0.1, 1), "rho": (0.1, 1), "prior": ["dense"]}, "steady overlap", "already set"),
        ({"tau": (0.1, 1)}, "speed", "is not known .allowed: 'steady overlap'"),
        ({"tau": (0.1, 1)}, {"time to": 1.5}, "0 < overlap < 1"),
        ({"tau": (0.1, 1)}, {"overlap at": 0}, "a time > 0"),
        ({"tau": (0.1, 1)}, {"support errors": -1, "at": 2}, "a threshold >= 0"),
        ({"tau": (-2, -1)}, "steady overlap", "step size"),
        ({"value": (0, 1)}, "steady overlap", "names a variable"),
        (dict.fromkeys(("tau", "omega", "Q0", "rho"), (0.1, 1)), "steady overlap", "4 ranges"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(over, goal, said):
    with pytest.raises(HdicaError, match=said) as caught:
        hdica.best(OJA, over, goal)
    assert "\n" not in str(caught.value)


def test_a_system_that_has_none_of_it_says_so():
    tensorial = hdica.TensorialICA(dimension=20, source="rademacher", eta=2e-3, start="axis")
    with pytest.raises(HdicaError, match="TensorialICA is not allowed .allowed: OnlineICA"):
        hdica.best(tensorial, {"eta": (1e-4, 1e-2)}, {"support errors": 1.0, "at": 100})


@pytest.mark.parametrize("ends", [(1e-3, 10.0), (0.0, 2.0), (-1.0, 3.0)])
def test_a_range_holds_its_ends_and_increases(ends):
    one = Range(*ends)
    values = [one.at(u) for u in np.linspace(0, 1, 11)]
    assert (values[0], values[-1]) == ends
    assert np.all(np.diff(values) > 0)
    assert (one.end(ends[0]), one.end(values[5]), one.end(ends[1])) == ("lower", "", "upper")


def test_the_search_finds_the_lower_of_two_wells():
    tried = []

    def loss(point):
        x, y = point
        value = min((x - 0.3) ** 2 + 3 * (y - 0.6) ** 2, (x - 0.8) ** 2 + (y - 0.1) ** 2 - 0.01)
        tried.append((value, point))
        return value

    assert smallest(loss, (Range(-0.0 - 1e-9, 1.0), Range(-1e-9, 1.0)))
    assert min(tried)[1] == pytest.approx((0.8, 0.1), abs=1e-3)
