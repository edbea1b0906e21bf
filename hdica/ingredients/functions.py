"""Functions of Python in place of formulas: by name, and keyed by what they compute.

Sympy knows the name of such a function, and nothing else of it.

A system holds a function as a word such as ``shrink@1f0c9d3a5b7e2468``: its name, and a digest of
its source text and of the constants and functions that it uses, with theirs. So results are keyed
by what is computed: two functions with one source and the same constants are one, and another
source is another. What was compiled is known in this process alone; a file cannot hold it.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
import hashlib
import inspect
import json
import re
import textwrap
import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import ClassVar, TypeGuard

import numpy as np
import sympy as sp

from hdica.errors import HdicaError
from hdica.ingredients.plain import Function, Scalar
from hdica.ingredients.quadrature import resolving_edges, touching

_REACH = 64.0
_MOST = 64
_NARROW, _SIDE, _APART = 1e-6, 1e-9, 3e-3
_EPS = float(np.finfo(float).eps)


class Opaque(sp.Function):
    """A real function of one variable; a class for each, made by :func:`opaque`."""

    nargs = 1
    is_extended_real = True
    scalar: ClassVar[Scalar]
    """Compiled by Numba, of a number."""
    array: ClassVar[Function]
    """The same of arrays."""
    order = 0
    """Of the derivative that it is."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Its slope by a central difference, which is exact to some ten digits."""
        return _slope(type(self))(self.args[0])  # type: ignore[arg-type]

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        at = self.args[0]
        return sp.Float(float(type(self).scalar(float(at)))) if at.is_number else None

    @classmethod
    def breaks(cls) -> tuple[float, ...]:
        """Where it or its slope jumps, as far as its values tell."""
        return _breaks(cls)  # type: ignore[arg-type]


def opaque(name: str, scalar: Scalar, order: int = 0) -> type[Opaque]:
    """The class of a compiled function."""
    import numba

    array = numba.vectorize(["float64(float64)"])(lambda x: scalar(x))
    content = {"scalar": staticmethod(scalar), "array": staticmethod(array), "order": order}
    return type(name, (Opaque,), content)


@cache
def _slope(of: type[Opaque]) -> type[Opaque]:
    import numba

    inner, order = of.scalar, of.order + 1
    width = _EPS ** (1 / (2 + order))

    @numba.njit("float64(float64)", error_model="numpy")
    def slope(x):  # type: ignore[no-untyped-def]
        h = width * (1 + abs(x))
        return (inner(x + h) - inner(x - h)) / ((x + h) - (x - h))

    return opaque(f"slope_of_{of.__name__}", slope, order)


@cache
def _breaks(of: type[Opaque]) -> tuple[float, ...]:
    if of.order:
        return ()
    powers = 2.0 ** np.arange(1, 7)
    first = np.concatenate([-powers[::-1], [0.0], powers])
    edges = resolving_edges(lambda x: of.array(x)[None], first)
    narrow = np.diff(edges) < _NARROW * (1 + np.abs(edges[1:]))
    bounds = np.flatnonzero(np.diff(np.concatenate([[0], narrow.astype(int), [0]])))
    points = []
    for a, b in bounds.reshape(-1, 2).tolist():
        # Halving went to the narrowest panel, and one on either side of it.
        k = a + int(np.argmin(np.diff(edges[a : b + 1])))
        low, high = edges[[max(k - 1, a), min(k + 2, b)]].tolist()
        points.append(_within(of, low, high))
    apart = np.min(np.abs(edges[:, None] - np.array([*points, np.inf])), axis=1)
    crowded = touching(narrow) | (apart < _APART * (1 + np.abs(edges)))
    points += [x for x in edges[~crowded].tolist() if _bends(of, x)]
    if len(points) > _MOST:
        name = of.__name__.rpartition("_")[0]
        raise HdicaError(f"the function {name} has more than {_MOST} kinks within |x| < {_REACH:g}")
    return tuple(sorted(set(points)))


