"""Golden numbers of tensorial ICA through the functions that users call."""

import math
import re

import numpy as np
import pytest

import hdica
from tests.systems.tensorial_ica.golden import GOLDEN

NOISELESS = {"dimension": 6, "source": "rademacher", "eta": 1e-3}
VESSELS = GOLDEN["lj_vessel"]["cases"]


def system_of(key, **given):
    """The system whose source, dimension and step size the name of a case says."""
    source, d, eta = re.fullmatch(r"(?:\w+_)?(\w+?)_d(\d+)_eta(.*)", key).groups()
    return hdica.TensorialICA(dimension=int(d), source=source, eta=float(eta), **given)


def test_the_transient():
    known = GOLDEN["lj_ode"]
    ten = hdica.TensorialICA(**NOISELESS, start={"v": known["v0"]})
    unit = 1 / (2 * ten.eta)
    found = hdica.limit(ten, times=[bt * unit for bt in known["bt"]])
    assert np.max(np.abs(found["v"].values - known["v"])) < known["tol_abs"]
    warm = float(hdica.traverse_times(ten)["N2"]) / unit
    assert warm == pytest.approx(known["bt_warm_third"], abs=known["tol_abs"])


@pytest.mark.parametrize("key", GOLDEN["lj_stationary_formula"]["cases"])
def test_stationary_levels(key):
    case, found = GOLDEN["lj_stationary_formula"]["cases"][key], system_of(key, start="axis")
    levels = hdica.stationary_error(found)
    for name, golden in (("S0", "S0"), ("S_lin", "S_lin"), ("S2", "S_2")):
        tolerance = GOLDEN["lj_stationary_formula"]["tol_rel"]
        assert float(levels[name]) == pytest.approx(case[golden], rel=tolerance)


@pytest.mark.parametrize("key", GOLDEN["lj_ou_max"]["mc"])
def test_departures(key):
    case = GOLDEN["lj_ou_max"]["mc"][key]
    _, source, d = key.split("_")
    ten = hdica.TensorialICA(
        dimension=int(d[1:]), source=source, eta=case["eta"], start="maximiser"
    )
    found = hdica.limit(ten, times=case["times"], method="departure")["deviation"].values
    assert found == pytest.approx(case["th"], rel=1e-3)  # they take times that are not whole


@pytest.mark.parametrize("key", GOLDEN["lj_escape_from_max"]["cases"])
def test_escapes(key):
    case = GOLDEN["lj_escape_from_max"]["cases"][key]
    ten = system_of(key.replace("maxstart", "rademacher"), start="maximiser")
    found = hdica.traverse_times(ten)
    assert 2 * ten.eta * float(found["N1"]) == pytest.approx(case["th"], rel=5e-3)


@pytest.mark.parametrize("key", GOLDEN["lj_warm_time_uniform_init_ODE"]["cases"])
def test_transients_from_uniform_starts(key):
    golden = GOLDEN["lj_warm_time_uniform_init_ODE"]
    d = int(key.removeprefix("ode_warm_time_d"))
    found = hdica.traverse_times(hdica.TensorialICA(**(NOISELESS | {"dimension": d})))
    unit, case = 1 / (2 * NOISELESS["eta"]), golden["cases"][key]
    assert float(found["N2"]) / unit == pytest.approx(case["mean"], rel=golden["tol_rel"])
    for name, probability in (("q05", 0.05), ("q50", 0.5), ("q95", 0.95), ("q99", 0.99)):
        at = float(found["N2_quantiles"].sel(quantile=probability)) / unit
        assert at == pytest.approx(case[name], rel=golden["tol_rel"], abs=0.01)


@pytest.mark.parametrize("key", VESSELS)
def test_vessels(key):
    """Means over 200 paths within four standard errors, which hold for as many paths there."""
    eta, tangent = (float(part[3:]) for part in key.split("_")[1:3])
    given = {"dimension": 20, "source": "rademacher", "eta": eta}
    ten = hdica.TensorialICA(**given, start={"angle": math.atan(tangent)})
    found = hdica.simulate(ten, times=[VESSELS[key]["T"]], seeds=200, method="vessel")
    ratio = found["ratio"].isel(time=0).values
    error = math.sqrt(2 * ratio.var(ddof=1) / ratio.size)
    assert abs(ratio.mean() - VESSELS[key]["ratio"]) < 4 * error
