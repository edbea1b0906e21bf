"""A report says that noise is shared, what that means, and what it tells; others say nothing."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate, frame
from hdica.analysis.phase.figure import findings
from hdica.report.page import panels, render
from tests.analysis import shared


def said(tree: xr.DataTree) -> tuple[xr.DataTree, str, str]:
    """Aggregate, findings and page of a store."""
    found = aggregate(tree)
    return found, " ".join(frame(found)["quantity"]), render(found, panels(found))


@pytest.fixture(scope="module")
def told() -> tuple[xr.DataTree, str, str]:
    return said(shared.store(2, 12))


def test_the_page_names_the_methods_that_share_noise(told: tuple[xr.DataTree, str, str]) -> None:
    _, _, page = told
    assert "Points of chain that differ only in their parameters share the noise" in page
    assert "over whole seeds" in page
    assert "rise and fall together" in page


def test_findings_give_the_interval_over_seeds(told: tuple[xr.DataTree, str, str]) -> None:
    data = told[0]["phase"].to_dataset()
    top = data.isel(n=-1)
    (share,) = [f for f in findings(data) if "most runs go where" in f.quantity.plain]
    ends = [100 * float(top[f"agreement_share_{k}"]) for k in ("low", "high")]
    assert [share.low, share.high] == pytest.approx(ends)


def test_slopes_are_drawn_with_their_intervals(told: tuple[xr.DataTree, str, str]) -> None:
    found, _, page = told
    drawn = {panel.key: panel for panel in panels(found)["slopes"]}
    assert set(drawn) == {"slopes_tau", "slopes_Q0"}
    data = found["slopes"].to_dataset().isel(simulation=0, n=-1)
    last = drawn["slopes_tau"].items[-1]
    assert last.label.plain.startswith("Q₀ = 0.975")
    assert np.array_equal(last.x, [0.015, 0.025])
    for name, drawn_at in (("", last.y), ("_low", last.low), ("_high", last.high)):
        assert np.array_equal(drawn_at, data[f"slope_tau{name}"].sel(Q0=0.975)), name
    assert 'id="plot-slopes_tau"' in page


def test_with_own_noise_nothing_of_it_is_said() -> None:
    found, text, page = said(shared.store(2, 12, noise="own"))
    assert "slopes" not in found
    assert "independent noise" not in text
    assert 'id="sharing"' not in page
    assert "rise and fall together" not in page


def test_without_n_the_same_is_said_without_it(told: tuple[xr.DataTree, str, str]) -> None:
    tree = shared.store(2, 12)
    runs = tree["chain"].to_dataset()
    found, text, page = said(tree.assign(chain=xr.DataTree(runs.isel(n=-1, drop=True))))
    top = told[0]["phase"].to_dataset().isel(n=-1)
    assert float(found["phase"]["agreement_share"]) == float(top["agreement_share"])
    values = [found[k].to_dataset()["slope_tau"].values for k in ("slopes",)]
    assert np.array_equal(
        values[0], told[0]["slopes"].to_dataset()["slope_tau"].isel(n=-1).values, equal_nan=True
    )
    assert "most runs go where the limit goes" in text
    assert all("n" not in one.place for one in findings(found["phase"].to_dataset()))
    assert "over that with independent noise" in text
    assert "Change along" in page