def _within(of: type[Opaque], low: float, high: float) -> float:
    """A jump between two numbers to the last bit, else the roundest number between them."""
    below, above = (float(of.scalar(x)) for x in (low, high))
    if not abs(above - below) > _NARROW * (1 + abs(above)):
        middle = (low + high) / 2
        near = (round(middle, digits) for digits in range(16))
        return next((x for x in near if low <= x <= high), middle)
    while np.nextafter(low, high) < high:
        middle = low + (high - low) / 2
        at = float(of.scalar(middle))
        if abs(at - below) > abs(above - at):
            high, above = middle, at
        else:
            low, below = middle, at
    return min((low, high), key=lambda x: len(repr(x)))


def _bends(of: type[Opaque], x: float) -> bool:
    """Whether it, its slope or its curvature jumps at a number beside which it is smooth."""
    size = max(1.0, abs(x))
    below, above = (float(of.scalar(x + size * d)) for d in (-_SIDE, _SIDE))
    if abs(above - below) > _NARROW * (1 + abs(above)):
        return True

    def side(h: float) -> tuple[float, float]:
        """Slope and curvature on one side, by differences."""
        near, middle, far = (float(of.scalar(x + size * h * d)) for d in (1e-3, 0.5, 1.0))
        rises = (middle - near) / (0.499 * h), (far - middle) / (0.5 * h)
        return rises[1], (rises[1] - rises[0]) / (0.4995 * h)

    def gaps(h: float) -> list[tuple[float, float]]:
        pairs = zip(side(-h), side(h), strict=True)
        return [(abs(right - left), 1 + abs(left) + abs(right)) for left, right in pairs]

    both = zip(gaps(1e-3), gaps(1e-4), (1e-5, 1e-3), strict=True)
    return any(
        near > 0.5 * wide and near > least * scale for (wide, _), (near, scale), least in both
    )


_WORD = re.compile(r"[A-Za-z_]\w*@[0-9a-f]{16}")
_COMPILED: dict[str, type[Opaque]] = {}
_LOCK = threading.Lock()
_MODULES = ("math", "numpy")
_MOST_NUMBERS = 100_000
_ALLOWED = (
    "allowed are a formula, or a function of one number that def gives a name, that Numba "
    "compiles, and that uses numbers, tuples and arrays of numbers, math, numpy and functions "
    "of numba.njit"
)


def is_word(value: object) -> TypeGuard[str]:
    """Whether it is the word for a function of Python."""
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def name_of(word: str) -> str:
    """The name that the function has in Python."""
    return word.partition("@")[0]


def word_for(function: Callable[..., object]) -> str:
    """The word by which a system holds a function; it is compiled, and known from then on.

    Refused if it has no name or no source, does not take one number, uses what is not known to stay
    what it is, or is not compiled by Numba.
    """
    plain = _plain(function)
    content = json.dumps(_content(plain, []), sort_keys=True)
    word = f"{plain.__name__}@{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    with _LOCK:
        if word not in _COMPILED:
            # At once: its constants are read now, and what cannot be compiled is refused.
            _COMPILED[word] = opaque(word.replace("@", "_"), _compiled(plain))
    return word


def opaque_of(word: str) -> type[Opaque]:
    """The function of a word, for formulas."""
    if word not in _COMPILED:
        raise HdicaError(
            f"{word!r} is a Python function that is not known here (a function is given as itself, "
            "to hdica.simulate, hdica.limit and their like; elsewhere write a formula)"
        )
    return _COMPILED[word]


def refuse_in_files(where: str, value: object) -> None:
    """Refuse a function where results are keyed by what a file says."""
    if isinstance(value, dict):
        for key, item in value.items():
            refuse_in_files(f"{where}.{key}", item)
    elif isinstance(value, list | tuple):
        for item in value:
            refuse_in_files(where, item)
    elif is_word(value) or callable(value):
        name = name_of(value) if is_word(value) else getattr(value, "__name__", repr(value))
        raise HdicaError(
            f"{where} = {name} is not allowed (it is a Python function, which a study cannot hold: "
            "write a formula, or give it to hdica.simulate, hdica.limit and their like)"
        )


def _refused(name: str, why: str) -> HdicaError:
    return HdicaError(f"the function {name} is not allowed ({why}; {_ALLOWED})")


def _plain(function: object) -> FunctionType:
    """The function as it was written, and not as Numba has compiled it."""
    plain = getattr(function, "py_func", function)
    name = getattr(plain, "__name__", type(plain).__name__)
    if not inspect.isfunction(plain):
        raise _refused(name, f"it is not written in Python: write the formula '{name}(x)'")
    if name == "<lambda>":
        raise _refused("lambda", "a lambda has no name and no source of its own")
    parameters = inspect.signature(plain).parameters.values()
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    if len(required) != 1 or required[0].kind not in (0, 1):
        raise _refused(name, "it does not take one number")
    return plain


