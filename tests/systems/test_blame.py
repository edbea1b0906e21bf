"""A refusal carries the fields it speaks of, and the key of the grid that set them is named."""

import pickle

import pytest

import hdica
from hdica.errors import HdicaError, speaking_of
from hdica.systems import space as gr
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.online_ica.system import OnlineICA
from hdica.systems.sparse_pca.system import SparsePCA

CASES = [
    (OnlineICA, {"tau": -1.0}, ("tau",)),
    (OnlineICA, {"tau": "0.1 - c", "constants": {"c": 0.2}}, ("tau", "constants.c")),
    (OnlineICA, {"tau": 0.1, "source": "gauss"}, ("source",)),
    (OnlineICA, {"tau": 0.1, "nonlinearity": "0"}, ("nonlinearity",)),
    (OnlineICA, {"tau": 0.1, "regularizer": "b/x"}, ("regularizer", "constants.b")),
    (OnlineICA, {"tau": 0.1, "regularizer": "1/x"}, ("regularizer",)),
    (OnlineICA, {"tua": 0.1}, ("tua",)),
    (SparsePCA, {"tau": 0.1, "omega": -2}, ("omega",)),
    (
        SparsePCA,
        {"tau": 0.1, "variant": "proximal", "regularizer": "x**3"},
        ("variant", "regularizer"),
    ),
    (HebbianICA, {"mu": 1.0, "nu": 1.0}, ("eta", "mu", "nu", "nu2")),
    (HebbianICA, {"mu": 0.1, "start": {"overlap": 2.0}}, ("start",)),
    (HebbianICA, {"mu": 0.1, "sigma": [1, 1]}, ("sigma",)),
]


@pytest.mark.parametrize(("system", "content", "fields"), CASES)
def test_a_refusal_carries_its_fields(system, content, fields):
    with pytest.raises(HdicaError) as caught:
        system(**content)
    assert caught.value.fields == fields
    assert pickle.loads(pickle.dumps(caught.value)).fields == fields  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("content", "swept", "named"),
    [
        ({"tau": -1.0, "start": {"overlap": 0.5}}, ("tau", "Q0"), "grid.tau: tau = -1.0"),
        # 0.5 is also the value of Q0, which has nothing to do with it.
        ({"tau": "t - 0.5", "start": {"overlap": 0.5}}, ("Q0",), "parameters: tau = 't - 0.5'"),
        (
            {"tau": 0.1, "regularizer": "b*x + 1/x", "constants": {"b": 2.0}},
            ("b",),
            "grid.b: regularizer = ",
        ),
    ],
)
def test_the_key_that_set_the_field_is_named(content, swept, named):
    paths = {"tau": ("tau",), "Q0": ("start", "overlap"), "b": ("constants", "b")}
    axes = [gr.Axis(key, paths[key], (0.5,)) for key in swept]
    with pytest.raises(HdicaError) as caught:
        gr.build(OnlineICA, content, axes)
    assert str(caught.value).startswith(named)


def test_what_an_error_says_of_itself_wins():
    with pytest.raises(HdicaError) as caught, speaking_of("outer"):
        raise HdicaError("no", ["inner"])
    assert caught.value.fields == ("inner",)
    assert hdica.HdicaError("no").fields == ()
