"""The picture of all ratios: every case is in it, on the side of one where its quartiles are."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import ratios, results
from benchmarks.harness import Row

ROOT = Path(__file__).parents[2]


def row(case: str, contestant: str, ratio: float = 1.0) -> dict[str, object]:
    three = (ratio, 0.9 * ratio, 1.1 * ratio)
    return Row("speed", case, contestant, "ns", *three, *three).__dict__


MEASURED = {
    "speed": {
        "rows": [
            row("a", "hdica"), row("a", "loop", 20.0), row("a", "hdica, own noise", 3.0),
            row("b", "hdica"), row("b", "loop", 0.5),
        ]
    }
}  # fmt: skip


def test_a_line_is_all_cases_of_a_rival() -> None:
    loop, own = ratios.lines_of(MEASURED)
    assert (loop.rival, loop.foreign, own.rival, own.foreign) == (
        "loop", True, "hdica, own noise", False,
    )  # fmt: skip
    np.testing.assert_allclose(loop.quartiles, [[18.0, 20.0, 22.0], [0.45, 0.5, 0.55]])
    assert own.quartiles.shape == (1, 3)


def test_no_case_of_what_was_measured_is_left_out() -> None:
    measured = results.read(ROOT / "benchmarks/results.json")
    rows = [row for entry in measured.values() for row in entry["rows"]]
    cases = {(row["benchmark"], row["case"]) for row in rows}
    drawn = sum(len(line.quartiles) for line in ratios.lines_of(measured))
    assert drawn == len(rows) - len(cases)
    assert {line.benchmark for line in ratios.lines_of(measured)} == set(measured)


def test_verdict_needs_both_quartiles_on_one_side() -> None:
    found = ratios.verdicts(np.array([[1.1, 2, 3], [0.5, 0.6, 0.9], [0.9, 1.1, 1.2]]))
    assert found.tolist() == [1, -1, 0]


def test_picture_is_the_same_bytes_again_and_another_on_a_dark_page(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.svg", "two.svg", "dark.svg")]
    for path in paths:
        ratios.draw(MEASURED, path, dark=path.stem == "dark", about="of three rows")
    one, two, dark = (path.read_text() for path in paths)
    assert one == two
    assert "of three rows" in one
    for ink, text, other in ((ratios.LIGHT, one, dark), (ratios.DARK, dark, one)):
        for colour in (ink.paper, ink.ahead, ink.behind):
            assert colour in text
        assert ink.paper not in other


@pytest.mark.parametrize("ink", [ratios.LIGHT, ratios.DARK])
def test_marks_and_text_stand_out_from_their_background(ink: ratios.Ink) -> None:
    """Contrast of WCAG 2: 4.5 for text and 3 for marks."""

    def light(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for colour, least in (
        (ink.text, 4.5), (ink.faint, 4.5), (ink.ahead, 3), (ink.behind, 3), (ink.even, 3),
    ):  # fmt: skip
        bright, dim = sorted((light(colour), light(ink.band)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= least, colour
