"""How a feature moves: what is allowed."""

import pytest

from hdica.errors import HdicaError
from hdica.ingredients.schedules import STILL, Motion, make_motion


def test_motions():
    assert make_motion(None) is STILL
    assert not make_motion({"exchange": 0}).moves
    assert make_motion({"exchange": 0.1}) == Motion(0.1)
    both = make_motion({"exchange": 0.1, "jumps": {"times": [1, 2.5], "share": 1}})
    assert both == Motion(0.1, (1.0, 2.5), 1.0)
    assert both.moves


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({}, "motion = {} is not allowed"),
        (0.1, "motion = 0.1 is not allowed"),
        ({"drift": 1}, "allowed: {exchange: rate}"),
        ({"exchange": -1}, "exchange = -1 is not allowed"),
        ({"exchange": True}, "exchange = True is not allowed"),
        ({"exchange": float("nan")}, "exchange = nan is not allowed"),
        ({"jumps": {"times": [1]}}, "jumps = "),
        ({"jumps": {"times": [2, 1], "share": 0.5}}, "times = [2, 1] is not allowed"),
        ({"jumps": {"times": [], "share": 0.5}}, "times = [] is not allowed"),
        ({"jumps": {"times": [0, 1], "share": 0.5}}, "times = [0, 1] is not allowed"),
        ({"jumps": {"times": [1], "share": 0}}, "share = 0 is not allowed"),
        ({"jumps": {"times": [1], "share": 1.5}}, "share = 1.5 is not allowed"),
    ],
)
def test_refused(spec, sentence):
    with pytest.raises(HdicaError) as caught:
        make_motion(spec)
    assert sentence in str(caught.value)
