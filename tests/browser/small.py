"""A shipped study made small: the same page with fewer runs behind it.

Fewer seeds and smaller sizes come first, then fewer values of the grid and shorter times, until
what ``hdica plan`` says is short enough. Nothing is named here: a new study is made small, too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.inputs.plain_yaml import read_yaml
from hdica.run.plan import plan
from hdica.study.study import Study, study_from

SECONDS = 0.8
"""Of one core, by the plan; what compiles and starts comes to it."""
LONG = 4 * SECONDS
"""Plans up to which every axis keeps three values: each may have a figure of its own."""
SEEDS, SIZES, VALUES, TIMES = 6, 2, 4, 9
"""Least numbers of seeds, of n, of values of an axis and of output times."""
LARGE, FEW, LITTLE = 400, 7, 50
"""Sizes of a system or a sample below which it is not made smaller, at first and in the end; the
last of them for n."""
ROUNDS = 8


def seeds(content: dict[str, Any]) -> None:
    """Half the seeds of every method."""
    for settings in content["methods"].values():
        if isinstance(settings.get("seeds"), int):
            settings["seeds"] = max(min(SEEDS, settings["seeds"]), settings["seeds"] // 2)


def sizes(content: dict[str, Any], large: int = LARGE) -> None:
    """Without the largest n, or half of the only one."""
    for settings in content["methods"].values():
        found = settings.get("n")
        if isinstance(found, list) and len(found) > SIZES:
            settings["n"] = found[:-1]
        elif found is not None:
            several = found if isinstance(found, list) else [found]
            least = [n if n <= large else n // 2 for n in several]
            settings["n"] = least if isinstance(found, list) else least[0]


def parameters(content: dict[str, Any]) -> None:
    """Half of every large number of samples, dimensions or steps."""
    _halve(content, LARGE)


def little(content: dict[str, Any]) -> None:
    """Half of every n that is not little."""
    sizes(content, 2 * LITTLE - 1)


def few(content: dict[str, Any]) -> None:
    """Half of every number of samples, dimensions or steps that is not very small."""
    _halve(content, FEW)


def three(content: dict[str, Any]) -> None:
    """Three values of each axis at most."""
    axes(content, VALUES - 1)


def two(content: dict[str, Any]) -> None:
    """Two values of each axis at most: a line still has two ends."""
    axes(content, VALUES - 2)


def _halve(content: dict[str, Any], least: int) -> None:
    content["parameters"] = _half(content.get("parameters", {}), least)
    for key, values in content.get("grid", {}).items():
        if isinstance(values, list) and all(type(v) is int and v > least for v in values):
            content["grid"][key] = [v // 2 for v in values]


def _half(value: Any, least: int) -> Any:
    if isinstance(value, dict):
        return {key: _half(v, least) for key, v in value.items()}
    return value // 2 if type(value) is int and value > least else value


def axes(content: dict[str, Any], least: int = VALUES) -> None:
    """Fewer values of each axis of numbers: the upper ones go, which are the dear ones."""
    for key, values in content.get("grid", {}).items():
        if isinstance(values, dict) and values.get("num", 0) > least:
            values["num"] = max(least, (values["num"] + 1) // 2)
        elif isinstance(values, list) and len(values) > least and not isinstance(values[0], str):
            content["grid"][key] = values[: max(least, (len(values) + 1) // 2)]


def times(content: dict[str, Any]) -> None:
    """Half the time, and half the times at which something is put down."""
    found = content.get("times")
    if isinstance(found, dict):
        found["num"] = max(min(TIMES, found["num"]), (found["num"] + 1) // 2)
        if "save" not in content and found["num"] > TIMES:
            found["stop"] = found["stop"] / 2
    elif isinstance(found, list) and len(found) > TIMES:
        content["times"] = found[:-1]


Change = Callable[[dict[str, Any]], None]
CHEAP: tuple[Change, ...] = (seeds, sizes, parameters)
DEAR = (axes, times)
"""What changes which points there are: never where an analysis names them."""
LEAST = (few, three, *DEAR), (little,), (two,)
"""What is left where plans are long even so, one after the other."""


def ways(content: dict[str, Any]) -> list[tuple[Change, ...]]:
    """What is tried, one after the other."""
    printed = content.get("analysis", {}).get("printed")
    if printed is None:
        return [way for way in (CHEAP, (*CHEAP, *DEAR), *LEAST) for _ in range(ROUNDS)]
    # A number that is looked up stays where it is: there is no other n, and no other time, for it.
    named = {key for one in printed["numbers"].values() for key in one.get("sel", {})}
    free = {"n": little, "time": times}
    rest = tuple(change for key, change in free.items() if key not in named)
    return [way for way in (CHEAP, rest) for _ in range(ROUNDS)]


def small(path: Path, seconds: float = SECONDS) -> Study:
    """A shipped study, as small as it takes for a plan of some seconds, or as can be."""
    content = read_yaml(path)
    study = study_from(content)
    for way in ways(content):
        if plan(study).seconds <= (LONG if two in way else seconds):
            break
        for change in way:
            study, content = _changed(study, content, change)
    return study


def _changed(
    study: Study, content: dict[str, Any], change: Callable[[dict[str, Any]], None]
) -> tuple[Study, dict[str, Any]]:
    """A study after a change, or as it was if it may not be changed so."""
    other = copy.deepcopy(content)
    change(other)
    if other == content:
        return study, content
    try:
        return study_from(other), other
    except HdicaError:
        return study, content
