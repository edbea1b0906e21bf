"""The working store: a block is a file, its rename the commit, a listing what is done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.run.plan import tasks
from hdica.run.runner import run
from hdica.status import DONE, FAILED, PENDING
from hdica.store import sealed as blocks
from hdica.store import working
from hdica.store.files import DamageError, TornError
from hdica.store.publish import publish
from hdica.store.sealed import SchemaError, encoded, name_of, read_block, texts_in, write_block
from hdica.store.working import Placed, described, list_blocks, place
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.harm import cut, empty, flip


@pytest.fixture
def study() -> Study:
    return study_from(toy.study())


@pytest.fixture
def walk(study: Study, out: Path) -> Placed:
    """A segment of 36 points in 8 blocks, the last of one point, all of them computed."""
    run(study, out, progress=False, block=5)
    return place(study, out)[0]


def files(placed: Placed) -> list[Path]:
    return sorted(placed.path.glob("*.block"))


def test_a_block_is_one_file_with_everything_about_its_points(walk: Placed) -> None:
    assert len(files(walk)) == 8
    sizes = [len(read_block(file).arrays["status"]) for file in files(walk)]
    assert sorted(sizes) == [1, *[5] * 7]
    block = max(map(read_block, files(walk)), key=lambda block: block.arrays["seed"].size)
    assert {*block.arrays} == {"key", "status", "cpu_seconds", "seed", "cell", "parameters", "Q"}
    assert block.arrays["Q"].shape == (5, 3)
    assert block.about["segment"] == walk.path.name
    assert (block.about["system"], block.about["method"], block.about["n"]) == ("Toy", "walk", 10)
    texts = texts_in(block.arrays["parameters"])
    assert all(json.loads(text)["source"] == "laplace" for text in texts)
    assert {*block.arrays["cell"].tolist()} == {*range(len(texts))}


def test_the_name_of_a_block_is_the_digest_of_its_keys(walk: Placed) -> None:
    for file in files(walk):
        assert file.name == name_of(blocks.keys_in(read_block(file).arrays))


def test_points_are_where_their_keys_say_whatever_the_order_of_blocks(walk: Placed) -> None:
    points = np.arange(walk.rows.size)
    together = walk.read("Q", points, np.nan, "f8")
    backwards = walk.read("Q", points[::-1], np.nan, "f8")
    assert np.array_equal(together, backwards[::-1])
    for point in (0, 7, 35):
        alone = walk.read("Q", np.array([point]), np.nan, "f8")
        assert np.array_equal(alone[0], together[point])


def test_a_larger_grid_leaves_old_blocks_alone(walk: Placed, out: Path) -> None:
    before = {file: file.read_bytes() for file in files(walk)}
    larger = study_from(toy.study(grid={"tau": [0.1, 0.2, 0.25, 0.3], "Q0": [0.25, 0.5]}))
    pending = place(larger, out)[0]
    assert (pending.statuses == PENDING).sum() == 12
    run(larger, out, progress=False, block=5)
    assert {file: file.read_bytes() for file in before} == before
    assert len(files(walk)) == 8 + 3
    assert (place(larger, out)[0].statuses == DONE).all()


def test_a_block_that_is_gone_is_pending(walk: Placed, study: Study, out: Path) -> None:
    (file,) = files(walk)[2:3]
    count = len(read_block(file).arrays["status"])
    file.unlink()
    assert (place(study, out)[0].statuses == PENDING).sum() == count
    assert run(study, out, progress=False).computed == count


def test_of_two_blocks_with_a_point_the_one_where_it_did_not_fail_counts(
    walk: Placed, study: Study, out: Path
) -> None:
    block = read_block(files(walk)[0])
    keys = blocks.keys_in(block.arrays)[:1]
    failed = {
        **{
            name: values[:1]
            for name, values in block.arrays.items()
            if name not in ("key", "parameters")
        },
        "status": np.full(1, FAILED, dtype=np.uint8),
        "parameters": block.arrays["parameters"],
    }
    write_block(walk.path, block.about, keys, failed)
    assert (place(study, out)[0].statuses == DONE).all()


def test_only_new_blocks_are_opened_by_a_second_listing(
    walk: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_blocks(walk.path)
    opened: list[Path] = []
    real = working.read_block

    def counted(path: Path, names: Any = None) -> Any:
        opened.append(path)
        return real(path, names)

    monkeypatch.setattr(working, "read_block", counted)
    list_blocks(walk.path)
    assert opened == []
    file = files(walk)[0]
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    list_blocks(walk.path)
    assert opened == [file]


def test_a_block_of_nothing_but_nan_says_why(out: Path) -> None:
    study = study_from(toy.study(grid={"tau": [0.13], "Q0": [0.5]}))
    run(study, out, progress=False)
    walk = place(study, out)[0]
    assert (walk.statuses == FAILED).all()
    assert np.isnan(walk.read("Q", np.arange(6), 0.0, "f8")).all()
    assert "unlucky" in walk.read("reason", np.array([0]), "", object)[0]


def test_a_damaged_block_is_an_error_that_names_file_and_points(walk: Placed, out: Path) -> None:
    first = "points: source=laplace start={'overlap': 0.25} tau=0.1 n=10 seed=0; "
    file = next(f for f in files(walk) if first in described(f))
    content = bytearray(file.read_bytes())
    content[-10] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamageError) as caught:
        walk.read("Q", np.arange(36), np.nan, "f8")
    text = f"{file} is damaged, the digest of Q is wrong (5 {first}"
    assert str(caught.value).startswith(text)


@pytest.mark.faults
def test_every_flipped_bit_is_found(walk: Placed) -> None:
    file = files(walk)[1]
    whole = file.read_bytes()
    random = np.random.default_rng(1)
    positions = [*range(0, 8 * 40), *random.integers(0, 8 * len(whole), 200).tolist()]
    for position in positions:
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        file.write_bytes(damaged)
        with pytest.raises(DamageError) as caught:
            read_block(file)
        assert str(file) in str(caught.value)
    file.write_bytes(whole)
    assert read_block(file)


@pytest.mark.faults
def test_what_a_power_loss_leaves_of_a_file_is_told_from_what_somebody_changed(
    walk: Placed,
) -> None:
    file = files(walk)[1]
    whole = file.read_bytes()
    torn = [b"", whole[:7], whole[:60], whole[:-1], bytes(len(whole)), whole[:-40] + bytes(40)]
    for content in torn:
        file.write_bytes(content)
        with pytest.raises(TornError):
            read_block(file)
    for content in (whole + b"\0", b"{}" + whole[2:], whole[:-9] + b"x" + whole[-8:]):
        file.write_bytes(content)
        with pytest.raises(DamageError) as caught:
            read_block(file)
        assert not isinstance(caught.value, TornError)


def test_a_torn_block_is_computed_again_unasked_and_a_changed_one_is_not(
    walk: Placed, study: Study, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hdica.run.compute import compute
    from hdica.run.settings import ClusterSettings

    for harm in (cut, empty):
        file = files(walk)[3]
        harm(file)
        notes: list[str] = []
        compute(study, out, ClusterSettings(), progress=False, tell=notes.append)
        assert [str(file) in note and "pending" in note for note in notes] == [True]
        assert (place(study, out)[0].statuses == DONE).all()
    flip(files(walk)[3])
    with pytest.raises(DamageError):
        compute(study, out, ClusterSettings(), progress=False, tell=notes.append)


def test_a_block_under_another_name_or_of_another_segment_is_damage(
    walk: Placed, study: Study, out: Path
) -> None:
    one, two = files(walk)[:2]
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    for file in (one, two):
        with pytest.raises(DamageError, match="it holds other points than its name says"):
            read_block(file)
    with pytest.raises(DamageError, match="other points"):
        list_blocks(walk.path)


LIES: list[tuple[dict[str, Any], str]] = [
    ({"dtype": "|O"}, "such as hdica never writes"),
    ({"shape": [2**40]}, "such as hdica never writes"),
    ({"shape": [-1]}, "such as hdica never writes"),
    ({"shape": "deep"}, "header cannot be read"),
    ({"size": -1}, "such as hdica never writes"),
]


@pytest.mark.parametrize(("lie", "message"), LIES)
def test_a_block_that_lies_about_itself_is_refused_before_it_takes_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: dict[str, Any], message: str
) -> None:
    """With digests that fit, as somebody can write it who may write the folder."""
    real = json.dumps

    def lying(content: Any, **how: Any) -> str:
        if isinstance(content, dict) and "arrays" in content:
            place = {"dtype": 1, "shape": 2, "size": 3}[next(iter(lie))]
            content["arrays"][1][place] = next(iter(lie.values()))
        return real(content, **how)

    keys = np.array([bytes([k + 1] * 32) for k in range(3)], dtype="S32")
    arrays = {"status": np.ones(3, "u1"), "cpu_seconds": np.zeros(3)}
    monkeypatch.setattr(blocks.json, "dumps", lying)
    file = tmp_path / name_of(keys)
    file.write_bytes(encoded({}, keys, arrays))
    monkeypatch.undo()
    with pytest.raises(DamageError, match=message):
        read_block(file)


def test_a_frame_that_decodes_to_more_than_its_header_says_is_refused(tmp_path: Path) -> None:
    import hashlib
    import tracemalloc

    bomb = bytes(blocks._ZSTD.encode(bytes(40_000_000)))
    keys = np.array([b"k" * 32], dtype="S32")
    whole = encoded({}, keys, {"status": np.ones(1, "u1"), "cpu_seconds": np.zeros(1)})
    start = len(blocks.MAGIC) + 8
    length = int.from_bytes(whole[len(blocks.MAGIC) : start], "little")
    header = json.loads(whole[start : start + length])
    frames = whole[start + length + 32 :]
    own = header["arrays"][1][3]
    begin = header["arrays"][0][3]
    header["arrays"][1][3:] = [len(bomb), hashlib.sha256(bomb).hexdigest()]
    text = json.dumps(header).encode()
    head = blocks.MAGIC + len(text).to_bytes(8, "little") + text
    file = tmp_path / name_of(keys)
    parts = [head, hashlib.sha256(head).digest(), frames[:begin], bomb, frames[begin + own :]]
    file.write_bytes(b"".join(parts))
    tracemalloc.start()
    try:
        with pytest.raises(DamageError, match="would decode to another size"):
            read_block(file)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_links_and_pipes_are_not_read(walk: Placed, tmp_path: Path) -> None:
    file = files(walk)[0]
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(DamageError, match="it is no regular file"):
        read_block(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DamageError, match="it is no regular file"):
        read_block(file)


def test_the_working_store_of_an_earlier_version_is_refused_in_one_sentence(
    study: Study, out: Path
) -> None:
    folder = place(study, out)[0].path
    (folder / "key").mkdir(parents=True)
    (folder / "zarr.json").write_text("{}")
    with pytest.raises(
        SchemaError, match=r"toy\.work is of an earlier version of hdica \(remove it"
    ):
        run(study, out, progress=False)
    with pytest.raises(HdicaError, match="earlier version"):
        publish(study, out)


def test_tasks_are_the_pending_points_once_each(walk: Placed, study: Study, out: Path) -> None:
    files(walk)[0].unlink()
    placed = place(study_from(toy.study(grid={"tau": [0.1, 0.2, 0.3, 0.4], "Q0": [0.5]})), out)
    whole = tasks(placed, block=4)
    shards = [task for index in range(3) for task in tasks(placed, (index, 3), block=4)]
    for found in (whole, shards):
        for each in placed:
            points = np.concatenate(
                [np.zeros(0, int), *(t.points for t in found if t.placed is each)]
            )
            assert sorted(points.tolist()) == np.flatnonzero(each.statuses == PENDING).tolist()
