from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from hdica.sweep.files import blocks, planned, store
from hdica.sweep.files.paths import DamageError
from hdica.sweep.run.block import compute_block
from hdica.sweep.run.plan import prepare
from hdica.sweep.study.study import study_from
from tests.sweep import toy


@pytest.fixture
def walk(out: Path) -> Path:
    """An empty segment of 36 points in blocks of 5."""
    return prepare(study_from(toy.study()), out, block=5)[0].path


def digests(path: Path) -> dict[str, str]:
    files = [p for p in path.rglob("*") if p.is_file() and p.name != "zarr.json"]
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_a_block_is_one_chunk_of_every_result(walk: Path) -> None:
    working = store.open_segment(walk)
    assert (working.size, working.blocks, working.block) == (40, 8, 5)
    for name in (*working.committed, "status", "reason"):
        assert working.array(name).chunks[0] == 5
        assert working.array(name).chunks[1:] == working.array(name).shape[1:]


def test_parameters_are_readable(walk: Path) -> None:
    working = store.open_segment(walk)
    first = '{"source":"laplace","start":{"overlap":0.25},"tau":0.1}'
    assert working.read("parameters", slice(0, 1)).tolist() == [first]
    assert working.read("seed", slice(0, 7)).tolist() == [0, 1, 2, 3, 4, 5, 0]


def test_only_whole_chunks_are_written(walk: Path) -> None:
    working = store.open_segment(walk)
    for block, rows in ((0, 4), (8, 5)):
        values = {"Q": np.zeros((rows, 3)), "cpu_seconds": np.zeros(rows)}
        with pytest.raises(AssertionError, match="is not one chunk"):
            blocks.write(working, block, values, [""] * rows, np.ones(rows, dtype=np.uint8))


def test_growing_starts_a_fresh_block_and_leaves_old_results_alone(walk: Path, out: Path) -> None:
    for block in range(8):
        compute_block(walk, block)
    before = digests(walk)
    larger = toy.study(grid={"tau": [0.1, 0.2, 0.25, 0.3], "Q0": [0.25, 0.5]})
    placed = prepare(study_from(larger), out)[0]
    working = store.open_segment(walk)
    assert working.size == 40 + 15
    assert sorted(placed.rows.tolist()) == [*range(36), *range(40, 52)]
    after = digests(walk)
    planner = {str(working.chunk(name, 0)) for name in ("key", "parameters", "seed")}
    assert {k: v for k, v in after.items() if k not in planner} == {
        k: v for k, v in before.items() if k not in planner
    }


@pytest.mark.parametrize(("places", "block"), [(1, 5), (8, 3), (20, 7)])
def test_points_are_placed_piece_by_piece_as_at_once(
    places: int, block: int, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, larger = [0.1, 0.2, 0.3], [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]
    monkeypatch.setattr(planned, "PLANNED", 1)
    for where in (out, out.with_name("pieces.zarr")):
        for tau in (small, larger):
            grid = {"tau": tau, "Q0": [0.25, 0.5]}
            prepare(study_from(toy.study(grid=grid)), where, block=block)
        monkeypatch.setattr(planned, "PLACES", places)
    whole, pieces = (digests(where.with_suffix(".work")) for where in (out, where))
    assert list(whole.values()) == list(pieces.values())
    working = store.open_segment(next(where.with_suffix(".work").glob("walk-n10-*")))
    assert (working.keys() != b"").sum() == 72


def test_pieces_are_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned, "PLACES", 10)
    assert list(planned._pieces(7, 25, 4)) == [(7, 8), (8, 16), (16, 24), (24, 25)]
    assert list(planned._pieces(0, 8, 20)) == [(0, 8)]
    assert list(planned._pieces(5, 5, 4)) == []


def test_planning_twice_changes_nothing(walk: Path, out: Path) -> None:
    before = digests(out.with_suffix(".work"))
    prepare(study_from(toy.study()), out)
    assert digests(out.with_suffix(".work")) == before


