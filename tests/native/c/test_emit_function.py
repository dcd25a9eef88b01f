"""C back-end: bitwise equal to native kernels, without compiler warnings or undefined behaviour."""

import re
import shutil
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.c import emit_function
from hybridsim.native.c.emit_file import HELPERS, c_file
from hybridsim.native.c.emit_function import SlotLocation, c_function
from hybridsim.native.c.literal import literal
from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.functions import EXPANSIONS
from hybridsim.native.graph.graph import INT, Graph
from hybridsim.native.llvm import emit_straight_line
from hybridsim.native.runtime.function import NativeFunction
from support.c_library import EXACT, STRICT, build, call, needs_compiler, run, same_bits

SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, 2.5, 1e-310, -1e300, 1e19, -1e19, np.inf, -np.inf, np.nan, 0.3, -0.7])
POSITIVE = np.array([1e-300, 0.2, 1.0, 3.7, 50.0])
INTEGERS = np.array([0, 1, -1, 7, -7, 2**62, -(2**63), 2**63 - 1, 12345678901])
DIVISORS = np.array([0, -1, 3, -1, 2, -5, -1, 0, -77])


MORE_WARNINGS = ("-Wconversion", "-Wshadow", "-Wundef")
"""In addition to `-Wall -Wextra -pedantic`; all are errors."""
PAIR = (SPECIAL, SPECIAL[::-1])
SINGLE = tuple(np.clip(x, -3e38, 3e38).astype(np.float32) for x in PAIR)
CONSTANTS = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308, 0.1])
ELEMENTARY = [name for name in FUNCTIONS if "log" not in name]


def integers(a, b):
    sums = a + b, a - b, a * b * b, a & b, a | ~b, a ^ b
    return *sums, a // jnp.where(b == 0, 1, b), jax.lax.div(a, b), jax.lax.rem(a, b)


def shifts(a, k):
    shifted = jnp.left_shift(a, k), jnp.right_shift(a, k)
    return (*shifted, jnp.maximum(a, k), jnp.abs(a), a < k, a <= k, a == k, jnp.where(a > 0, a, k), a.astype(float))


FUNCTIONS_TO_EMIT = {
    "arithmetic": (lambda a, b: (a + b, a - b, a * b, a / b, -a, jnp.abs(a), a * b + a, a - a * b), PAIR),
    "comparisons": (lambda a, b: (a < b, a <= b, a == b, a != b, a > b), PAIR),
    "booleans": (lambda a, b: ((a < b) & (b > 0), (a < b) | (a == 1.0), (a < b) ^ (b < 1.0), ~(a < b)), PAIR),
    "choices": (lambda a, b: (jnp.where(a < b, a, b), jnp.maximum(a, b), jnp.clip(a, -1.0, b), jnp.sign(a)), PAIR),
    "rounding": (lambda a: (jnp.floor(a), jnp.ceil(a), jnp.round(a), jnp.trunc(a), jnp.sqrt(jnp.abs(a))), (SPECIAL,)),
    "conversions": (lambda a: (a.astype(jnp.int64), a.astype(bool), a.astype(jnp.float32)), (SPECIAL,)),
    "single_precision": (lambda a, b: (a + b, a * b, jnp.sin(a), a / b), SINGLE),
    "integers": (integers, (INTEGERS, DIVISORS)),
    "shifts": (shifts, (INTEGERS, np.array([0, 1, 63, 5, 62, 2, 63, 63, 40]))),
    "remainders": (lambda a, b: (jax.lax.rem(a, b), jnp.mod(a, b)), (POSITIVE, POSITIVE[::-1])),
    "unary": (lambda a: [getattr(jax.lax, name)(a) for name in ELEMENTARY], (np.array([-0.0, 0.3, -1.5, np.nan]),)),
    "logarithms": (lambda a: (jnp.log(a), jnp.log1p(a), jax.lax.logistic(a)), (POSITIVE,)),
    "binary": (lambda a, b: (jnp.power(a, b), jnp.arctan2(a, b)), (POSITIVE, -POSITIVE[::-1])),
    "loops": (lambda a: jax.lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) + i, a), (POSITIVE,)),
    "constants": (lambda a: (jnp.asarray(CONSTANTS), jnp.array([True]), jnp.array([-3])), (POSITIVE,)),
    "copies": (lambda a, b: (a, b), (SPECIAL, INTEGERS)),
}
"""Each operation, at its critical values."""


