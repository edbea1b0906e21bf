"""The limit over a grid of parameters: the bits of single points, notes, errors."""

import numpy as np
import pytest

import hdica
from hdica.ingredients.save import NOTHING
from hdica.limits.mean_field.density import march as density_march
from hdica.systems.fields import with_parameter
from hdica.systems.projected.density import pde_many
from hdica.systems.sparse_pca.system import mean_field
from hdica.systems.system import methods_of

HALF = {"normal": {"mean": 0.5**0.5, "var": 0.5}}
TAUS, BETAS = (0.5, 0.3), (0.05, 0.27, 0.2)
TIMES = [0, 1, 4]


def pca(**more):
    given = {"regularizer": "beta*sign(x)", "constants": {"beta": 0.27}, "start": HALF}
    return hdica.SparsePCA(**{"tau": 0.5, "prior": {"sparse": 0.1}, **given, **more})


def at(system, **values):
    for name, value in values.items():
        system = with_parameter(system, name, value)
    return system


def agree(grid, single, where):
    """Whether every variable of one point is that of the grid, bit for bit."""
    here = grid.sel(where)
    for name in single.data_vars:
        assert here[name].dims == single[name].dims
        assert np.array_equal(here[name].values, single[name].values, equal_nan=True), name


@pytest.mark.parametrize("threads", [1, 2])
def test_every_point_of_the_pde_has_the_bits_that_it_has_alone(threads):
    asked = {
        "times": TIMES,
        "method": "pde",
        "snapshots": [4],
        "x": np.linspace(-3, 5, 9),
        "thresholds": [0.5, 1],
        "functionals": {"excess": "beta*abs(x)"},
    }
    grid = hdica.limit(pca(), over={"tau": TAUS, "beta": BETAS}, threads=threads, **asked)
    assert grid["Q"].dims == ("tau", "beta", "time")
    assert grid["density"].dims == ("tau", "beta", "snapshot", "feature", "x")
    assert (tuple(grid["tau"].values), tuple(grid["beta"].values)) == (TAUS, BETAS)
    for tau, beta in ((0.5, 0.05), (0.3, 0.27)):
        single = hdica.limit(at(pca(), tau=tau, beta=beta), **asked)
        agree(grid, single, {"tau": tau, "beta": beta})
        note = grid["note"].sel(tau=tau, beta=beta).item()
        assert note == single.attrs.get("note", "")
        assert ("condenses" in note) == (tau < 0.5)
        assert {k: grid.attrs[k] for k in ("method", "equations")} == {
            k: single.attrs[k] for k in ("method", "equations")
        }


def test_the_ode_where_it_applies_everywhere():
    ica = hdica.OnlineICA(tau=0.02, start={"overlap": 0.6})
    grid = hdica.limit(ica, times=TIMES, over={"tau": [0.03, 0.01]})
    assert grid.attrs["method"] == "ode"
    for tau in (0.03, 0.01):
        agree(grid, hdica.limit(at(ica, tau=tau), times=TIMES), {"tau": tau})


def test_auto_takes_one_method_for_all_points():
    grid = hdica.limit(pca(), times=TIMES, over={"beta": [0.0, 0.2]})
    assert grid.attrs["method"] == "pde"
    closed = hdica.limit(at(pca(), beta=0.0), times=TIMES)
    assert closed.attrs["method"] == "ode"
    assert grid["Q"].sel(beta=0.0).values == pytest.approx(closed["Q"].values, abs=1e-7)


def test_a_point_to_which_the_method_does_not_apply_is_empty_and_says_so():
    grid = hdica.limit(pca(), times=TIMES, method="ode", over={"beta": [0.2, 0.0]})
    assert np.isnan(grid["Q"].sel(beta=0.2)).all()
    assert np.isfinite(grid["Q"].sel(beta=0.0)).all()
    assert "does not close the limit" in str(grid["note"].sel(beta=0.2).item())
    assert grid["note"].sel(beta=0.0).item() == ""


@pytest.mark.deep
def test_a_point_that_stops_is_empty_from_there_on_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(density_march, "BUDGET", 2e5)
    system = pca(prior={"sparse": 0.05})
    grid = hdica.limit(system, times=[0, 5, 1000], over={"omega": [0.1, 1.0]}, method="pde")
    condensing, informed = (grid.sel(omega=omega) for omega in (0.1, 1.0))
    assert np.isfinite(condensing["Q"].values).tolist() == [True, True, False]
    assert "condenses" in condensing["note"].item()
    assert np.isfinite(informed["Q"]).all()
    assert informed["note"].item() == ""


def test_groups_are_numbered_where_their_values_differ():
    grid = hdica.limit(pca(), times=[0, 1], over={"rho": [0.1, 0.2]}, x=[-1, 0, 1, 2])
    assert grid["feature"].values.tolist() == [0, 1]
    assert grid["xi"].sel(rho=0.2).values == pytest.approx([0, 0.2**-0.5])
    assert grid["snapshot"].values.tolist() == [0, 1]


def test_many_points_for_a_sweep_are_those_of_the_method():
    systems = [at(pca(), beta=beta) for beta in BETAS[:2]]
    times = np.array([0.0, 1.0])
    many = pde_many(mean_field, systems, times)
    for system, result in zip(systems, many, strict=True):
        alone = methods_of("SparsePCA")["pde"].run(system, times, None, None, NOTHING)
        assert alone.values.keys() == result.values.keys()
        for name, values in alone.values.items():
            assert np.array_equal(values, result.values[name])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"over": {}}, r"over = \{\} is not allowed \(at least one parameter"),
        ({"over": {"tau": []}}, r"over: tau = \[\] is not allowed"),
        ({"over": {"tau": [0.1, 0.1]}}, "all finite and different"),
        ({"over": {"tau": [0.1, float("nan")]}}, "all finite and different"),
        ({"over": {"tau": ["x"]}}, "tau = 'x' is not allowed|constant"),
        ({"over": {"speed": [1.0]}}, "over.speed is not a known parameter .allowed: tau"),
        ({"over": {"tau": [0.1, -1.0]}}, "tau = -1.0 is not allowed"),
        ({"over": {"x": [0.1]}}, "'x' is not allowed .it names a dimension"),
        ({"over": {"tau": [0.1]}, "method": "odd"}, "method = 'odd' is not known"),
        ({"over": {"tau": [0.1]}, "method": "ode"}, "does not close the limit"),
        ({"over": {"tau": [0.1]}, "snapshots": [1]}, "x = None is not allowed with over"),
        ({"over": {"tau": [0.1]}, "threads": 0}, "threads = 0 is not allowed"),
        ({"over": {"tau": [0.1]}, "times": [1, 0]}, "times: 0 comes after 1 .times must increase"),
    ],
)
def test_what_is_asked_of_a_grid_is_checked(asked, said):
    with pytest.raises(hdica.HdicaError, match=said):
        hdica.limit(pca(), **{"times": [0, 1], **asked})
