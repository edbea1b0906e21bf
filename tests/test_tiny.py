"""The study of first steps, whole: the same bits however it is computed, and the truth in it."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hdica
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.verify import verify
from hdica.study.study import load_study

STUDY = Path(__file__).parents[1] / "config/studies/tiny.yaml"


def computed(out: Path, **how: object) -> xr.DataTree:
    study = load_study(STUDY)
    assert run(study, out, progress=False, **how).complete  # type: ignore[arg-type]
    publish(study, out)
    return hdica.open_results(out)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.DataTree]:
    out = tmp_path_factory.mktemp("serial") / "tiny.zarr"
    return out, computed(out, cluster={"mode": "serial"})


@pytest.mark.deep
def test_two_processes_and_other_blocks_give_the_same_bits(
    serial: tuple[Path, xr.DataTree], tmp_path: Path
) -> None:
    parallel = computed(tmp_path / "tiny.zarr", cluster={"mode": "local", "workers": 2}, block=7)
    _, tree = serial
    assert set(parallel.children) == set(tree.children)
    for name, node in tree.children.items():
        for variable in set(node.data_vars) - {"cpu_seconds"}:
            left, right = node[variable], parallel[name][variable]
            assert left.dims == right.dims
            assert left.values.tobytes() == right.values.tobytes(), f"{name}/{variable}"


def test_it_has_some_hundreds_of_points_of_every_method(serial: tuple[Path, xr.DataTree]) -> None:
    out, tree = serial
    done = {name: int((node.status == 1).sum()) for name, node in tree.children.items()}
    assert set(done) == set(load_study(STUDY).methods)
    assert 300 <= sum(done.values()) <= 1000
    assert verify(out).code == 0


def test_a_point_of_the_store_is_the_point_of_the_api(serial: tuple[Path, xr.DataTree]) -> None:
    _, tree = serial
    ica = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.8})
    times = tree["chain"].time.values
    stored = tree["chain"].Q.sel(tau=0.05, Q0=0.8, n=400, seed=[0, 5])
    again = hdica.simulate(ica, n=400, times=times, seeds=[0, 5], method="chain").Q
    assert np.array_equal(stored.values, again.values)
    limit = hdica.limit(ica, times=times).Q
    assert np.array_equal(tree["ode"].Q.sel(tau=0.05, Q0=0.8).values, limit.values)
    mean = tree["chain"].Q.sel(tau=0.05, Q0=0.8, n=1600)
    error = mean.std("seed", ddof=1) / np.sqrt(mean.sizes["seed"])
    # Eleven times, so four and a half standard errors; the bias at n = 1600 is far below them.
    assert bool((abs(mean.mean("seed") - limit) < 4.5 * error).all())


def test_nothing_succeeds_above_the_critical_step_size(
    serial: tuple[Path, xr.DataTree],
) -> None:
    from hdica.analysis.phase.compute import phase
    from hdica.analysis.reading import requested

    _, tree = serial
    settings = requested(tree, "phase")
    assert settings is not None
    at = phase(tree, settings).sel(tau=0.08, Q0=0.8)
    assert float(at["critical_value"][0]) < 0.08
    # Every run is still large at t = 5, and every curve falls.
    assert (at["overlap"] > 0.7).all()
    assert at["successes"].values.tolist() == [0, 0, 0]
    assert at["decaying"].values.tolist() == [16, 16, 16]
