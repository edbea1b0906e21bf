"""The sweeps compute the same numbers, bit for bit; how fast each is, no test decides."""

import numpy as np
import pytest

from benchmarks import sweep
from benchmarks.rivals.point import Grid, grid

FEW = Grid((0.02, 0.1), (0.0, 0.3, 0.9), 4)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return sweep.bare(FEW, tmp_path_factory.mktemp("bare"), 1)


def test_the_plain_loop_covers_every_point(expected):
    assert expected.shape == (2, 3, 4, 5)
    assert np.unique(expected[..., -1]).size == 24
    assert np.abs(expected[..., 0] - np.array(FEW.q0)[:, None]).max() < 0.4


def test_our_pipeline_keeps_the_same_bits(expected, tmp_path):
    assert np.array_equal(sweep.ours(FEW, tmp_path, 1), expected)


@pytest.mark.parametrize("name", list(sweep.RIVALS))
def test_a_rival_keeps_the_same_bits(name, expected, tmp_path):
    pytest.importorskip(name)
    rival = sweep.rivals()[name]
    assert np.array_equal(rival.sweep(FEW, tmp_path, 2), expected)
    assert any(tmp_path.iterdir())
    if hasattr(rival, "stop"):
        rival.stop()


def test_every_question_has_the_same_answer(monkeypatch):
    monkeypatch.setattr(sweep, "RIVALS", {})
    found = [one.run() for one in sweep.contestants(FEW, small=True)]
    assert found == pytest.approx([found[0]] * 2, rel=1e-14)


def test_the_full_sweep_has_ten_thousand_points():
    assert np.prod(grid(sweep.POINTS).shape[:3]) == 10_000
