"""Eight float64 or uint64 numbers as one compiled value, added, multiplied and stored together.

Written out as vectors of LLVM instead of left to its auto-vectoriser, an expression means the
same operations in the same order on every processor: wide registers only run them faster.
Nothing is reassociated, and a fused multiply-add is one because the source says ``fma``.
Only functions compiled by numba can use these names.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import PrimitiveModel
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from hdica.finite.random import LANES
from hdica.process.compile_cache import refuse_interpreter

refuse_interpreter()

CHUNK = 2 * LANES
"""Numbers that kernels handle at once: a pair of vectors, as Box-Muller gives them."""
_INDEX = ir.IntType(32)
_FLOATS = ir.VectorType(ir.DoubleType(), LANES)
_WORDS = ir.VectorType(ir.IntType(64), LANES)
_BITS = ir.VectorType(ir.IntType(1), LANES)


class _Floats(types.Type):
    """Eight float64."""


class _Words(types.Type):
    """Eight uint64."""


class _Mask(types.Type):
    """Eight truth values."""


FLOATS, WORDS, MASK = _Floats("eight_float64"), _Words("eight_uint64"), _Mask("eight_bool")


def _model(kind: type[types.Type], backend: ir.Type) -> None:
    @register_model(kind)
    class _Model(PrimitiveModel):
        def __init__(self, manager: Any, frontend: Any) -> None:
            super().__init__(manager, frontend, backend)


_model(_Floats, _FLOATS)
_model(_Words, _WORDS)
_model(_Mask, _BITS)


def _broadcast(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INDEX, 0))
    order = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, order)


def _operator(symbol: Any, gives: Any, takes: tuple[Any, ...], emit: Callable[..., Any]) -> None:
    """Define a Python operator on vectors by the LLVM that it emits."""

    @infer_global(symbol)
    class _Typed(ConcreteTemplate):
        cases = [signature(gives, *takes)]  # noqa: RUF012

    @lower_builtin(symbol, *takes)
    def _lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return emit(builder, *arguments)


_operator(operator.add, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fadd(x, y))
_operator(operator.sub, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fsub(x, y))
_operator(operator.mul, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fmul(x, y))
_operator(operator.neg, FLOATS, (FLOATS,), lambda b, x: b.fneg(x))
_operator(operator.truediv, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fdiv(x, y))
_operator(operator.lt, MASK, (FLOATS, FLOATS), lambda b, x, y: b.fcmp_ordered("<", x, y))
_operator(operator.add, WORDS, (WORDS, WORDS), lambda b, x, y: b.add(x, y))
_operator(operator.xor, WORDS, (WORDS, WORDS), lambda b, x, y: b.xor(x, y))
_operator(operator.and_, WORDS, (WORDS, WORDS), lambda b, x, y: b.and_(x, y))
_operator(operator.or_, WORDS, (WORDS, WORDS), lambda b, x, y: b.or_(x, y))
_operator(operator.and_, MASK, (MASK, MASK), lambda b, x, y: b.and_(x, y))
_operator(operator.or_, MASK, (MASK, MASK), lambda b, x, y: b.or_(x, y))
_operator(operator.invert, MASK, (MASK,), lambda b, x: b.not_(x))
_operator(
    operator.lshift,
    WORDS,
    (WORDS, types.int64),
    lambda b, x, k: b.shl(x, _broadcast(b, k, _WORDS)),
)
_operator(
    operator.rshift,
    WORDS,
    (WORDS, types.int64),
    lambda b, x, k: b.lshr(x, _broadcast(b, k, _WORDS)),
)


def _llvm(builder: Any, name: str, gives: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(gives, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _floats(name: str) -> Callable[..., Any]:
    """What emits a call of an LLVM function of vectors of float64."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _llvm(builder, f"llvm.{name}.v{LANES}f64", _FLOATS, *arguments)

    return emit


@intrinsic
def fma(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """``x*y + z``, rounded once: by the processor, or by the C library where it cannot."""
    return FLOATS(FLOATS, FLOATS, FLOATS), _floats("fma")


@intrinsic
def square_root(typing: Any, x: Any) -> Any:
    """Square root, correctly rounded."""
    return FLOATS(FLOATS), _floats("sqrt")


@intrinsic
def magnitude(typing: Any, x: Any) -> Any:
    """Absolute value."""
    return FLOATS(FLOATS), _floats("fabs")


@intrinsic
def with_sign(typing: Any, size: Any, sign: Any) -> Any:
    """``|size|`` with the sign of ``sign``."""
    return FLOATS(FLOATS, FLOATS), _floats("copysign")


@intrinsic
def every(typing: Any, value: Any) -> Any:
    """The same number in every lane."""
    gives, vector = (FLOATS, _FLOATS) if value == types.float64 else (WORDS, _WORDS)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _broadcast(builder, arguments[0], vector)

    return gives(types.float64 if gives is FLOATS else types.uint64), emit


def _same_bits(vector: ir.VectorType) -> Callable[..., Any]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], vector)

    return emit


