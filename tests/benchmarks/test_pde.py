"""Every solver of the coupled equation gives the overlap of the reference."""

import importlib.util

import numpy as np
import pytest

from benchmarks import pde


@pytest.mark.parametrize("error", list(pde.FULL))
def test_ours_is_better_than_the_error_that_is_asked_for(error):
    times, exact = pde.reference(15.0)
    assert times.tolist() == [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0]
    found = pde.ours(times, pde.TOLERANCES[error])()
    assert np.abs(found - exact).max() < error
    # The overlap grows: an unmoved one is no solution.
    assert np.ptp(exact) > 0.05


@pytest.mark.parametrize("setting", pde.SMALL[1e-3], ids=lambda one: one.name)
def test_a_rival_reaches_its_error(setting):
    pytest.importorskip(setting.module)
    times, exact = pde.reference(1.0)
    rival = pde.solver(setting, times)
    assert np.abs(rival() - exact).max() < 1e-3
    assert rival() == pytest.approx(rival(), abs=0)


@pytest.mark.parametrize("setting", pde.SMALL[1e-3], ids=lambda one: one.name)
def test_a_rival_solves_the_same_equation(setting):
    """Four times finer in both directions, it is nearer by more than a factor of six."""
    pytest.importorskip(setting.module)
    times, exact = pde.reference(1.0)
    fine = pde.refined(setting, 4)
    errors = [np.abs(pde.solver(one, times)() - exact).max() for one in (setting, fine)]
    assert errors[1] < errors[0] / 6


def test_a_row_for_everyone_who_is_installed(capsys):
    rows = pde.rows(small=True, repeats=1)
    installed = [s.name for s in pde.SMALL[1e-3] if importlib.util.find_spec(s.module)]
    assert [row.contestant for row in rows] == ["hdica", *installed]
    assert all(row.error < 1e-3 for row in rows)
    missing = len(pde.SMALL[1e-3]) - len(installed)
    assert capsys.readouterr().out.count("left out") == missing