@pytest.fixture(scope="module")
def native_functions():
    return {name: NativeFunction(function, *arguments) for name, (function, arguments) in FUNCTIONS_TO_EMIT.items()}


def c_code(native: NativeFunction, name: str):
    return c_function("t", name, *native.rollout.graphs.step_graph, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})


@pytest.fixture(scope="module")
def library(native_functions, tmp_path_factory):
    source = tmp_path_factory.mktemp("c") / "all.c"
    source.write_text(c_source(native_functions))
    return build(source, *EXACT, *MORE_WARNINGS)


def c_source(native_functions) -> str:
    functions = [c_code(native, name) for name, native in native_functions.items()]
    return c_file("t", "\n".join(f.prototype for f in functions), functions)


def packed_arguments(native: NativeFunction, name: str) -> np.ndarray:
    return native.rollout.layouts.inputs.pack(FUNCTIONS_TO_EMIT[name][1])


@needs_compiler
@pytest.mark.parametrize("name", FUNCTIONS_TO_EMIT)
def test_the_same_bits_as_the_native_kernel(name, native_functions, library):
    native = native_functions[name]
    expected = native.rollout.layouts.outputs.pack(native(*FUNCTIONS_TO_EMIT[name][1]))
    (result,) = call(library, f"t_{name}", [packed_arguments(native, name)], [len(expected)])
    # integers are compared by their bits in a row of doubles, none of which is a NaN
    assert same_bits(result, expected)


@needs_compiler
def test_blocks_compute_the_same(native_functions, tmp_path, monkeypatch):
    """The result does not depend on the block size, whatever type of value is spilled."""
    results = []
    for size in (5, 10**6):
        monkeypatch.setattr(emit_function, "MAX_BLOCK_OPERATIONS", size)
        source = tmp_path / f"blocks{size}.c"
        source.write_text(c_source(native_functions))
        library = build(source, *STRICT, "-O0")
        outputs = [
            call(library, f"t_{name}", [packed_arguments(native, name)], [native.rollout.layouts.outputs.size])[0]
            for name, native in native_functions.items()
        ]
        results.append(np.concatenate(outputs))
    assert same_bits(*results)


def test_scratch_memory_is_reused(monkeypatch):
    monkeypatch.setattr(emit_function, "MAX_BLOCK_OPERATIONS", 3)
    graph = Graph()
    x = graph.input("s", 0)
    for _ in range(100):
        x = graph.node("sqrt", graph.node("add", x, graph.input("s", 1)))
    function = c_function("t", "chain", graph, {("y", 0): x}, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})
    assert function.text.count("static") == 67 and function.scratch_cells == 2


@pytest.mark.skipif(shutil.which("clang") is None, reason="this machine has no clang")
def test_clang_gives_no_warnings(native_functions, tmp_path):
    source = tmp_path / "all.c"
    source.write_text(c_source(native_functions))
    build(source, *STRICT, "-O2", *MORE_WARNINGS, compiler="clang", suffix=".o")


@needs_compiler
def test_no_undefined_behaviour(native_functions, tmp_path):
    """The sanitizers report no overflow, invalid shift, conversion out of range or invalid access."""
    source = tmp_path / "main.c"
    calls = []
    for name, native in native_functions.items():
        patterns = ", ".join(f"UINT64_C({n})" for n in packed_arguments(native, name).view(np.uint64).tolist())
        size = native.rollout.layouts.outputs.size
        calls.append(
            f"{{ static const uint64_t bits[] = {{{patterns}}}; double s[sizeof bits / 8], y[{size}];\n"
            f"  memcpy(s, bits, sizeof bits); t_{name}(s, y); }}"
        )
    source.write_text(c_source(native_functions) + "int main(void)\n{\n" + "\n".join(calls) + "\nreturn 0;\n}\n")
    checks = "-fsanitize=undefined,address,float-cast-overflow"
    try:
        run("cc", "-std=c99", checks, "-fno-sanitize-recover=all", "main.c", "-lm", "-o", "main", folder=tmp_path)
    except RuntimeError as error:
        if "asan" in str(error) or "ubsan" in str(error):
            pytest.skip("the compiler has no sanitizers")
        raise
    run("./main", folder=tmp_path)