@intrinsic
def as_words(typing: Any, x: Any) -> Any:
    """The bits of eight float64."""
    return WORDS(FLOATS), _same_bits(_WORDS)


@intrinsic
def as_floats(typing: Any, x: Any) -> Any:
    """Eight float64 of these bits."""
    return FLOATS(WORDS), _same_bits(_FLOATS)


@intrinsic
def where(typing: Any, mask: Any, x: Any, y: Any) -> Any:
    """Lane by lane ``x`` where the mask is true, else ``y``."""
    if mask != MASK or x != y or x not in (FLOATS, WORDS):
        return None

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return x(MASK, x, x), emit


@intrinsic
def highest_bit(typing: Any, x: Any) -> Any:
    """Whether the highest bit of a word is set."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(_WORDS, [0] * LANES)
        return builder.icmp_signed("<", arguments[0], zero)

    return MASK(WORDS), emit


@intrinsic
def all_true(typing: Any, mask: Any) -> Any:
    """Whether every lane of the mask is true."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = builder.bitcast(arguments[0], ir.IntType(LANES))
        full = builder.icmp_unsigned("==", whole, ir.Constant(whole.type, 2**LANES - 1))
        return context.cast(builder, full, types.boolean, types.boolean)

    return types.boolean(MASK), emit


@intrinsic
def total(typing: Any, x: Any) -> Any:
    """Sum of the lanes: the upper half is added to the lower one until one number is left."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole, width = arguments[0], LANES // 2
        while width:
            halves = [
                builder.shuffle_vector(
                    whole,
                    ir.Constant(whole.type, ir.Undefined),
                    ir.Constant(ir.VectorType(_INDEX, width), list(range(first, first + width))),
                )
                for first in (0, width)
            ]
            whole, width = builder.fadd(*halves), width // 2
        return builder.extract_element(whole, ir.Constant(_INDEX, 0))

    return types.float64(FLOATS), emit


@intrinsic
def pointer(typing: Any, array: Any) -> Any:
    """First element of a contiguous array that someone else keeps alive.

    Kernels hand pointers on instead of arrays, whose every passing costs a reference count.
    """
    kinds = (types.float64, types.uint64)
    if not (isinstance(array, types.Array) and array.layout == "C" and array.dtype in kinds):
        return None

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), emit


@intrinsic
def beyond(typing: Any, first: Any, count: Any) -> Any:
    """The element ``count`` places after the one that is pointed at."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return first(first, types.intp), emit


@intrinsic
def load(typing: Any, first: Any, index: Any) -> Any:
    """Eight neighbours, from ``index`` places after the pointer on; nothing is checked."""
    gives, vector = (FLOATS, _FLOATS) if first.dtype == types.float64 else (WORDS, _WORDS)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), vector.as_pointer())
        return builder.load(place, align=8)

    return gives(first, types.intp), emit


@intrinsic
def store(typing: Any, first: Any, index: Any, value: Any) -> Any:
    """Write eight neighbours, from ``index`` places after the pointer on; nothing is checked."""
    if value != (FLOATS if first.dtype == types.float64 else WORDS):
        return None

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, index, value = arguments
        place = builder.bitcast(builder.gep(first, [index]), value.type.as_pointer())
        builder.store(value, place, align=8)
        return context.get_dummy_value()

    return types.void(first, types.intp, value), emit


@intrinsic
def prefetch(typing: Any, first: Any, index: Any) -> Any:
    """Ask for the cache line of an element; one beyond the end does no harm."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.gep(arguments[0], [arguments[1]])
        byte = builder.bitcast(place, ir.IntType(8).as_pointer())
        # For writing, to be kept in every cache, of data.
        hints = [ir.Constant(_INDEX, k) for k in (1, 3, 1)]
        _llvm(builder, "llvm.prefetch.p0", ir.VoidType(), byte, *hints)
        return context.get_dummy_value()

    return types.void(first, types.intp), emit
