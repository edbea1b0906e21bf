"""Studies that read data: other content is another study, though its path is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hdica.errors import HdicaError
from hdica.inputs import images
from hdica.run.runner import run
from hdica.store.publish import is_current, publish
from hdica.store.results import open_results
from hdica.study.study import Study, study_from

RNG = np.random.default_rng(0)
PIXELS = {name: RNG.integers(0, 256, (12, 12)).astype(np.uint8) for name in "ab"}


def study(paths: Any = ("a.png", "b.png")) -> Study:
    return study_from(
        {
            "study": "read",
            "system": "PatchICA",
            "parameters": {"width": 2, "samples": 40, "test": 20, "iterations": 5},
            "grid": {"images": list(paths)},
            "times": [0, 5],
            "methods": {"held_out": {"seeds": 1}},
        }
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data with two pictures."""
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    for name, pixels in PIXELS.items():
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    return tmp_path


def test_other_pixels_at_the_same_path_are_published_anew(root: Path, out: Path) -> None:
    first = study()
    run(first, out, progress=False)
    publish(first, out)
    before = open_results(out)["held_out"]["raw_loss"].values.copy()
    assert is_current(study(), out)
    # The same contents altogether, at each other's paths.
    (root / "a.png").rename(root / "c")
    (root / "b.png").rename(root / "a.png")
    (root / "c").rename(root / "b.png")
    second = study()
    assert second.content_hash() != first.content_hash()
    assert not is_current(second, out)
    run(second, out, progress=False)
    publish(second, out)
    after = open_results(out)["held_out"]["raw_loss"].values
    assert not np.array_equal(after, before)
    assert is_current(second, out)


def test_data_that_goes_between_plan_and_run_is_said_in_a_sentence(root: Path, out: Path) -> None:
    # Pixels that no process has read before: what is in memory needs no file.
    Image.fromarray(PIXELS["b"] ^ 1).save(root / "b.png")
    planned = study()
    (root / "b.png").unlink()
    with pytest.raises(HdicaError, match=r"b\.png' is not allowed \(there is no") as caught:
        run(planned, out, progress=False)
    assert "\n" not in str(caught.value)
    with pytest.raises(HdicaError, match=r"b\.png' is not allowed \(there is no"):
        study()


def test_a_point_waits_for_data_that_went(
    root: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(PIXELS["b"] ^ 2).save(root / "b.png")
    planned, load = study(), images.load_images

    def gone(data: Any, colour: Any) -> Any:
        if data["path"] == "b.png":
            (root / "b.png").rename(root / "elsewhere")
        return load(data, colour)

    monkeypatch.setattr(images, "load_images", gone)
    images._decoded_once.cache_clear()
    hindered = run(planned, out, progress=False)
    assert hindered.pending == 1
    assert "b.png' is not allowed (there is no" in hindered.lost[0]
    monkeypatch.setattr(images, "load_images", load)
    (root / "elsewhere").rename(root / "b.png")
    assert run(planned, out, progress=False).pending == 0
    publish(planned, out)
    assert np.isfinite(open_results(out)["held_out"]["test_loss"].values).all()