def _content(function: FunctionType, within: list[str]) -> list[object]:
    """What a function computes: its source, and whatever it names, by content."""
    name = function.__name__
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise _refused(name, "its source is not found: define it in a file or a notebook") from None
    if source in within:
        return [name]
    if not _is_source_of(source, function.__code__):
        raise _refused(name, "its file has changed since it was defined")
    named = dict(_named(function))
    used = {key: _constant(name, key, value, [*within, source]) for key, value in named.items()}
    defaults = [_constant(name, "a default", item, within) for item in function.__defaults__ or ()]
    return [source, used, defaults]


def _is_source_of(source: str, code: CodeType) -> bool:
    """Whether a text compiles to the code that runs: Python reads the file as it is now."""
    try:
        inner = ast.parse(source).body[0]
    except SyntaxError:
        return False
    outer = ast.parse(f"def outer({', '.join(code.co_freevars)}): pass")
    outer.body[0].body = [inner]  # type: ignore[attr-defined]
    flags = code.co_flags & __future__.annotations.compiler_flag
    whole = compile(ast.fix_missing_locations(outer), "<source>", "exec", flags, dont_inherit=True)
    made = next(item for item in whole.co_consts if isinstance(item, CodeType))
    again = (inner for inner in made.co_consts if isinstance(inner, CodeType))
    return any(_steps(inner) == _steps(code) for inner in again if inner.co_name == code.co_name)


def _steps(code: CodeType) -> list[object]:
    """What code does, apart from how a module is looked up, which its imports decide, and jumps."""
    steps: list[object] = [repr(item) for item in code.co_consts if not isinstance(item, CodeType)]
    for step in dis.get_instructions(code):
        if step.opname not in ("CACHE", "EXTENDED_ARG", "PUSH_NULL"):
            jumps = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
            inner = isinstance(step.argval, CodeType)
            what = None if jumps or inner else repr(step.argval)
            steps.append((step.opname.replace("LOAD_METHOD", "LOAD_ATTR"), what))
    return steps


def _named(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Names of a function that are not its own, and what they stand for now."""
    free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in free:
        try:
            yield name, cell.cell_contents
        except ValueError:
            raise _refused(function.__name__, f"{name} has no value yet") from None
    for name in sorted(_global_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
        elif not hasattr(builtins, name):
            raise _refused(function.__name__, f"{name} has no value yet")


def _global_names(code: CodeType) -> set[str]:
    steps = dis.get_instructions(code)
    names = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _global_names(inner)
    if "random" in code.co_names:
        raise _refused(code.co_name, "it draws random numbers: its value must depend on x alone")
    return names


def _constant(name: str, key: str, value: object, within: list[str]) -> object:
    """What a name stands for, as plain data that is the same in every process."""
    if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        plain = value.item() if isinstance(value, np.generic) else value
        return [type(value).__name__, repr(plain)]
    if isinstance(value, tuple):
        return [_constant(name, key, item, within) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.size <= _MOST_NUMBERS:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return [str(value.dtype), list(value.shape), content]
    if isinstance(value, ModuleType) and value.__name__ in _MODULES:
        return value.__name__
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
    if inspect.isbuiltin(value) and value.__module__ in _MODULES:
        return f"{value.__module__}.{value.__name__}"
    if inspect.isfunction(inner := getattr(value, "py_func", None)):
        return _content(inner, within)
    if inspect.isfunction(value):
        raise _refused(name, f"it calls {key}, which is not compiled: write @numba.njit above it")
    raise _refused(name, f"{key} is a {type(value).__name__}")


def _compiled(function: FunctionType) -> Scalar:
    import numba

    try:
        inner = numba.njit(function)
        return numba.njit("float64(float64)", error_model="numpy")(lambda x: inner(x))
    except numba.core.errors.NumbaError as exc:
        lines = [line.strip(" -") for line in str(exc).splitlines()]
        why = next((line for line in lines if line and "nopython" not in line), "no reason given")
        raise _refused(function.__name__, f"Numba does not compile it: {why[:120]}") from None
