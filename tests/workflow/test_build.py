"""What the workflow builds, and what it builds again after a change."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from hdica import open_results
from hdica.store.verify import repair, verify
from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.deep


def report(checkout: Checkout, study: str = "first") -> Path:
    return checkout.folder / "results" / study / "report.html"


def shard(checkout: Checkout, study: str = "first") -> dict[str, object]:
    (path,) = (checkout.folder / f"results/{study}.shards").glob("*.json")
    content: dict[str, object] = json.loads(path.read_text())
    return content


def numbers(checkout: Checkout, study: str) -> xr.Dataset:
    return open_results(checkout.folder / f"results/{study}.zarr")["chain"].to_dataset().load()


def test_dry_run_lists_every_job_and_makes_nothing(checkout: Checkout) -> None:
    only = {"first"}
    assert checkout.jobs("-n") == {"shard": only, "publish": only, "report": only}
    assert not (checkout.folder / "results").exists()


def test_reproduce_builds_the_figures_and_nothing_else(checkout: Checkout) -> None:
    checkout.study("figure")
    checkout.config("studies: [first]\nfigures: [figure]\n")
    only = {"figure"}
    assert checkout.jobs("-n", "reproduce") == {"shard": only, "publish": only, "report": only}


def test_a_broken_figure_stops_reproduce_and_not_the_rest(checkout: Checkout) -> None:
    checkout.study("figure", tau="[-1]")
    checkout.config("studies: [first]\nfigures: [figure]\n")
    assert checkout.jobs("-n")["report"] == {"first"}
    done = checkout.snakemake("-n", "reproduce")
    assert done.returncode != 0
    assert "tau = -1.0 is not allowed" in done.stdout


@pytest.mark.parametrize("study", ["first", "second"])
def test_build_leaves_store_report_figures_and_data(pristine: Checkout, study: str) -> None:
    results = pristine.folder / "results"
    manifest = json.loads((results / f"{study}.manifest.json").read_text())
    cells = {"first": 4, "second": 2}[study]
    assert manifest["counts"]["chain"]["done"] == cells * 2 * 4
    assert manifest["counts"]["ode"]["done"] == cells
    assert numbers(pristine, study).Q.notnull().all()
    page = report(pristine, study)
    assert "<html" in page.read_text()
    suffixes = {path.suffix for path in page.with_name("figures").iterdir()}
    assert {".svg", ".pdf"} <= suffixes
    assert xr.open_datatree(page.with_name("aggregate.nc"), engine="h5netcdf").children


def test_jobs_log_their_progress_and_their_cost(pristine: Checkout) -> None:
    logs = pristine.folder / "logs/first"
    assert "36 of 36 points" in (logs / "shard-0-of-1.log").read_text()
    assert (logs / "shard-0-of-1.tsv").read_text().startswith("s\t")


def test_second_run_does_nothing(built: Checkout) -> None:
    before = report(built).stat().st_mtime_ns
    done = built.snakemake()
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout
    assert report(built).stat().st_mtime_ns == before


@pytest.mark.parametrize("what", ["page", "folder"])
def test_deleted_report_is_all_that_is_built_again(built: Checkout, what: str) -> None:
    if what == "page":
        report(built).unlink()
        assert built.jobs() == {"report": {"first"}}
        assert report(built).exists()
    else:
        shutil.rmtree(report(built).parent)
        assert built.jobs("-n") == {"report": {"first"}}


def test_new_title_computes_nothing(built: Checkout) -> None:
    built.study("first", title="Another title altogether")
    assert built.jobs("-n") == {"publish": {"first"}, "report": {"first"}}


def test_wider_grid_computes_the_new_points_of_that_study_alone(built: Checkout) -> None:
    before = numbers(built, "first")
    built.study("first", tau="[0.02, 0.035, 0.05]")
    only = {"first"}
    assert built.jobs("-n") == {"shard": only, "publish": only, "report": only}
    built.jobs("results/first.manifest.json")
    assert shard(built)["computed"] == 2 * 2 * 4 + 2  # one tau: Q0 x n x seed, and the ODE
    after = numbers(built, "first")
    assert after.tau.values.tolist() == [0.02, 0.035, 0.05]
    kept = after.sel(tau=[0.02, 0.05])
    np.testing.assert_array_equal(kept.Q, before.Q)
    np.testing.assert_array_equal(kept.cpu_seconds, before.cpu_seconds)  # the very same runs


def test_two_shards_give_the_bits_of_one(pristine: Checkout, checkout: Checkout) -> None:
    checkout.config("studies: first\nshards: 2\ncluster: {mode: serial}\n")
    # Small blocks are chosen by cost; a shard of a small study may be left without any.
    assert checkout.jobs("results/first.manifest.json") == {
        "shard": {"first"},
        "publish": {"first"},
    }
    parts = [json.loads(p.read_text()) for p in checkout.folder.glob("results/first.shards/*.json")]
    assert sorted(part["shard"] for part in parts) == [[0, 2], [1, 2]]
    assert all(part["computed"] > 0 for part in parts)
    assert sum(part["computed"] for part in parts) == 36
    one, two = numbers(pristine, "first"), numbers(checkout, "first")
    np.testing.assert_array_equal(one.Q, two.Q)


def test_a_repaired_store_is_completed_by_the_workflow(built: Checkout) -> None:
    before = numbers(built, "first")
    results = built.folder / "results/first.zarr"
    block = sorted((built.folder / "results").glob("first.work/chain-*/*.block"))[0]
    data = bytearray(block.read_bytes())
    data[len(data) // 2] ^= 0xFF
    block.write_bytes(bytes(data))
    assert repair(results)
    done = built.snakemake()
    assert done.returncode == 0, done.stderr
    assert "Nothing to be done" not in done.stdout
    assert verify(results).code == 0
    assert numbers(built, "first").Q.identical(before.Q)
