"""Which folders of numerical code a method reaches: the functions behind it, followed by name."""

from __future__ import annotations

import dataclasses
import dis
import functools
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hdica.systems.method import Method

PACKAGE = Path(importlib.import_module("hdica").__file__).parent


@functools.cache
def folders() -> tuple[str, ...]:
    """Packages and modules with a version of their own."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        if re.search(r"^VERSION = \d+$", path.read_text(), re.MULTILINE):
            parts = path.relative_to(PACKAGE).with_suffix("").parts
            found.append(".".join(("hdica", *parts)).removesuffix(".__init__"))
    return tuple(sorted(found))


@functools.cache
def folder_of(module: str, known: tuple[str, ...]) -> str | None:
    """The innermost folder with a version that a module lies in."""
    inside = [name for name in known if module == name or module.startswith(f"{name}.")]
    return max(inside, key=len) if inside else None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _named(function: types.FunctionType) -> Iterator[Any]:
    """What a function refers to by a global name, by a cell or by an import of its own."""
    for code in _codes(function.__code__):
        named = {n: function.__globals__[n] for n in code.co_names if n in function.__globals__}
        yield from (one for one in named.values() if not isinstance(one, types.ModuleType))
        steps = list(dis.get_instructions(code))
        for k, step in enumerate(steps):
            one = named.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
            if isinstance(one, types.ModuleType) and one.__name__.startswith("hdica"):
                # Of a module what is taken of it, not all that is in it.
                whole = steps[k + 1].opname not in ("LOAD_ATTR", "LOAD_METHOD")
                yield one if whole else getattr(one, steps[k + 1].argval)
            if step.opname != "IMPORT_NAME" or not step.argval.startswith("hdica"):
                continue
            module = importlib.import_module(step.argval)
            for after in steps[k + 1 :]:
                if after.opname == "IMPORT_FROM":
                    yield getattr(module, after.argval)
                elif after.opname not in ("STORE_FAST", "STORE_DEREF", "POP_TOP"):
                    break
    for cell in function.__closure__ or ():
        yield cell.cell_contents
    yield from (function.__defaults__ or ())


def _parts(one: Any) -> Iterator[Any]:
    """Functions and classes behind an object."""
    if isinstance(one, functools.partial):
        yield from (one.func, *one.args, *one.keywords.values())
    elif hasattr(one, "py_func"):  # compiled by numba
        yield one.py_func
    elif hasattr(one, "__wrapped__"):
        yield one.__wrapped__
    elif isinstance(one, types.FunctionType):
        yield from _named(one)
    elif isinstance(one, types.MethodType):
        yield from (one.__func__, one.__self__)
    elif isinstance(one, type):
        for value in vars(one).values():
            inner = value.func if isinstance(value, functools.cached_property) else value
            inner = getattr(inner, "fget", None) or getattr(inner, "__func__", inner)
            if isinstance(inner, types.FunctionType):
                yield inner
        yield from one.__mro__[1:]
    elif dataclasses.is_dataclass(one):
        yield type(one)
        yield from vars(one).values()
    elif isinstance(one, types.ModuleType):
        yield from (v for v in vars(one).values() if inspect.isroutine(v) or isinstance(v, type))
    elif isinstance(one, tuple | list | frozenset):
        yield from one
    elif isinstance(one, dict):
        yield from one.values()


def _module(one: Any) -> str:
    if isinstance(one, types.ModuleType):
        return one.__name__
    return str(getattr(one, "__module__", "") or "")


def reached(method: Method) -> set[str]:
    """Folders of all code behind ``run``, ``together`` and ``densities`` of a method."""
    known, seen, found = folders(), set(), set()
    more = ("together", "densities")
    front: list[Any] = [method.run, *(getattr(method, name, None) for name in more)]
    while front:
        one = front.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        module = _module(one)
        own = isinstance(one, functools.partial | tuple | list | dict | frozenset)
        if not own and not module.startswith("hdica"):
            continue
        folder = folder_of(module, known)
        if folder and not isinstance(one, tuple | list | dict | frozenset):
            found.add(folder)
        front.extend(_parts(one))
    return found
