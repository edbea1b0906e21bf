"""Chunks of the published store in each other's place, of an older store, or forged: all found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from hdica.cli import call
from hdica.run.runner import run
from hdica.store import publish as dense
from hdica.store.files import DamageError
from hdica.store.paths import manifest_path, work_path
from hdica.store.publish import publish
from hdica.store.published import WRONG, bind
from hdica.store.results import open_results
from hdica.store.sealed import sealed, sealed_text
from hdica.store.verify import repair, verify
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values

pytestmark = pytest.mark.faults

Attack = Callable[[Path, Path], None]
ONE, OTHER = "line/Q/c/0/0/0", "line/Q/c/1/0/0"


def content(taus: list[float]) -> dict[str, object]:
    grid = {"tau": taus, "Q0": [0.25, 0.5]}
    return toy.study(grid=grid, parameters={}, methods={"line": {}, "profile": {}})


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose published arrays have several chunks; beside it what was published before."""
    toy.register()
    out = tmp_path_factory.mktemp("exchange") / "results" / "toy.zarr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "CHUNK_ELEMENTS", 6)
        for taus in ([0.2, 0.3, 0.4], [0.1, 0.2, 0.3]):
            study = study_from(content(taus))
            run(study, out, progress=False)
            publish(study, out)
            if not out.with_name("older").exists():
                shutil.copytree(out, out.with_name("older"))
    (out.parent / "toy.yaml").write_text(json.dumps(content([0.1, 0.2, 0.3])))
    return out.parent


@pytest.fixture
def study(out: Path, template: Path) -> Study:
    """A fresh copy."""
    shutil.copytree(template, out.parent)
    return study_from(content([0.1, 0.2, 0.3]))


def exchanged_by_renames(out: Path, older: Path) -> None:
    aside = out / "aside"
    (out / ONE).rename(aside)
    (out / OTHER).rename(out / ONE)
    aside.rename(out / OTHER)


def exchanged_in_place(out: Path, older: Path) -> None:
    one, other = (out / ONE).read_bytes(), (out / OTHER).read_bytes()
    (out / ONE).write_bytes(other)
    (out / OTHER).write_bytes(one)


def of_another_array(out: Path, older: Path) -> None:
    shutil.copyfile(out / ONE.replace("line", "profile"), out / ONE)


def replayed(out: Path, older: Path) -> None:
    shutil.copyfile(older / ONE, out / ONE)


def replayed_with_its_metadata(out: Path, older: Path) -> None:
    for name in (ONE, "line/Q/zarr.json", "line/zarr.json", "digests.json"):
        shutil.copyfile(older / name, out / name)


def forged(out: Path, older: Path) -> None:
    """Written by Zarr, with checksums that fit."""
    group = zarr.open_group(out, mode="r+", zarr_format=3, use_consolidated=False)
    group["line/Q"][0] = 0.75
    assert zarr.open_array(out / "line/Q", mode="r")[0, 0, 0] == 0.75


def forged_with_digests(out: Path, older: Path) -> None:
    """With a digest that fits, but not in the metadata of the root."""
    forged(out, older)
    document = json.loads((out / "digests.json").read_text())
    files = {**document["files"], ONE: store_digest(out / ONE)}
    (out / "digests.json").write_text(sealed_text({**document, "files": files}))


def store_digest(file: Path) -> str:
    from hdica.store.published import file_digest

    return file_digest(file)


ATTACKS = [
    exchanged_by_renames, exchanged_in_place, of_another_array, replayed,
    replayed_with_its_metadata, forged, forged_with_digests,
]  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("left", ["all", "no manifest", "nothing but the store"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_chunk_passes_in_the_place_of_another(
    study: Study, out: Path, attack: Attack, left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = values(out)
    if left != "all":
        manifest_path(out).unlink()
    if left == "nothing but the store":
        shutil.rmtree(work_path(out))
    attack(out, out.parent / "older")
    verdict = verify(out)
    assert verdict.code == 3
    assert call(["verify", str(out)]) == 3
    named = "digests.json" if attack in (replayed_with_its_metadata, forged_with_digests) else ONE
    assert any(str(out / named) in text for text in verdict.damaged)
    with pytest.raises(DamageError):
        open_results(out)["line"].to_dataset().load()
    assert call(["query", str(out), "--method", "line", "--var", "Q"]) == 3
    assert call(["report", str(out), "--out", str(out.parent / "page")]) == 3
    assert not (out.parent / "page").exists()
    capsys.readouterr()
    if left != "nothing but the store":
        repair(out)
        assert verify(out).code == 1
        publish(study, out)
        assert verify(out).code == 0
        assert values(out) == before


def test_a_whole_older_store_in_the_place_of_the_newest_is_found(study: Study, out: Path) -> None:
    shutil.rmtree(out)
    shutil.copytree(out.parent / "older", out)
    assert verify(out).code == 3
    with pytest.raises(DamageError, match="is not what its manifest says"):
        open_results(out)


def test_what_a_forger_of_every_digest_can_do(study: Study, out: Path) -> None:
    """Digests are no signatures: who may write every file can publish what he likes."""
    forged(out, out)
    bind(out)
    manifest_path(out).unlink()
    assert open_results(out)["line"].Q[0, 0, 0] == 0.75
    # The working store still knows better, and the next publication restores it.
    publish(study, out)
    assert open_results(out)["line"].Q[0, 0, 0] == 0.25


def test_a_store_that_names_no_digests_is_damaged(study: Study, out: Path) -> None:
    before = values(out)
    document = json.loads((out / "zarr.json").read_text())
    document["attributes"].pop("digests")
    (out / "zarr.json").write_text(sealed(document))
    manifest_path(out).unlink()
    with pytest.raises(DamageError, match="does not name the digests of all points"):
        open_results(out)
    assert verify(out).code == 3
    assert repair(out)
    publish(study, out)
    assert values(out) == before


def test_values_are_compared_as_they_are_read_from_disk(study: Study, out: Path) -> None:
    tree = open_results(out)
    exchanged_in_place(out, out)
    with pytest.raises(DamageError, match=WRONG):
        tree["line"].Q.load()
    assert np.isfinite(tree["line"].twice).all()