def test_an_append_that_is_cut_short_leaves_unused_places(
    walk: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger = study_from(toy.study(grid={"tau": [0.1, 0.2, 0.25, 0.3], "Q0": [0.25, 0.5]}))
    real = store.zarr.Array.__setitem__

    def cut(array: object, where: object, value: object) -> None:
        if array.path.endswith("key"):  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        real(array, where, value)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(store.zarr.Array, "__setitem__", cut)
        with pytest.raises(KeyboardInterrupt):
            prepare(larger, out)
    rows = prepare(larger, out)[0].rows
    assert len(set(rows.tolist())) == 48
    assert sorted(rows.tolist())[:36] == [*range(36)]


def test_status_is_the_commit_record(walk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    real = blocks.put

    def watched(working: store.Working, files: list[tuple[Path, bytes]]) -> None:
        order.append([path.relative_to(walk).parts[0] for path, _ in files])
        real(working, files)

    monkeypatch.setattr(blocks, "put", watched)
    compute_block(walk, 2)
    assert order == [["Q", "cpu_seconds"], ["status"]]


def test_the_files_of_blocks_are_those_that_zarr_writes(walk: Path, tmp_path: Path) -> None:
    compute_block(walk, 2)
    working = store.open_segment(walk)
    plain = store.zarr.open_group(walk, mode="r")
    for name in ("Q", "cpu_seconds", "status"):
        assert np.array_equal(plain[name][10:15], working.read(name, slice(10, 15)))
    copy = store.zarr.open_group(shutil.copytree(walk, tmp_path / "copy"), mode="r+")
    for name in ("Q", "cpu_seconds"):
        before = (tmp_path / "copy" / working.chunk(name, 2).relative_to(walk)).read_bytes()
        copy[name][10:15] = plain[name][10:15]
        after = (tmp_path / "copy" / working.chunk(name, 2).relative_to(walk)).read_bytes()
        assert before == after


def test_a_chunk_of_nothing_but_nan_is_a_file(out: Path) -> None:
    study = study_from(toy.study(grid={"tau": [0.13], "Q0": [0.5]}))
    path = prepare(study, out, block=100)[0].path
    compute_block(path, 0)
    working = store.open_segment(path)
    assert (working.status()[:6] == store.FAILED).all()
    assert np.isnan(working.read("Q", working.span(0))).all()


def test_a_missing_chunk_is_an_error_that_names_file_and_points(walk: Path) -> None:
    compute_block(walk, 1)
    working = store.open_segment(walk)
    working.chunk("Q", 1).unlink()
    with pytest.raises(DamageError) as caught:
        working.read("Q", working.span(1))
    assert str(working.chunk("Q", 1)) in str(caught.value)
    assert "5 points: source=laplace start={'overlap': 0.25} tau=0.1 n=10 seed=5" in str(
        caught.value
    )


@pytest.mark.faults
def test_every_flipped_bit_is_found(walk: Path) -> None:
    compute_block(walk, 1)
    working = store.open_segment(walk)
    file = working.chunk("Q", 1)
    whole = file.read_bytes()
    random = np.random.default_rng(1)
    for position in random.integers(0, 8 * len(whole), 60).tolist():
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        file.write_bytes(damaged)
        try:
            values = working.read("Q", working.span(1))
        except DamageError:
            continue
        # A flip in the frame's header may change nothing; it may never change a number.
        file.write_bytes(whole)
        assert values.tobytes() == working.read("Q", working.span(1)).tobytes()


@pytest.mark.parametrize("name", ["zarr.json", "Q/zarr.json", "key/zarr.json"])
def test_unreadable_metadata_is_damage(walk: Path, name: str) -> None:
    (walk / name).write_text("{")
    with pytest.raises(DamageError, match="metadata cannot be read"):
        [store.open_segment(walk).array(array) for array in ("key", "Q")]
