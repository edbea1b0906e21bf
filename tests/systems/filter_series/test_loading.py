"""Filters from arrays, files and folders, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.inputs.filters import Series
from tests.systems.filter_series.series import save_series

RNG = np.random.default_rng(0)
MANY = RNG.standard_normal((3, 4, 1, 5, 5)).astype(np.float32)
NO_TORCH = "needs PyTorch, which is not installed (pip install 'hdica[networks]', or "


def test_a_folder_of_snapshots_comes_back_as_it_was_written(tmp_path: Path) -> None:
    save_series(Series(np.array([0, 9, 1000]), MANY), tmp_path)
    (tmp_path / "README.md").write_text("about")
    found = hdica.load_filters(tmp_path)
    assert found.steps.tolist() == [0, 9, 1000]
    assert found.filters.tobytes() == MANY.tobytes()
    assert found.channels == 1
    assert found.dimension == 25


def test_several_trainings_lie_in_folders_of_their_own(tmp_path: Path) -> None:
    for seed in range(2):
        save_series(Series(np.array([0, 9, 10]), MANY + seed), tmp_path / f"seed_{seed}")
    second = hdica.load_filters(tmp_path, training=1)
    assert np.array_equal(second.filters, MANY + 1)
    with pytest.raises(HdicaError, match="training = 2 is not allowed"):
        hdica.load_filters(tmp_path, training=2)


def test_steps_are_told_by_names_where_files_do_not(tmp_path: Path) -> None:
    for step, one in zip((20, 3), MANY[:2], strict=True):
        np.save(tmp_path / f"run7_step{step}.npy", one)
    found = hdica.load_filters(tmp_path)
    assert found.steps.tolist() == [3, 20]
    assert np.array_equal(found.filters, MANY[[1, 0]])


def test_files_that_no_digest_counts_are_not_read(tmp_path: Path) -> None:
    save_series(Series(np.array([0, 9, 10]), MANY), tmp_path)
    np.savez(tmp_path / ".hidden_20.npz", filters=MANY[0])
    (tmp_path / "._step_000000.npz").write_bytes(b"of another system")
    assert hdica.load_filters(tmp_path).steps.tolist() == [0, 9, 10]
    with pytest.raises(HdicaError, match="training = -1 is not allowed"):
        hdica.load_filters(tmp_path, training=-1)


def test_one_file_may_have_all_snapshots(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", filters=MANY, steps=[0, 5, 8])
    assert hdica.load_filters(tmp_path / "all.npz").steps.tolist() == [0, 5, 8]
    assert hdica.load_filters(MANY).steps.tolist() == [0, 1, 2]
    assert hdica.load_filters(MANY[0]).filters.shape == (1, 4, 1, 5, 5)


def test_entries_of_a_filter_are_in_the_order_of_those_of_patches() -> None:
    colours = RNG.standard_normal((1, 2, 3, 4, 4)).astype(np.float32)
    vectors = hdica.load_filters(colours).vectors(0).reshape(2, 4, 4, 3)
    assert np.array_equal(vectors[1, :, :, 2], colours[0, 1, 2].astype(float))


def broken(folder: Path) -> dict[str, Any]:
    """Things that are no filters, and what is said of them."""
    np.savez(folder / "other.npz", weights=MANY)
    np.savez(folder / "flat.npz", filters=MANY[0, 0])
    np.savez(folder / "step.npz", filters=MANY[0], step=1.5)
    np.savez(folder / "few.npz", filters=MANY, steps=[1])
    np.savez(folder / "back.npz", filters=MANY, steps=[5, 4, 4])
    np.savez(folder / "nan.npz", filters=np.full_like(MANY, np.nan))
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (folder / "text.npz").write_text("no archive")
    np.savez(folder / "word.npz", filters=MANY[0], step="ten")
    np.savez(folder / "late.npz", filters=MANY[0], step=1e300)
    np.savez(folder / "day.npz", filters=MANY[0], step=np.datetime64("2025-01-01"))
    np.savez(folder / "complex.npz", filters=1j * MANY)
    np.save(folder / "words.npy", MANY.astype(str))
    np.save(folder / f"{10**30}.npy", MANY[0])
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,1"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (folder / "broken.npy").write_bytes(start + header)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000, 9, 9, 9)}"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (folder / "huge.npy").write_bytes(start + header)
    for name, one in (("a1", MANY[0]), ("b2", MANY[0, :2])):
        (folder / "mixed").mkdir(exist_ok=True)
        np.save(folder / "mixed" / f"{name}.npy", one)
    (folder / "empty").mkdir()
    return {
        "other.npz": "no array 'filters'", "flat.npz": "shape", "step.npz": "step = 1.5",
        "few.npz": "1 steps of 3", "back.npz": "two snapshots at step 4", "nan.npz": "finite",
        "objects.npy": "cannot be read", "text.npz": "cannot be read", "mixed": "all alike",
        "empty": "no snapshots", "nothing": "there is no nothing", "word.npz": "step = ten",
        "late.npz": "step = 1e", "day.npz": "step = 2025", "complex.npz": "no array of numbers",
        "words.npy": "no array of numbers", f"{10**30}.npy": "step = 1e", "broken.npy": "be read",
        "huge.npy": "cannot be read",
    }  # fmt: skip


def test_what_is_no_filters_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for name, words in broken(tmp_path).items():
        with pytest.raises(HdicaError, match=words) as caught:
            hdica.load_filters(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_checkpoints_without_pytorch_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "net.pth").write_bytes(b"")
    with pytest.raises(HdicaError) as caught:
        hdica.load_filters(tmp_path / "net.pth")
    assert NO_TORCH in str(caught.value)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="checkpoints need PyTorch: hdica[networks]")


def test_the_first_convolution_of_a_checkpoint_is_found(torch: Any, tmp_path: Path) -> None:
    state = {
        "module.scale": torch.ones(3),
        "module.conv1.weight": torch.from_numpy(MANY[0]),
        "module.conv2.weight": torch.from_numpy(MANY[1]),
    }
    torch.save({"epoch": 3, "state_dict": state}, tmp_path / "net_0042.pt")
    found = hdica.load_filters(tmp_path / "net_0042.pt")
    assert found.steps.tolist() == [42]
    assert np.array_equal(found.filters[0], MANY[0])
    torch.save({"model": {"state_dict": state}}, tmp_path / "deeper.pt")
    assert np.array_equal(hdica.load_filters(tmp_path / "deeper.pt").filters[0], MANY[0])
    for layer in ("conv2", "conv2.weight", "module.conv2.weight"):
        second = hdica.load_filters(tmp_path / "net_0042.pt", layer=layer)
        assert np.array_equal(second.filters[0], MANY[1])
    for layer, words in (("conv3", "it has|has scale"), ("scale", "4 dimensions")):
        with pytest.raises(HdicaError, match=words):
            hdica.load_filters(tmp_path / "net_0042.pt", layer=layer)


@pytest.mark.parametrize("kind", ["bfloat16", "float64", "complex64", "sparse", "meta"])
def test_numbers_of_a_checkpoint_are_plain_or_refused(
    torch: Any, tmp_path: Path, kind: str
) -> None:
    weights = torch.round(4 * torch.from_numpy(MANY[0]))  # bfloat16 has few digits
    made = {"sparse": weights.to_sparse, "meta": lambda: weights.to("meta")}
    one = made[kind]() if kind in made else weights.to(getattr(torch, kind))
    torch.save({"conv": one}, tmp_path / "net.pt")
    if kind in ("bfloat16", "float64"):
        found = hdica.load_filters(tmp_path / "net.pt").filters[0]
        assert np.array_equal(found, weights.numpy())
        return
    with pytest.raises(HdicaError, match="no (plain|array of) numbers"):
        hdica.load_filters(tmp_path / "net.pt")


class Danger:
    """An object that would make a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return Path.touch, (self.target,)


def test_code_in_a_checkpoint_is_not_run(torch: Any, tmp_path: Path) -> None:
    torch.save({"conv": Danger(tmp_path / "made")}, tmp_path / "bad.pt")
    with pytest.raises(HdicaError, match="tensors alone"):
        hdica.load_filters(tmp_path / "bad.pt")
    assert not (tmp_path / "made").exists()
