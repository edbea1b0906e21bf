"""Eight float64 or uint64 numbers as one compiled value, added, multiplied and stored together.

Written out as vectors of LLVM instead of left to its auto-vectoriser, an expression means the
same operations in the same order on every processor: wide registers only run them faster.
Nothing is reassociated, and a fused multiply-add is one because the source says ``fma``.
Only functions compiled by numba can use these names.
"""

from __future__ import annotations

import operator

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


def _emits(build):  # type: ignore[no-untyped-def]
    """A code generator of numba, of a function of the builder and the arguments."""
    return lambda context, builder, signature, arguments: build(builder, *arguments)


def _model(kind, backend):  # type: ignore[no-untyped-def]
    @register_model(kind)
    class _Model(PrimitiveModel):
        def __init__(self, manager, frontend):  # type: ignore[no-untyped-def]
            super().__init__(manager, frontend, backend)


_model(_Floats, _FLOATS)
_model(_Words, _WORDS)
_model(_Mask, _BITS)


def _broadcast(builder, value, vector):  # type: ignore[no-untyped-def]
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INDEX, 0))
    order = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, order)


def _operator(symbol, gives, takes, build):  # type: ignore[no-untyped-def]
    """Define a Python operator on vectors by the LLVM that it emits."""

    @infer_global(symbol)
    class _Typed(ConcreteTemplate):
        cases = [signature(gives, *takes)]  # noqa: RUF012

    lower_builtin(symbol, *takes)(_emits(build))


_operator(operator.add, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fadd(x, y))
_operator(operator.sub, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fsub(x, y))
_operator(operator.mul, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fmul(x, y))
_operator(operator.neg, FLOATS, (FLOATS,), lambda b, x: b.fneg(x))
_operator(operator.truediv, FLOATS, (FLOATS, FLOATS), lambda b, x, y: b.fdiv(x, y))
_operator(operator.lt, MASK, (FLOATS, FLOATS), lambda b, x, y: b.fcmp_ordered("<", x, y))
_operator(operator.add, WORDS, (WORDS, WORDS), lambda b, x, y: b.add(x, y))
_operator(operator.xor, WORDS, (WORDS, WORDS), lambda b, x, y: b.xor(x, y))
for _kind in (WORDS, MASK):
    _operator(operator.and_, _kind, (_kind, _kind), lambda b, x, y: b.and_(x, y))
    _operator(operator.or_, _kind, (_kind, _kind), lambda b, x, y: b.or_(x, y))
_operator(operator.invert, MASK, (MASK,), lambda b, x: b.not_(x))
_BY = (WORDS, types.int64)
_operator(operator.lshift, WORDS, _BY, lambda b, x, k: b.shl(x, _broadcast(b, k, _WORDS)))
_operator(operator.rshift, WORDS, _BY, lambda b, x, k: b.lshr(x, _broadcast(b, k, _WORDS)))


def _llvm(name, gives):  # type: ignore[no-untyped-def]
    """A function of the builder and the arguments that emits a call of an LLVM function."""

    def build(builder, *arguments):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(gives, [a.type for a in arguments])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return build


def _of_floats(name):  # type: ignore[no-untyped-def]
    return _emits(_llvm(f"llvm.{name}.v{LANES}f64", _FLOATS))


@intrinsic
def fma(typing, x, y, z):  # type: ignore[no-untyped-def]
    """``x*y + z``, rounded once: by the processor, or by the C library where it cannot."""
    return FLOATS(FLOATS, FLOATS, FLOATS), _of_floats("fma")


@intrinsic
def square_root(typing, x):  # type: ignore[no-untyped-def]
    """Square root, correctly rounded."""
    return FLOATS(FLOATS), _of_floats("sqrt")


@intrinsic
def magnitude(typing, x):  # type: ignore[no-untyped-def]
    """Absolute value."""
    return FLOATS(FLOATS), _of_floats("fabs")


@intrinsic
def with_sign(typing, size, sign):  # type: ignore[no-untyped-def]
    """``|size|`` with the sign of ``sign``."""
    return FLOATS(FLOATS, FLOATS), _of_floats("copysign")


@intrinsic
def every(typing, value):  # type: ignore[no-untyped-def]
    """The same number in every lane."""
    if value == types.float64:
        return FLOATS(types.float64), _emits(lambda b, x: _broadcast(b, x, _FLOATS))
    return WORDS(types.uint64), _emits(lambda b, x: _broadcast(b, x, _WORDS))


