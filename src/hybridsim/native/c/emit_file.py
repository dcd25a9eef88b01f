"""C files of generated functions: compile-time checks, and the helper functions that are called.

Integers are `uint64_t` throughout and interpreted as two's complement where their sign matters. Bit patterns are
reinterpreted by `memcpy`, which is well defined in both C and C++ and which compilers optimize away.
"""

from collections.abc import Sequence

from hybridsim.native.c.emit_function import NOINLINE_MACRO, CFunction

PREAMBLE = f"""\
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if DBL_MANT_DIG != 53 || FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#error "needs 64-bit doubles without excess precision; on 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif
#ifdef __FAST_MATH__
#error "needs IEEE 754 arithmetic; compile without -ffast-math"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
#ifdef __GNUC__
#define $PREFIX_{NOINLINE_MACRO} __attribute__((noinline))
#else
#define $PREFIX_{NOINLINE_MACRO}
#endif
"""

HELPERS = {
    "bits": "static inline uint64_t $bits(double x) { uint64_t n; memcpy(&n, &x, sizeof n); return n; }",
    "from_bits": "static inline double $from_bits(uint64_t n) { double x; memcpy(&x, &n, sizeof x); return x; }",
    "signed": "static inline int64_t $signed(uint64_t n) { int64_t s; memcpy(&s, &n, sizeof s); return s; }",
    # volatile, because gcc 12 omits the rounding when it vectorizes two adjacent conversions to float and back
    "float32": "static inline double $float32(double x) { volatile float y = (float)x; return (double)y; }",
    "shl": "static inline uint64_t $shl(uint64_t n, uint64_t k) { return k < 64 ? n << k : 0; }",
    "lshr": "static inline uint64_t $lshr(uint64_t n, uint64_t k) { return k < 64 ? n >> k : 0; }",
    "ashr": """\
static inline uint64_t $ashr(uint64_t n, uint64_t k)
{
    const uint64_t sign = 0 - (n >> 63);
    return k < 64 ? ((n ^ sign) >> k) ^ sign : sign;
}""",
    # for divisor zero the quotient is -1 and the remainder the dividend, as in XLA; magnitudes do not overflow
    "idiv": """\
static inline uint64_t $idiv(uint64_t a, uint64_t b)
{
    const uint64_t magnitude = (a >> 63 ? 0 - a : a) / (b == 0 ? 1 : b >> 63 ? 0 - b : b);
    return b == 0 ? UINT64_MAX : (a >> 63) == (b >> 63) ? magnitude : 0 - magnitude;
}""",
    "irem": """\
static inline uint64_t $irem(uint64_t a, uint64_t b)
{
    const uint64_t magnitude = (a >> 63 ? 0 - a : a) % (b == 0 ? 1 : b >> 63 ? 0 - b : b);
    return b == 0 ? a : a >> 63 ? 0 - magnitude : magnitude;
}""",
    # truncation towards zero; values out of range saturate, and NaN becomes zero
    "to_int": """\
static inline uint64_t $to_int(double x)
{
    if (!(x > -0x1p63)) return x <= -0x1p63 ? UINT64_C(1) << 63 : 0;
    return x < 0x1p63 ? (uint64_t)(int64_t)x : UINT64_MAX >> 1;
}""",
}
"""Source code of each helper function; `$` is the prefix of its name."""


def c_file(prefix: str, head: str, functions: Sequence[CFunction]) -> str:
    """Content of a C file.

    Args:
        prefix: prefix of the functions' names.
        head: a comment, and the inclusion of the functions' declarations.
        functions: functions in the order of their definitions.
    """
    called = set().union(*(function.helpers for function in functions))
    # only those called, because compilers warn about unused functions
    helpers = [text.replace("$", f"{prefix}_") for name, text in HELPERS.items() if name in called]
    preamble = PREAMBLE.replace("$PREFIX", prefix.upper())
    return "\n".join([head, preamble, *helpers, "", *(function.text for function in functions)])
