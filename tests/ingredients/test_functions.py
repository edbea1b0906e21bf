"""Functions of Python as formulas: their keys, their kinks, and what is refused."""

import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.functions import is_word, refuse_in_files, word_for
from hdica.ingredients.grammar import constants_used

WIDTH = 0.7
KNOTS = np.array([0.25, 1.0])
SETTINGS = {"width": 0.7}


@numba.njit
def inner(x):
    return x * x - WIDTH


def smooth(x):
    return math.tanh(x) - 0.1 * x**3


def step(x):
    """Jumps at numbers that halving does not meet."""
    if x > 0.3:
        return x * x
    return -1.0 if x < -WIDTH else x


def kinked(x):
    return abs(x - 0.7) + max(x, 0.0) + np.interp(x, KNOTS, KNOTS)


def curved(x):
    """Its curvature jumps at 0, its slope does not."""
    return x / (1 + abs(x))


def calls(x):
    return inner(x)


def with_default(x, width=2.0):
    return np.sign(x) * width


def plain_inner(x):
    return x


def calls_plain(x):
    return plain_inner(x)


def uses_dict(x):
    return x * SETTINGS["width"]


def draws(x):
    return x + np.random.normal()  # noqa: NPY002


def two(x, y):
    return x + y


def nothing(x):
    pass


def _typed():
    """A function as one that was typed without a file."""
    space = {}
    exec(compile("def typed(x):\n    return x", "<typed>", "exec"), space)  # noqa: S102
    return space["typed"]


def scaled_by(factor):
    def scaled(x):
        return factor * x

    return scaled


def test_values_derivatives_and_compiled_forms_are_those_of_the_function():
    x = np.linspace(-3, 3, 41)
    for function in (smooth, step, kinked, calls, with_default):
        f = parse_formula(word_for(function))
        expected = [function(v) for v in x.tolist()]
        assert np.allclose(f.value(x), expected, rtol=1e-14, atol=1e-15)
        assert [f.compiled.ctypes(v) for v in x] == f.value(x).tolist()
        assert [f.compiled_pair.ctypes(v, 5.0) for v in x] == f.value(x).tolist()
    slope = parse_formula(word_for(smooth)).derivative
    exact = 1 / np.cosh(x) ** 2 - 0.3 * x**2
    assert np.allclose(slope.value(x), exact, rtol=1e-8, atol=1e-9)


def test_kinks_are_found_by_values_alone():
    assert parse_formula(word_for(smooth)).kinks == ()
    assert parse_formula(word_for(step)).kinks == (-0.7, 0.3)
    assert parse_formula(word_for(kinked)).kinks == pytest.approx((0.0, 0.25, 0.7, 1.0), abs=1e-10)
    assert parse_formula(word_for(with_default)).kinks == (0.0,)
    assert parse_formula(word_for(curved)).kinks == (0.0,)


def test_source_and_constants_make_the_key():
    assert word_for(scaled_by(2.0)) == word_for(scaled_by(2.0))
    assert word_for(scaled_by(2.0)) != word_for(scaled_by(3.0))
    assert parse_formula(word_for(scaled_by(3.0))).value(np.array([2.0])).tolist() == [6.0]
    assert word_for(inner) == word_for(inner.py_func)
    assert is_word(word_for(step))
    assert constants_used(word_for(step)) == frozenset()
    twice = [parse_formula(word_for(step)) for _ in range(2)]
    assert twice[0] == twice[1]


MODULE = "K = {k}\n\ndef shrink(x):\n    return {body}\n"


def _word_elsewhere(folder, k, body):
    """The word that another process finds for a function in a file."""
    (folder / "mine.py").write_text(MODULE.format(k=k, body=body))
    code = "import mine, hdica.ingredients.functions as f; print(f.word_for(mine.shrink))"
    env = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{os.getcwd()}:{folder}"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.deep
def test_the_key_is_the_same_in_every_process_and_follows_source_and_constants(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    first = _word_elsewhere(folders[0], 2, "K*x")
    assert _word_elsewhere(folders[1], 2, "K*x") == first
    other = {_word_elsewhere(folders[2], k, body) for k, body in [(3, "K*x"), (2, "K * x")]}
    assert len({first, *other}) == 3


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda x: x, "a lambda has no name"),
        (np.tanh, "it is not written in Python"),
        (len, "it is not written in Python"),
        (calls_plain, "plain_inner, which is not compiled"),
        (uses_dict, "SETTINGS is a dict"),
        (draws, "it draws random numbers"),
        (two, "it does not take one number"),
        (nothing, "Numba does not compile it: No conversion from none"),
        (_typed(), "its source is not found"),
    ],
)
def test_what_has_no_lasting_key_is_refused_in_a_sentence(function, part):
    with pytest.raises(HdicaError) as caught:
        word_for(function)
    assert part in str(caught.value)
    assert "allowed are a formula" in str(caught.value)
    assert "0x" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_word_and_a_function_in_a_file_are_refused():
    with pytest.raises(HdicaError, match="is a Python function that is not known here"):
        parse_formula("shrink@0123456789abcdef")
    for value in (step, word_for(step), [word_for(step)], {"inner": step}):
        with pytest.raises(HdicaError, match="which a study cannot hold"):
            refuse_in_files("parameters", {"nonlinearity": value})
    refuse_in_files("parameters", {"nonlinearity": "x**3", "tau": 0.1, "source": None})


def test_a_file_that_has_changed_since_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "edited_later.py"
    file.write_text(MODULE.format(k=2, body="K*x"))
    monkeypatch.syspath_prepend(tmp_path)
    import edited_later

    word = word_for(edited_later.shrink)
    file.write_text(MODULE.format(k=2, body="K-x"))
    with pytest.raises(HdicaError, match="its file has changed since it was defined"):
        word_for(edited_later.shrink)
    file.write_text(MODULE.format(k=2, body="K*x"))
    assert word_for(edited_later.shrink) == word