@intrinsic
def as_words(typing, x):  # type: ignore[no-untyped-def]
    """The bits of eight float64."""
    return WORDS(FLOATS), _emits(lambda b, x: b.bitcast(x, _WORDS))


@intrinsic
def as_floats(typing, x):  # type: ignore[no-untyped-def]
    """Eight float64 of these bits."""
    return FLOATS(WORDS), _emits(lambda b, x: b.bitcast(x, _FLOATS))


@intrinsic
def where(typing, mask, x, y):  # type: ignore[no-untyped-def]
    """Lane by lane ``x`` where the mask is true, else ``y``."""
    if mask != MASK or x != y or x not in (FLOATS, WORDS):
        return None
    return x(MASK, x, x), _emits(lambda b, mask, x, y: b.select(mask, x, y))


@intrinsic
def highest_bit(typing, x):  # type: ignore[no-untyped-def]
    """Whether the highest bit of a word is set."""
    zero = ir.Constant(_WORDS, [0] * LANES)
    return MASK(WORDS), _emits(lambda b, x: b.icmp_signed("<", x, zero))


@intrinsic
def all_true(typing, mask):  # type: ignore[no-untyped-def]
    """Whether every lane of the mask is true."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        whole = builder.bitcast(arguments[0], ir.IntType(LANES))
        full = builder.icmp_unsigned("==", whole, ir.Constant(whole.type, 2**LANES - 1))
        return context.cast(builder, full, types.boolean, types.boolean)

    return types.boolean(MASK), emit


@intrinsic
def total(typing, x):  # type: ignore[no-untyped-def]
    """Sum of the lanes: the upper half is added to the lower one until one number is left."""

    def build(builder, whole):  # type: ignore[no-untyped-def]
        width = LANES // 2
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

    return types.float64(FLOATS), _emits(build)


@intrinsic
def pointer(typing, array):  # type: ignore[no-untyped-def]
    """First element of a contiguous array, which the caller or :func:`keep_alive` keeps.

    Kernels hand pointers on instead of arrays, whose every passing costs a reference count.
    """
    kinds = (types.float64, types.uint64)
    if not (isinstance(array, types.Array) and array.layout == "C" and array.dtype in kinds):
        return None

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), emit


@intrinsic
def keep_alive(typing, array):  # type: ignore[no-untyped-def]
    """Keep an array that was made in a kernel until here.

    Numba frees an array after the last use of its name, whatever points into it.
    """

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.get_dummy_value()

    return types.void(array), emit


@intrinsic
def beyond(typing, first, count):  # type: ignore[no-untyped-def]
    """The element ``count`` places after the one that is pointed at."""
    return first(first, types.intp), _emits(lambda b, first, count: b.gep(first, [count]))


@intrinsic
def load(typing, first, index):  # type: ignore[no-untyped-def]
    """Eight neighbours, from ``index`` places after the pointer on; nothing is checked."""
    gives, vector = (FLOATS, _FLOATS) if first.dtype == types.float64 else (WORDS, _WORDS)

    def build(builder, first, index):  # type: ignore[no-untyped-def]
        place = builder.bitcast(builder.gep(first, [index]), vector.as_pointer())
        return builder.load(place, align=8)

    return gives(first, types.intp), _emits(build)


@intrinsic
def store(typing, first, index, value):  # type: ignore[no-untyped-def]
    """Write eight neighbours, from ``index`` places after the pointer on; nothing is checked."""
    if value != (FLOATS if first.dtype == types.float64 else WORDS):
        return None

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        first, index, value = arguments
        place = builder.bitcast(builder.gep(first, [index]), value.type.as_pointer())
        builder.store(value, place, align=8)
        return context.get_dummy_value()

    return types.void(first, types.intp, value), emit


@intrinsic
def prefetch(typing, first, index):  # type: ignore[no-untyped-def]
    """Ask for the cache line of an element; one beyond the end does no harm."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = builder.gep(arguments[0], [arguments[1]])
        byte = builder.bitcast(place, ir.IntType(8).as_pointer())
        # For writing, to be kept in every cache, of data.
        hints = [ir.Constant(_INDEX, k) for k in (1, 3, 1)]
        _llvm("llvm.prefetch.p0", ir.VoidType())(builder, byte, *hints)
        return context.get_dummy_value()

    return types.void(first, types.intp), emit
