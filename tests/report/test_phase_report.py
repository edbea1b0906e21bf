"""What a report says and draws of a phase diagram."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.phase.figure import findings
from hdica.analysis.phase.figure import phase as panels
from tests.analysis import shared, toy
from tests.report.shown import plain

phase = toy.computed("phase")

TIMES = list(np.linspace(0.0, 3.0, 13))
TAUS = [0.03, 0.05, 0.061, 0.07]
STARTS = [round(0.05 * k, 2) for k in range(1, 20)]


@pytest.fixture(scope="module")
def data():
    chain = toy.finite("chain", TAUS, STARTS, [400], 16, TIMES, 0.3)
    groups = {"chain": chain, "ode": toy.ode(TAUS, STARTS, TIMES, 0.3), **toy.flow_groups(TAUS)}
    return aggregate(toy.tree(groups, {"phase": toy.PHASE}))["phase"].to_dataset()


def of(data, words):
    """The findings whose quantity has these words."""
    return [one for one in findings(data) if words in one.quantity.plain]


@pytest.mark.deep
def test_runs_that_are_large_and_decay_are_counted_and_drawn(data):
    many = int(data["decaying"].sum())
    assert many > 50
    (one,) = of(data, "but decaying")
    assert (one.value, one.place) == (many, {"n": 400, "t": 3.0})
    drawn = {p.key: p for p in panels(data)}
    assert np.nanmax(drawn["phase_decaying"].items[0].z) == 1
    settled = data.assign(decaying=0 * data["decaying"])
    assert "phase_decaying" not in {p.key for p in panels(settled)}
    assert not of(settled, "but decaying")


@pytest.mark.parametrize(("many", "drawn"), [(1, 1), (2, 2), (4, 4), (6, 4)])
def test_several_n_are_drawn(data, many, drawn):
    sizes = [100 * 2**k for k in range(many)]
    over_n = {k for k, values in data.data_vars.items() if "n" in values.dims}
    wide = xr.concat([data[sorted(over_n)].assign_coords(n=[n]) for n in sizes], "n")
    whole = data.drop_vars(over_n).drop_dims("n", errors="ignore").merge(wide)
    found = panels(whole.assign_attrs(data.attrs))
    for kind in ("overlap", "success", "decaying", "slices"):
        titles = [p.title.plain for p in found if p.key.startswith(f"phase_{kind}")]
        assert len(titles) == drawn
        assert titles[0].endswith(f"n = {sizes[-1]}")
    assert len({p.key for p in found}) == len(found)
    assert found[0].key == "phase_overlap"


def test_the_report_says_what_success_is(data):
    caption = plain(p.caption for p in panels(data) if p.key == "phase_success")[0]
    assert "lies in the basin of an informative state of the limit" in caption
    bare = data.assign(by_limit=0 * data["by_limit"])
    caption = plain(p.caption for p in panels(bare) if p.key == "phase_success")[0]
    assert "is above |Q| = 0.5 and not falling over the last third of the time" in caption


def test_the_measured_boundary_is_compared_with_theory_over_all_values(data):
    (one,) = of(data, "mean offset of the start")
    assert (one.verdict, one.predicted, one.place) == ("undecided", 0.0, {"n": 400})
    assert abs(one.value) < 3 * one.error < 0.1
    assert "of both values of" in one.evidence
    (sure,) = of(data.assign(threshold_se=data["threshold_se"] / 3), "mean offset of the start")
    assert sure.verdict == "agrees"
    (off,) = of(data.assign(boundary=data["boundary"] + 0.15), "mean offset of the start")
    assert off.verdict == "differs"
    assert off.value == pytest.approx(one.value - 0.15, abs=0.01)


def test_where_noise_is_shared_no_plain_error_is_claimed():
    tree = shared.store(1)
    found = phase(tree, shared.PHASE)
    found["boundary"] = ("tau", shared.boundary())
    (one,) = of(found, "in standard errors")
    assert one.value > 0
    assert np.isnan(one.error)
    assert not of(found, "mean offset")


def test_the_caption_names_the_critical_value_of_its_own_axis(data):
    def legend(here):
        return plain(p.caption for p in panels(here) if p.key == "phase_overlap")[0]

    assert "Upright dashed line: τc." in legend(data)
    other = data.rename(tau="omega").assign_attrs(data.attrs | {"x": "omega"})
    assert "Upright dashed line: ωc." in legend(other)
    assert "τc" not in legend(other)
    # A line outside the axis is not drawn and not explained.
    assert "pright" not in legend(data.sel(tau=TAUS[:2]))