@needs_compiler
def test_shifts_of_any_width(tmp_path):
    """Shifts by 64 bits and more give zeros, or copies of the sign, as XLA defines it."""
    graph = Graph()
    a, k = (graph.input("s", i, INT) for i in range(2))
    outputs = {("y", i): graph.integer(op, a, k) for i, op in enumerate(("shl", "lshr", "ashr"))}
    function = c_function("t", "shift", graph, outputs, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})
    source = tmp_path / "shift.c"
    source.write_text(c_file("t", function.prototype, [function]))
    library = build(source, *EXACT)
    for number in (5, -5, -(2**63)):
        for width in (0, 1, 63, 64, 200, -1):
            arguments = np.array([number, width]).view(np.float64)
            result = call(library, "t_shift", [arguments], [3])[0].view(np.int64).tolist()
            wide = not 0 <= width < 64
            left = 0 if wide else (number << width) % 2**64
            expected = [left - 2**64 if left >= 2**63 else left]
            zeros = 0 if wide else (number % 2**64) >> width
            expected += [zeros - 2**64 if zeros >= 2**63 else zeros, number >> (63 if wide else width)]
            assert result == expected


def test_literals_are_exact():
    rng = np.random.default_rng(0)
    values = [
        *rng.integers(0, 2**63, size=200).view(np.float64),
        0.0,
        -0.0,
        1.0,
        -2.0,
        0.1,
        5e-324,
        1.8e308 / 1.01,
        2.0**52,
    ]
    for value in (float(v) for v in values if np.isfinite(v)):
        text = literal(value).strip("()")
        read = float.fromhex(text) if "x" in text else float(text)
        assert struct.pack("<d", read) == struct.pack("<d", value)
    assert literal(True) == "1" and literal(-1) == "UINT64_C(0xffffffffffffffff)"


def test_unused_arguments_are_accepted():
    graph = Graph()
    function = c_function(
        "t", "f", graph, {("y", 0): graph.constant(2.0)}, {"s": SlotLocation("s")}, {"y": SlotLocation("y", 3)}
    )
    assert "(void)s;" in function.text and "y[3] = 2.0;" in function.text and function.scratch_cells == 0
    assert function.prototype == "void t_f(const double *s, double *y);"


def test_only_called_helpers_are_defined(native_functions):
    function = c_code(native_functions["comparisons"], "comparisons")
    text = c_file("t", "", [function])
    defined = {name for name in HELPERS if re.search(rf"\bt_{name}\(", text)}
    assert defined == function.helpers == {"from_bits"}


def test_every_native_operation_has_c_code():
    tables = (
        emit_straight_line._FLOAT_OPS,
        emit_straight_line._INTRINSICS,
        emit_straight_line._INTEGER_OPS,
        emit_straight_line._LOGIC_OPS,
        emit_straight_line._FLOAT_COMPARISONS,
    )
    inline = set("fma neg select not idiv irem bits from_bits to_float to_int float32".split())
    library = emit_straight_line._C_FUNCTIONS - set(EXPANSIONS)
    assert inline.union(library, *tables) == set(emit_function._OPERATIONS)


def test_operations_without_c_code_are_reported():
    graph = Graph()
    unknown = graph.node("gamma", graph.input("s", 0))
    with pytest.raises(UnsupportedOperationError, match="'gamma' cannot be exported as C"):
        c_function("t", "f", graph, {("y", 0): unknown}, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})


@needs_compiler
def test_options_that_break_the_arithmetic_are_refused(native_functions, tmp_path):
    source = tmp_path / "f.c"
    function = c_code(native_functions["arithmetic"], "f")
    source.write_text(c_file("t", function.prototype, [function]))
    with pytest.raises(RuntimeError, match="compile without -ffast-math"):
        build(source, "-std=c99", "-O2", "-ffast-math", suffix=".o")
