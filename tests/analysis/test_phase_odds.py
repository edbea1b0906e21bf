"""Predicted probabilities of success in the cells of a phase diagram, beside shares of runs."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import special, stats

from hdica.analysis.phase.compute import _exact_p
from hdica.analysis.phase.figure import findings, lines
from hdica.analysis.phase.figure import phase as panels
from hdica.show.finding import verdict_of
from hdica.show.panel import Line
from tests.analysis import toy
from tests.analysis.escapes import group

TAUS, STARTS, N, SEEDS = [0.1, 0.2, 0.3], list(np.round(np.arange(0.2, 0.9, 0.05), 2)), [1000], 40
ASKED = {"simulation": "chain", "x": "tau", "y": "Q0", "variable": "Q", "odds": "normal"}
phase = toy.computed("phase")


def predicted(shift: float = 0.0) -> np.ndarray:
    """An error function of width 0.04 about 0.4, 0.5 and 0.6."""
    tau, start = np.meshgrid(TAUS, STARTS, indexing="ij")
    return special.ndtr((start - 0.3 - tau - shift) / 0.04)


def diagram(shift: float = 0.0, stream: int = 0, noise: str = "own", many: int = 1) -> xr.Dataset:
    """Runs that succeed by that law, shifted; the prediction is not."""
    rng = np.random.default_rng(stream)
    shape = (len(TAUS), len(STARTS), 1, SEEDS * many)
    drawn = rng.random(shape if noise == "own" else shape[-1])
    up = drawn < predicted(shift)[..., None, None] * np.ones(shape)
    end = np.where(up, 0.9, 0.0)
    paths = np.stack([end] * 6, axis=-1)
    coords = {"tau": TAUS, "Q0": STARTS, "n": N}
    runs = {"Q": (("tau", "Q0", "n", "seed", "time"), paths)}
    times = np.arange(6.0)
    chain = xr.Dataset(runs, {**coords, "seed": np.arange(shape[-1]), "time": times})
    theory = xr.Dataset({"predicted": (("tau", "Q0", "n"), predicted()[..., None])}, coords)
    chain = group(chain, "chain", {"time"}).assign_attrs(noise=noise)
    groups = {"chain": chain, "normal": group(theory, "normal", set())}
    return phase(toy.tree(groups, {"phase": ASKED}), ASKED)


def _off(data: xr.Dataset) -> tuple[int, float]:
    """In how many cells the share is off the prediction, and in how many it would be by chance."""
    return int((data["odds_p"] < 0.05).sum()), float(data["odds_chance"].sum())


@pytest.mark.deep
def test_shares_of_the_law_itself_are_off_it_by_chance_alone() -> None:
    off, expected = zip(*(_off(diagram(stream=k)) for k in range(40)), strict=True)
    assert len(set(expected)) == 1
    assert 0 < expected[0] < 0.05 * len(TAUS) * len(STARTS)
    assert abs(np.mean(off) - expected[0]) < 3.5 * (expected[0] / 40) ** 0.5


def _verdict(data: xr.Dataset) -> str:
    some = [f for f in findings(data) if "predicted" in f.quantity.plain]
    assert len(some) == 2
    return verdict_of(some)


def test_a_right_law_agrees_and_one_shifted_by_half_a_width_differs() -> None:
    assert [_verdict(diagram(stream=k)) for k in range(5)].count("agrees") >= 4
    assert _verdict(diagram(0.02)) == "differs"
    assert _verdict(diagram(-0.02)) == "differs"


def test_shared_noise_has_its_error_over_whole_seeds() -> None:
    cells = [diagram(stream=k, noise="shared") for k in range(40)]
    excess = np.array([float(data["excess"].item() / data["excess_se"].item()) for data in cells])
    assert 0.7 < excess.std() < 1.4
    assert "differs" not in [_verdict(data) for data in cells[:10]]
    assert _verdict(diagram(0.03, noise="shared", many=10)) == "differs"


@pytest.mark.parametrize("p0", [0.0, 1e-4, 0.03, 0.4, 1.0])
def test_p_values_are_those_of_the_exact_test(p0: float) -> None:
    hits = np.array([0, 1, 5, 12])
    found, chance = _exact_p(hits, 12, np.full(4, p0))
    wanted = [stats.binomtest(int(k), 12, p0).pvalue for k in hits]
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    every = [stats.binomtest(k, 12, p0).pvalue < 0.05 for k in range(13)]
    assert chance[0] == pytest.approx(stats.binom.pmf(np.arange(13), 12, p0)[every].sum())


def test_the_lines_are_where_the_prediction_is_one_tenth_and_nine_tenths() -> None:
    low, high = lines(diagram().isel(n=0))
    middle = 0.3 + np.array(TAUS)
    assert low.y == pytest.approx(middle - 0.04 * special.ndtri(0.9), abs=1e-6)
    assert high.y == pytest.approx(middle + 0.04 * special.ndtri(0.9), abs=1e-6)


def test_they_are_drawn_and_explained() -> None:
    data = diagram()
    maps = [panel for panel in panels(data) if panel.key == "phase_success"]
    (panel,) = maps
    drawn = [item for item in panel.items if isinstance(item, Line)]
    assert sum("predicted probability" in item.label.plain for item in drawn) == 2
    assert "predicted probability" in panel.caption
    plain = phase(
        toy.tree({"chain": toy.store()["chain"].to_dataset()}, {}), {**toy.PHASE, "limit": None}
    )
    assert all("predicted probability" not in panel.caption for panel in panels(plain))
