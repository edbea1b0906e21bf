"""Examples in docstrings run, and every public function says what it is."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import hdica


@pytest.mark.deep
def test_examples_in_docstrings_give_what_they_show():
    names = ["hdica", *(m.name for m in pkgutil.walk_packages(hdica.__path__, "hdica."))]
    outcomes = [doctest.testmod(importlib.import_module(name)) for name in names]
    assert sum(o.failed for o in outcomes) == 0
    assert sum(o.attempted for o in outcomes) >= 3


def test_what_the_package_promises_is_there_and_described():
    for name in hdica.__all__:
        thing = getattr(hdica, name)
        assert name == "__version__" or thing.__doc__
    assert set(hdica.__all__) <= set(dir(hdica))


def test_every_parameter_of_a_public_function_is_described():
    """And nothing that is no parameter: the reference is made of these docstrings."""
    section = r"Parameters\n-+\n(.*?)(?=\n\n[A-Z][a-z ]+\n-+\n|\Z)"
    for name in hdica.__all__:
        function = getattr(hdica, name)
        if not inspect.isfunction(function):
            continue
        found = re.search(section, inspect.getdoc(function) or "", re.DOTALL)
        heads = re.findall(r"^\S.*$", found[1] if found else "", re.MULTILINE)
        described = {one.strip(" *") for head in heads for one in head.split(":")[0].split(",")}
        assert described == set(inspect.signature(function).parameters), name
