"""What the page says of trajectories side by side: which of several words ends best."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.compare.answer import answer

RULES = ["soft", "hard", "none", "log"]
MEANS = np.array([0.85, 0.91, 0.70, 0.88])


def data(dim="regularizer", values=RULES, means=MEANS):
    k = len(values)
    path = np.stack([np.zeros(k), np.asarray(means[:k])], axis=-1)[None]
    return xr.Dataset(
        {
            "mean": (("simulation", dim, "time"), path),
            "se": (("simulation", dim, "time"), np.full(path.shape, 0.003)),
            "largest_n": (("simulation", dim), np.full((1, k), 2000.0)),
            "limit_mean": (("limit", dim, "time"), path + 0.001),
        },
        {"simulation": ["vector"], "limit": ["pde"], dim: values, "time": [0.0, 10.0]},
        {"variable": "Q"},
    )


def test_the_best_of_several_words_is_told_with_its_lead_and_the_worst():
    said = str(answer(data()).html)
    assert said.index("hard") < said.index("log") < said.index("none")
    assert "largest, 0.910" in said
    assert "by 0.030" in said
    assert "before the next" in said
    assert "smallest, 0.700" in said
    assert "soft" not in said


def test_an_order_of_other_means_is_another_answer():
    said = str(answer(data(means=MEANS[::-1])).html)
    assert said.index("none") < said.index("soft") < said.index("hard")
    assert "log" not in said


@pytest.mark.parametrize(
    ("dim", "values"), [("regularizer", ["a", "b"]), ("tau", [0.1, 0.2, 0.3, 0.4])]
)
def test_two_words_and_numbers_are_told_at_their_ends(dim, values):
    said = str(answer(data(dim, values)).html)
    assert "largest" not in said
    assert "(limit 0.851)" in said


def test_what_is_not_swept_is_not_told():
    found = data("tau", [0.1, 0.2]).expand_dims(projection=[0])
    said = str(answer(found).html)
    assert "τ = 0.1" in said.replace("<i>", "").replace("</i>", "")
    assert "projection" not in said
