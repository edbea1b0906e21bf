"""One byte wrong in every kind of file: it is named, its points are made pending, and come back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numcodecs.zstd import Zstd

from hdica.cli import call
from hdica.run.runner import run
from hdica.status import PENDING
from hdica.store.files import DamageError
from hdica.store.paths import manifest_path, work_path
from hdica.store.publish import publish
from hdica.store.published import codec
from hdica.store.results import open_results
from hdica.store.sealed import frame_size, keys_in, read_block
from hdica.store.verify import repair, verify
from hdica.store.working import place
from hdica.study.study import Study, study_from
from tests.sweep import flips, toy
from tests.sweep.conftest import values
from tests.sweep.harm import cut, empty, flip, remove

pytestmark = pytest.mark.faults

Harm = Callable[[Path], None]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toy.register()
    out = tmp_path_factory.mktemp("flips") / "results" / "toy.zarr"
    out.parent.mkdir()
    flips.made(out)
    (out.parent / "toy.yaml").write_text(json.dumps(flips.CONTENT), encoding="utf-8")
    return out.parent


@pytest.fixture(scope="module")
def readers(template: Path) -> flips.Readers:
    toy.register()
    return flips.Readers(study_from(flips.CONTENT), template / "toy.zarr")


@pytest.fixture
def study(out: Path, template: Path) -> Study:
    """A fresh copy of the computed and published study."""
    shutil.copytree(template, out.parent)
    return study_from(flips.CONTENT)


KINDS = [
    "block", "manifest", "published array metadata", "published chunk of Q",
    "published chunk of cpu_seconds", "published chunk of fixed_point",
    "published chunk of misclassified", "published chunk of mse", "published chunk of reason",
    "published chunk of root", "published chunk of seed", "published chunk of snapshot",
    "published chunk of status", "published chunk of step", "published chunk of tau",
    "published digests", "published group metadata", "published root metadata",
    "record of a shard", "record of the study",
]  # fmt: skip


@pytest.mark.deep
def test_there_are_no_other_kinds_of_files(template: Path) -> None:
    found = flips.files(template / "toy.zarr")
    assert set(KINDS) <= set(found)
    others = {name.rsplit(" ", 1)[0] for name in set(found) - set(KINDS)}
    assert others <= {"published chunk of"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_flip_is_found_and_never_read(readers: flips.Readers, kind: str) -> None:
    random = np.random.default_rng(KINDS.index(kind))
    file = flips.files(readers.out)[kind][-1]
    flips.trial(readers, file, int(random.integers(8 * file.stat().st_size)))


@pytest.mark.deep
@settings(
    max_examples=20, derandomize=True, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(data=st.data())
def test_any_bit_of_any_file(readers: flips.Readers, data: st.DataObject) -> None:
    found = flips.files(readers.out)
    file = data.draw(st.sampled_from(found[data.draw(st.sampled_from(sorted(found)))]))
    flips.trial(readers, file, data.draw(st.integers(0, 8 * file.stat().st_size - 1)))


@pytest.mark.parametrize(
    ("kind", "harm"),
    [(kind, remove) for kind in KINDS]
    + [(kind, (cut, empty)[place % 2]) for place, kind in enumerate(KINDS)],
)
def test_what_is_cut_short_or_gone_is_found(readers: flips.Readers, kind: str, harm: Harm) -> None:
    file = flips.files(readers.out)[kind][0]
    gone = harm is remove
    if gone and kind in ("block", "record of a shard", "manifest"):
        pytest.skip("nobody can know that there was one")
    whole = file.read_bytes()
    harm(file)
    try:
        verdict = verify(readers.out)
        assert verdict.code == 3
        assert any(str(file) in text for text in verdict.damaged)
        if not (gone and kind == "record of the study"):
            readers.refusals(file)
    finally:
        file.write_bytes(whole)


def test_what_does_not_belong_to_a_store_is_found_and_put_aside(study: Study, out: Path) -> None:
    segment = place(study, out)[0].path
    strays = [out / "notes.txt", out / "walk" / "Q" / "c" / "more.md", segment / "mine"]
    for file in strays:
        file.write_text("of somebody")
    leftover = segment / ".hdica-1-0123abcd.partial"
    leftover.write_text("of a killed writer")
    verdict = verify(out)
    assert verdict.code == 3
    assert [any(str(f) in text for text in verdict.damaged) for f in strays] == [True] * 3
    assert not any(str(leftover) in text for text in verdict.damaged)
    before = values(out)
    repair(out)
    assert verify(out).code == 0
    assert values(out) == before
    aside = [p.read_text() for p in (out.parent / "toy.strays").iterdir()]
    assert aside == ["of somebody"] * 3


def pending(study: Study, out: Path) -> set[tuple[str, int]]:
    """Segments and numbers of the points that the working store does not have."""
    return {
        (placed.path.name, point)
        for placed in place(study, out)
        for point in np.flatnonzero(placed.statuses == PENDING).tolist()
    }


def points_in(study: Study, out: Path, file: Path) -> set[tuple[str, int]]:
    """Segments and numbers of the points that a block holds."""
    placed = next(p for p in place(study, out) if p.path == file.parent)
    points = np.flatnonzero(np.isin(placed.keys, keys_in(read_block(file).arrays)))
    return {(placed.path.name, point) for point in points.tolist()}


@pytest.mark.deep
@pytest.mark.parametrize("number", [0, 4, 9])
@pytest.mark.parametrize("harm", [flip, cut, remove])
def test_exactly_the_points_of_a_block_become_pending(
    study: Study, out: Path, number: int, harm: Harm, calls: Path
) -> None:
    before = values(out)
    file = flips.files(out)["block"][number]
    expected = points_in(study, out, file)
    harm(file)
    assert bool(repair(out)) == (harm is not remove)
    assert pending(study, out) == expected != set()
    assert verify(out).code == 1
    assert run(study, out, progress=False).computed == len(expected)
    assert len(calls.read_text().splitlines()) == len(expected)
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


@pytest.mark.deep
@pytest.mark.parametrize(
    "kind",
    [f"published chunk of {name}" for name in ("Q", "status", "reason", "fixed_point", "step")],
)
def test_exactly_the_points_of_a_published_chunk_become_pending(
    study: Study, out: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.store.publish.CHUNK_ELEMENTS", 20)
    publish(study, out)
    before = values(out)
    file = flips.files(out)[kind][-1]
    group, array = file.relative_to(out).parts[:2]
    opened = zarr.open_group(out, mode="r", use_consolidated=False)
    own, points = opened[f"{group}/{array}"], opened[f"{group}/status"]
    dims = points.metadata.dimension_names or ()
    index = [int(part) for part in file.relative_to(out).parts[3:]]
    expected = np.zeros(points.shape, dtype=bool)
    slices = [slice(i * c, i * c + c) for i, c in zip(index, own.chunks, strict=True)]
    expected[tuple(slices[: len(dims)])] = True
    flip(file)
    about = repair(out)
    named = own.metadata.dimension_names or ()
    if array in named or named[: len(dims)] != dims:
        assert "publishes again" in about[0]
    else:
        found = open_results(out)[group].to_dataset().load()
        assert np.array_equal(found.status == PENDING, expected)
        for name in found.attrs["outputs"].split():
            assert found[name].where(found.status == PENDING, drop=True).isnull().all()
    assert verify(out).code == 1
    assert run(study, out, progress=False).computed == 0
    publish(study, out)
    assert values(out) == before
    assert verify(out).code == 0


@pytest.mark.deep
@pytest.mark.parametrize(
    "kind",
    ["manifest", "published array metadata", "published group metadata",
     "published root metadata", "record of a shard", "record of the study"],
)  # fmt: skip
def test_what_holds_no_points_is_withdrawn_or_written_again(
    study: Study, out: Path, kind: str
) -> None:
    before = values(out)
    file = flips.files(out)[kind][0]
    flip(file)
    assert str(file) in " ".join(repair(out))
    assert verify(out).code in (0, 1)
    assert pending(study, out) == set()
    assert not list((out.parent / "toy.shards").glob("*"))
    run(study, out, progress=False)
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


@pytest.mark.deep
@pytest.mark.parametrize("kind", [*KINDS[::3], "published root metadata"])
def test_the_command_line_says_one_sentence_or_is_right(
    study: Study, out: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, yaml = flips.files(out)[kind][0], str(out.parent / "toy.yaml")
    questions = [
        ["query", str(out), "--method", "walk", "--to", "csv"],
        ["status", str(out), "--json"],
        ["publish", yaml, "--out", str(out)],
        ["run", yaml, "--out", str(out), "--quiet"],
    ]
    right = []
    for question in questions[:2]:
        assert call(question) == 0
        right.append(capsys.readouterr().out)
    before = values(out)
    flip(file)
    assert call(["verify", str(out)]) == 3
    assert str(file) in capsys.readouterr().err
    for question, expected in zip(questions, [*right, "", ""], strict=True):
        code = call(question)
        said = capsys.readouterr()
        assert code in (0, 3)
        if code:
            assert said.err.count("\n") == 1
            assert str(file) in said.err
        else:
            assert said.out == expected or "computed" in said.err
    try:
        read, complaint = values(out), str(file)
    except DamageError as exc:
        read, complaint = before, str(exc)
    assert read == before
    assert str(file) in complaint


@pytest.mark.deep
def test_every_bit_of_a_block(study: Study, out: Path) -> None:
    file = min(flips.files(out)["block"], key=lambda file: file.stat().st_size)
    for bit in range(0, 8 * file.stat().st_size, 3):
        with flips.flipped(file, bit), pytest.raises(DamageError) as caught:
            read_block(file)
        assert str(file) in str(caught.value)


def test_zstd_alone_never_gives_other_data_but_lets_flips_through() -> None:
    """Why CRC32C follows: some bits of a frame mean nothing to a decoder."""
    found = {"refused": 0, "the same": 0}
    for values_ in (np.ones(5, "u1"), np.linspace(0, 1, 40), np.zeros(4096, "u1")):
        raw = values_.tobytes()
        array = zarr.create_array(
            zarr.storage.MemoryStore(), shape=values_.shape, dtype=values_.dtype,
            chunks=values_.shape, compressors=codec()[:1], config={"write_empty_chunks": True},
        )  # fmt: skip
        array[:] = values_
        (whole,) = [v.to_bytes() for k, v in array.store._store_dict.items() if "c/" in k]
        for bit in range(8 * len(whole)):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            try:
                if frame_size(bytes(damaged)) != len(raw):
                    raise ValueError
                assert Zstd().decode(bytes(damaged)) == raw
                found["the same"] += 1
            except (RuntimeError, ValueError):
                found["refused"] += 1
    assert found["refused"] > 50 * max(1, found["the same"])


def test_plain_xarray_sees_flips_in_chunks(study: Study, out: Path) -> None:
    file = flips.files(out)["published chunk of Q"][0]
    group = file.relative_to(out).parts[0]
    for bit in range(0, 8 * file.stat().st_size, 97):
        with flips.flipped(file, bit), pytest.raises((ValueError, RuntimeError)):
            xr.open_datatree(out, engine="zarr")[group].Q.load()


def test_a_store_that_is_published_anew_under_a_reader_is_not_called_damaged(
    study: Study, out: Path
) -> None:
    tree = open_results(out)
    for times in ([0, 0.5, 1], [0, 0.5, 3]):
        publish(study_from({**flips.CONTENT, "times": times}), out, replace=True)
    with pytest.raises(DamageError, match="was published anew since it was opened"):
        tree["line"].Q.load()


@pytest.mark.deep
def test_without_its_manifest_a_store_is_still_checked(study: Study, out: Path) -> None:
    manifest_path(out).unlink()
    shutil.rmtree(work_path(out))
    before = values(out)
    for kind in ("published root metadata", "published chunk of Q", "published chunk of tau"):
        file = flips.files(out)[kind][0]
        for bit in range(0, 8 * file.stat().st_size, max(1, file.stat().st_size // 3)):
            with flips.flipped(file, bit):
                with pytest.raises(DamageError) as caught:
                    values(out)
                assert str(file) in str(caught.value)
                assert verify(out).code == 3
    assert values(out) == before
