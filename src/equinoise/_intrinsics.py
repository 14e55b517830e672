"""What the machine can do and Python cannot say: bits of a float, a 128-bit product, a prefetch.

Each is a Python function, which runs with the compiler switched off, and Numba compiles it, or an overload
with the same result, to one or two instructions.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_jitable


@register_jitable
def float_bits(value: float) -> Any:
    """Return the 64 bits of a float64 as an int64."""
    return np.float64(value).view(np.int64)


@register_jitable
def bits_float(value: int) -> Any:
    """Return the float64 that has these 64 bits (an int64)."""
    return np.int64(value).view(np.float64)


@intrinsic
def _wide_product(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


def high_product(a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the 128-bit product of two uint64."""
    return np.uint64((int(a) * int(b)) >> 64)


@overload(high_product)
def _high_product(a, b):  # type: ignore[no-untyped-def]  # Numba compares the signatures
    return lambda a, b: _wide_product(a, b)  # type: ignore[call-arg]


@intrinsic
def _prefetch(typingctx: Any, values: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.PointerType(ir.IntType(8)))
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        read, keep, data_cache = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(function, [address, read, keep, data_cache])
        return context.get_dummy_value()

    return types.none(values, types.intp), codegen


def prefetch(values: Any, index: int) -> None:
    """Ask for the cache line of values[index] ahead of its use; an index out of range does no harm."""


@overload(prefetch)
def _overload_prefetch(values, index):  # type: ignore[no-untyped-def]
    return lambda values, index: _prefetch(values, index)  # type: ignore[call-arg]
