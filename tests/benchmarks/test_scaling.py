"""Power laws are fitted right, and what is measured is what is said; no test decides a time."""

import json
import sys

import numpy as np
import pytest

from benchmarks import scaling, stages
from benchmarks.draw import draw
from benchmarks.laws import Law

SIZES = (10, 100, 1000, 10_000)


def law(times, **how):
    return Law("step", "n", "s", SIZES, np.array(times, dtype=float), **how)


def test_an_exact_power_law_has_its_exponent_and_no_error():
    slope, error = law([[3e-6 * n**1.5] * 2 for n in SIZES]).exponent
    assert slope == pytest.approx(1.5, rel=1e-12)
    assert error == pytest.approx(0, abs=1e-9)


def test_the_standard_error_is_that_of_a_straight_line():
    noise = np.random.default_rng(3).normal(0, 0.1, (400, 4, 5))
    found = [law(np.exp(np.log(SIZES)[:, None] + one)) for one in noise]
    slopes = np.array([one.exponent[0] for one in found])
    errors = np.array([one.exponent[1] for one in found])
    assert slopes.mean() == pytest.approx(1, abs=4 * slopes.std() / 20)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(slopes.std(), rel=0.15)


def test_a_fixed_cost_is_left_out_of_the_fit():
    times = [[1 + 1e-2 * n] for n in SIZES]
    assert law(times).exponent[0] < 0.7
    assert law(times, fitted=2).exponent[0] == pytest.approx(np.log10(101 / 11), rel=1e-12)
    sizes, line = law(times, fitted=2).line
    assert sizes == pytest.approx([1000, 10_000])
    assert line == pytest.approx([11, 101])


def test_rows_compare_with_the_smallest_size_and_name_the_exponent():
    rows = law([[1.0, 1.0], [0.5, 0.5], [0.25, 0.25], [0.125, 0.125]]).rows("scaling")
    assert [row.contestant for row in rows] == ["hdica, n = 10", "n = 100", "n = 10³", "n = 10⁴"]
    assert [row.ratio for row in rows] == [1, 0.5, 0.25, 0.125]
    assert {row.case for row in rows} == {"step against n: exponent −0.30 ± 0.00"}


def test_sizes_take_turns():
    asked = []
    found = scaling.measured([1, 2], 2, lambda size: asked.append(size) or float(len(asked)))
    assert asked == [1, 2, 1, 2, 1, 2]
    assert found.tolist() == [[3, 5], [4, 6]]


@pytest.mark.deep
def test_every_stage_is_timed_in_a_process_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["stages", "90"])
    stages.main()
    found = json.loads(capsys.readouterr().out)
    assert found["points"] == 90
    assert found["driver_mib"] > 50
    assert all(found[stage] > 0 for stage in stages.STAGES)


@pytest.mark.parametrize("points", [90, 1000, 10_000, 10**6])
def test_a_sweep_has_about_as_many_points_as_asked(points):
    from hdica.study.study import point_count, study_from

    assert point_count(study_from(stages.content(points))) == pytest.approx(points, rel=0.05)


def test_blocks_of_simulated_workers_are_as_long_as_said():
    asked = []
    ratio = scaling.simulated_ratio(lambda workers: asked.append(workers) or 0.02, 4)
    assert asked == [4]
    assert ratio >= 1


@pytest.mark.parametrize("name", ["plots/scaling.png", "plots/scaling.svg"])
def test_a_picture_of_all_laws_is_written(tmp_path, name):
    per_size = [[n * 1.0, n * 1.1] for n in SIZES]
    found = [
        law(per_size),
        Law("sweep, run", "points", "s", SIZES, np.array(per_size), fitted=2),
        Law("sweep, peak memory", "points", "MiB", SIZES, np.array(per_size)),
        Law("chains, processes", "workers", "s", (1, 2), np.array([[2.0], [1.1]])),
        Law("time over ideal, simulated", "workers", "of ideal", SIZES, np.array(per_size)),
    ]
    draw(found, tmp_path / name)
    written = (tmp_path / name).read_bytes()
    assert len(written) > 10_000
    assert written.startswith((b"\x89PNG", b"<?xml"))
