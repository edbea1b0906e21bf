"""A study with ``noise: shared``: the same points in law, on streams of n and seed alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from ruamel.yaml import YAML
from scipy import stats

import hdica
from hdica.errors import HdicaError
from hdica.run.block import block_of, compute_and_commit
from hdica.run.plan import plan, tasks
from hdica.run.runner import run
from hdica.store.paths import work_path
from hdica.store.publish import is_current
from hdica.store.query import average
from hdica.store.results import working_status
from hdica.store.sealed import write_sealed
from hdica.store.verify import verify
from hdica.store.working import place
from hdica.study.segment import segments_of
from hdica.study.study import Study, study_from
from tests.sweep.conftest import made

TAUS = [0.02, 0.05, 0.08]
SERIAL = {"mode": "serial"}


def content(noise: str | None = "shared", **changes: Any) -> dict[str, Any]:
    """A study of online ICA with 78 points, as plain data."""
    return {
        "study": "noise",
        "title": "Shared noise",
        "system": "OnlineICA",
        "parameters": {"source": "uniform"},
        "grid": {"tau": TAUS, "Q0": [0.4, 0.8]},
        "times": [0, 0.5, 1],
        "methods": {
            "vector": {"n": [20, 40], "seeds": 4},
            "chain": {"n": 20, "seeds": 4},
            "ode": {},
        },
        **({"noise": noise} if noise else {}),
        **changes,
    }


def computed(study: Study, out: Path, **how: Any) -> dict[str, bytes]:
    """Every published number of a run, as bytes."""
    return made(study, out, **{"cluster": SERIAL, **how})


@pytest.fixture(scope="module")
def study() -> Study:
    return study_from(content())


def test_a_step_size_that_becomes_negative_within_the_times_is_refused(tmp_path: Path) -> None:
    """Before anything runs; a combination that no value says alone fails with the sentence."""
    fall = {"parameters": {"tau": "0.1 - a*b*t"}, "grid": {"a": [1, 10], "b": [0.005, 0.05]}}
    with pytest.raises(HdicaError, match=r"'0.1 - a\*b\*t' is .* at t = 2 and is -0.05 at t = 3"):
        study_from(content(**{**fall, "times": [0, 3]}))
    out = tmp_path / "fall.zarr"
    fallen = study_from(content(None, **fall, methods={"chain": {"n": 20, "seeds": 1}, "ode": {}}))
    counts = run(fallen, out, progress=False, cluster=SERIAL).counts
    assert (counts["done"], counts["failed"]) == (6, 2)


@pytest.fixture(scope="module")
def whole(study: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    out = tmp_path_factory.mktemp("whole") / "noise.zarr"
    return out, computed(study, out)


@pytest.fixture
def tree(whole: tuple[Path, dict[str, bytes]]) -> xr.DataTree:
    return hdica.open_results(whole[0])


def simulated(noise: str, method: str, n: int, tau: float, start: float) -> np.ndarray:
    system = hdica.OnlineICA(tau=tau, source="uniform", start={"overlap": start})
    return hdica.simulate(
        system, n=n, times=[0, 0.5, 1], seeds=range(4), method=method, noise=noise
    ).Q.values


@pytest.mark.deep
def test_every_point_is_the_point_of_the_api(tree: xr.DataTree) -> None:
    for method, n in (("vector", 20), ("vector", 40), ("chain", 20)):
        for tau in TAUS:
            for start in (0.4, 0.8):
                stored = tree[method].Q.sel(tau=tau, Q0=start, n=n).values
                assert np.array_equal(stored, simulated("shared", method, n, tau, start))
                assert not np.array_equal(
                    stored[:, 1:], simulated("own", method, n, tau, start)[:, 1:]
                )


def test_points_share_what_they_can_and_no_more(tree: xr.DataTree) -> None:
    q = tree["vector"].Q
    ends = q.isel(time=-1)
    low, high = (ends.sel(Q0=0.8, tau=tau, n=40).values for tau in TAUS[:2])
    assert np.corrcoef(low, high)[0, 1] > 0.9
    start = q.isel(time=0).values
    assert np.array_equal(start[0], start[1])
    assert len(np.unique(start[0, 0])) == start[0, 0].size


def test_groups_say_whose_noise_they_have(tree: xr.DataTree) -> None:
    assert {name: node.attrs.get("noise") for name, node in tree.children.items()} == {
        "vector": "shared", "chain": "shared", "ode": None
    }  # fmt: skip
    assert "shared noise" in tree["vector"].attrs["kernel"]
    assert "share their noise" in tree["vector"].attrs["equations"]


def counted(out: Path, what: str) -> int:
    """Points with a status, as ``hdica status`` counts them."""
    found = working_status(out)
    assert found is not None
    return found.total(what)


@pytest.mark.deep
@pytest.mark.parametrize("block", [1, 5, 100])
def test_the_size_of_blocks_changes_no_bit(
    study: Study, whole: tuple[Path, dict[str, bytes]], tmp_path: Path, block: int
) -> None:
    assert computed(study, tmp_path / "noise.zarr", block=block) == whole[1]


@pytest.mark.deep
def test_two_processes_change_no_bit(
    study: Study, whole: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    cluster = {"mode": "local", "workers": 2}
    assert computed(study, tmp_path / "noise.zarr", cluster=cluster, block=7) == whole[1]


def test_shards_in_any_order_change_no_bit(
    study: Study, whole: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "noise.zarr"
    for shard in ((2, 3), (0, 3), (1, 3)):
        run(study, out, cluster=SERIAL, progress=False, shard=shard, block=5)
    assert computed(study, out) == whole[1]


@pytest.mark.deep
def test_a_run_that_was_cut_goes_on_with_the_same_bits(
    study: Study, whole: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "noise.zarr"
    for placed in place(study, out)[:2]:
        placed.path.mkdir(parents=True)
        compute_and_commit(block_of(placed, np.arange(5)))
    write_sealed(work_path(out) / "study.json", study.model_dump(mode="json"))
    asked = plan(study, out)
    assert counted(out, "done") == 10
    assert counted(out, "pending") == asked.pending == asked.points - 10
    assert computed(study, out) == whole[1]
    assert counted(out, "pending") == 0
    assert run(study, out, cluster=SERIAL, progress=False).computed == 0
    assert is_current(study, out)
    assert verify(out).code == 0


@pytest.mark.deep
def test_a_grown_grid_keeps_the_bits_of_its_old_points(
    study: Study, whole: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "noise.zarr"
    computed(study_from(content(grid={"tau": TAUS[::2], "Q0": [0.4, 0.8]})), out, block=3)
    assert plan(study, out).pending == plan(study, out).points // 3
    assert computed(study, out) == whole[1]


def test_a_block_holds_the_cells_of_one_seed(study: Study, tmp_path: Path) -> None:
    found = tasks(place(study, tmp_path / "noise.zarr"), block=6)
    shared = [task for task in found if task.placed.segment.method.about.noise == "shared"]
    assert len(shared) == 3 * 4
    for task in shared:
        seeds = task.points % task.placed.segment.per_cell
        assert len(set(seeds.tolist())) == 1
        assert task.points.size == 6


@pytest.mark.deep
def test_own_and_shared_points_have_different_keys_and_places(study: Study, tmp_path: Path) -> None:
    own = study_from(content("own"))
    assert own.content_hash() != study.content_hash()
    assert own.content_hash() == study_from(content(None)).content_hash()
    assert own.full_hash() != study.full_hash()
    pairs = zip(segments_of(own), segments_of(study), strict=True)
    for left, right in pairs:
        same = left.method.name == "ode"
        assert (left.name == right.name) is same
        assert bool((left.keys() == right.keys()).all()) is same
    out = tmp_path / "noise.zarr"
    first = computed(own, out)
    assert plan(study, out).pending == plan(study, out).points - len(TAUS) * 2
    second = computed(study, out)
    assert second["vector/Q"] != first["vector/Q"]
    assert second["ode/Q"] == first["ode/Q"]
    assert computed(own, out) == first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"methods": {"ode": {}}},
            "noise = 'shared' is not allowed (none of ode has noise to share; "
            "these have: vector, chain)",
        ),
        ({"noise": "mine"}, "noise = 'mine' is not allowed"),
    ],
)
def test_a_noise_that_cannot_be_is_refused_in_one_sentence(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(HdicaError) as caught:
        study_from(content(**changes))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_method_without_shared_noise_keeps_its_own() -> None:
    methods = {"chain": {"n": 20, "seeds": 2}, "particles": {"n": 20, "seeds": 2}}
    found = {
        s.method.name: s.method.about.noise
        for s in segments_of(study_from(content(methods=methods)))
    }
    assert found == {"chain": "shared", "particles": "own"}


def test_the_manual_s_example_is_a_study_that_shares_noise() -> None:
    text = (Path(__file__).parents[2] / "config/README.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    found = study_from(YAML(typ="safe", pure=True).load(example))
    vector = next(s for s in segments_of(found) if s.method.name == "vector")
    assert vector.method.about.noise == "shared"
    assert f"All {vector.cells.size} points of a seed" in text


def test_a_block_holds_many_points_of_a_seed_however_long_they_take(tmp_path: Path) -> None:
    taus = np.linspace(0.01, 0.1, 40).round(3).tolist()
    long = {
        "grid": {"tau": taus},
        "times": [0, 40],
        "methods": {"vector": {"n": 10**4, "seeds": 3}},
    }
    for noise, block in (("own", 1), ("shared", 32)):
        (segment,) = plan(study_from(content(noise, **long)), tmp_path / "long.zarr").segments
        assert segment.block == block


def test_the_error_of_a_mean_over_cells_counts_seeds_alone() -> None:
    seeds = np.array([0.1, 0.4, 0.2, 0.9])
    data = xr.Dataset({"Q": (("tau", "seed"), seeds + np.array([[0.0], [0.5]]))})
    for noise in ("shared", "own"):
        found = average(data.assign_attrs(noise=noise), ["tau", "seed"], ["Q"])
        assert float(found["Q"]) == pytest.approx(data.Q.values.mean())
        assert float(found["Q_se"]) == pytest.approx(stats.sem(seeds))
    # The cells of one seed have a spread, which is no error.
    assert "Q_se" not in average(data, ["tau"], ["Q"])
