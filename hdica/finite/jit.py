"""Calls of compiled functions by their address.

numba can hand functions on as arguments, but looks each one up anew at every call of a kernel,
which takes longer than a thousand steps of a chain.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hdica.process.compile_cache import refuse_interpreter

refuse_interpreter()

_DOUBLE = ir.DoubleType()


@intrinsic
def call_scalar(typing: Any, address: Any, x: Any) -> Any:
    """Value of a C function ``double f(double)``: :attr:`Formula.compiled`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE]).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], kind), [arguments[1]])

    return types.float64(types.int64, types.float64), emit


@intrinsic
def call_pair(typing: Any, address: Any, x: Any, y: Any) -> Any:
    """Value of a C function ``double f(double, double)``: :attr:`Push.compiled_pair`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE, _DOUBLE]).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], kind), arguments[1:])

    return types.float64(types.int64, types.float64, types.float64), emit


@intrinsic
def call_block(typing: Any, address: Any, x: Any, out: Any, count: Any) -> Any:
    """Call ``void phi(double *x, double *out, int64 count)``: :attr:`Formula.compiled_block`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function, *rest = arguments
        kind = ir.FunctionType(ir.VoidType(), [r.type for r in rest]).as_pointer()
        builder.call(builder.inttoptr(function, kind), rest)
        return context.get_dummy_value()

    return types.void(types.int64, x, out, types.int64), emit
