"""Calls of compiled functions by their address.

numba can hand functions on as arguments, but looks each one up anew at every call of a kernel,
which takes longer than a thousand steps of a chain.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hdica.process.compile_cache import refuse_interpreter

refuse_interpreter()

_DOUBLE = ir.DoubleType()


def _call(gives):  # type: ignore[no-untyped-def]
    """A code generator: the first argument is the address of a function of the others."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        address, *rest = arguments
        kind = ir.FunctionType(gives, [r.type for r in rest]).as_pointer()
        value = builder.call(builder.inttoptr(address, kind), rest)
        return value if gives is _DOUBLE else context.get_dummy_value()

    return emit


@intrinsic
def call_scalar(typing, address, x):  # type: ignore[no-untyped-def]
    """Value of a C function ``double f(double)``: :attr:`Formula.compiled`."""
    return types.float64(types.int64, types.float64), _call(_DOUBLE)


@intrinsic
def call_pair(typing, address, x, y):  # type: ignore[no-untyped-def]
    """Value of a C function ``double f(double, double)``: :attr:`Push.compiled_pair`."""
    return types.float64(types.int64, types.float64, types.float64), _call(_DOUBLE)


@intrinsic
def call_block(typing, address, x, out, count):  # type: ignore[no-untyped-def]
    """Call ``void phi(double *x, double *out, int64 count)``: :attr:`Formula.compiled_block`."""
    return types.void(types.int64, x, out, types.int64), _call(ir.VoidType())
