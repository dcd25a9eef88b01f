"""Graphs as C: the same bits as the native kernels, without warnings, and with defined behaviour only."""

import re
import shutil
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.errors import UnsupportedPrimitive
from hybridsim.native.c import emit_function
from hybridsim.native.c.emit_file import HELPERS, c_file
from hybridsim.native.c.emit_function import SlotLocation, c_function
from hybridsim.native.c.literal import literal
from hybridsim.native.graph.functions import EXPANSIONS
from hybridsim.native.graph.graph import FUNCTIONS, INT, Graph
from hybridsim.native.llvm import emit_straight_line
from hybridsim.native.runtime.function import NativeFunction
from support.c_library import EXACT, STRICT, build, call, needs_compiler, run, same_bits

SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, 2.5, 1e-310, -1e300, 1e19, -1e19, np.inf, -np.inf, np.nan, 0.3, -0.7])
POSITIVE = np.array([1e-300, 0.2, 1.0, 3.7, 50.0])
WHOLE = np.array([0, 1, -1, 7, -7, 2**62, -(2**63), 2**63 - 1, 12345678901])
DIVISORS = np.array([0, -1, 3, -1, 2, -5, -1, 0, -77])


MORE_WARNINGS = ("-Wconversion", "-Wshadow", "-Wundef")
"""On top of `-Wall -Wextra -pedantic`, all of them errors."""
PAIR = (SPECIAL, SPECIAL[::-1])
SINGLE = tuple(np.clip(x, -3e38, 3e38).astype(np.float32) for x in PAIR)
CONSTANTS = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308, 0.1])
ELEMENTARY = [name for name in FUNCTIONS if "log" not in name]


def whole_numbers(a, b):
    sums = a + b, a - b, a * b * b, a & b, a | ~b, a ^ b
    return *sums, a // jnp.where(b == 0, 1, b), jax.lax.div(a, b), jax.lax.rem(a, b)


def shifts(a, k):
    shifted = jnp.left_shift(a, k), jnp.right_shift(a, k)
    return (*shifted, jnp.maximum(a, k), jnp.abs(a), a < k, a <= k, a == k, jnp.where(a > 0, a, k), a.astype(float))


FUNCTIONS_TO_PRINT = {
    "arithmetic": (lambda a, b: (a + b, a - b, a * b, a / b, -a, jnp.abs(a), a * b + a, a - a * b), PAIR),
    "comparisons": (lambda a, b: (a < b, a <= b, a == b, a != b, a > b), PAIR),
    "truths": (lambda a, b: ((a < b) & (b > 0), (a < b) | (a == 1.0), (a < b) ^ (b < 1.0), ~(a < b)), PAIR),
    "choices": (lambda a, b: (jnp.where(a < b, a, b), jnp.maximum(a, b), jnp.clip(a, -1.0, b), jnp.sign(a)), PAIR),
    "rounding": (lambda a: (jnp.floor(a), jnp.ceil(a), jnp.round(a), jnp.trunc(a), jnp.sqrt(jnp.abs(a))), (SPECIAL,)),
    "conversions": (lambda a: (a.astype(jnp.int64), a.astype(bool), a.astype(jnp.float32)), (SPECIAL,)),
    "single_precision": (lambda a, b: (a + b, a * b, jnp.sin(a), a / b), SINGLE),
    "whole_numbers": (whole_numbers, (WHOLE, DIVISORS)),
    "shifts": (shifts, (WHOLE, np.array([0, 1, 63, 5, 62, 2, 63, 63, 40]))),
    "remainders": (lambda a, b: (jax.lax.rem(a, b), jnp.mod(a, b)), (POSITIVE, POSITIVE[::-1])),
    "of_any": (lambda a: [getattr(jax.lax, name)(a) for name in ELEMENTARY], (np.array([-0.0, 0.3, -1.5, np.nan]),)),
    "logarithms": (lambda a: (jnp.log(a), jnp.log1p(a), jax.lax.logistic(a)), (POSITIVE,)),
    "of_two": (lambda a, b: (jnp.power(a, b), jnp.arctan2(a, b)), (POSITIVE, -POSITIVE[::-1])),
    "loops": (lambda a: jax.lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) + i, a), (POSITIVE,)),
    "nothing_read": (lambda a: (jnp.asarray(CONSTANTS), jnp.array([True]), jnp.array([-3])), (POSITIVE,)),
    "copies": (lambda a, b: (a, b), (SPECIAL, WHOLE)),
}
"""Each operation at the values where it could go wrong."""


@pytest.fixture(scope="module")
def natives():
    return {name: NativeFunction(function, *given) for name, (function, given) in FUNCTIONS_TO_PRINT.items()}


def printed(native: NativeFunction, name: str):
    return c_function("t", name, *native.rollout.program.step_graph, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})


@pytest.fixture(scope="module")
def library(natives, tmp_path_factory):
    source = tmp_path_factory.mktemp("c") / "all.c"
    source.write_text(written(natives))
    return build(source, *EXACT, *MORE_WARNINGS)


def written(natives) -> str:
    functions = [printed(native, name) for name, native in natives.items()]
    return c_file("t", "\n".join(f.prototype for f in functions), functions)


def rows(native: NativeFunction, name: str) -> np.ndarray:
    return native.rollout.forms.inputs.pack(FUNCTIONS_TO_PRINT[name][1])


@needs_compiler
@pytest.mark.parametrize("name", FUNCTIONS_TO_PRINT)
def test_the_same_bits_as_the_native_kernel(name, natives, library):
    native = natives[name]
    expected = native.rollout.forms.outputs.pack(native(*FUNCTIONS_TO_PRINT[name][1]))
    (found,) = call(library, f"t_{name}", [rows(native, name)], [len(expected)])
    # whole numbers are compared too: a row holds their bits, and no pattern here looks like NaN
    assert same_bits(found, expected)


@needs_compiler
def test_pieces_compute_the_same(natives, tmp_path, monkeypatch):
    """However finely a function is cut, in whatever kind of value the cut goes through."""
    outcomes = []
    for size in (5, 10**6):
        monkeypatch.setattr(emit_function, "MAX_BLOCK_OPERATIONS", size)
        source = tmp_path / f"pieces{size}.c"
        source.write_text(written(natives))
        library = build(source, *STRICT, "-O0")
        found = [
            call(library, f"t_{name}", [rows(native, name)], [native.rollout.forms.outputs.size])[0]
            for name, native in natives.items()
        ]
        outcomes.append(np.concatenate(found))
    assert same_bits(*outcomes)


def test_working_memory_is_used_again(monkeypatch):
    monkeypatch.setattr(emit_function, "MAX_BLOCK_OPERATIONS", 3)
    graph = Graph()
    x = graph.input("s", 0)
    for _ in range(100):
        x = graph.node("sqrt", graph.node("add", x, graph.input("s", 1)))
    function = c_function("t", "chain", graph, {("y", 0): x}, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})
    assert function.text.count("static") == 67 and function.work == 2


@pytest.mark.skipif(shutil.which("clang") is None, reason="this machine has no clang")
def test_clang_warns_of_nothing_either(natives, tmp_path):
    source = tmp_path / "all.c"
    source.write_text(written(natives))
    build(source, *STRICT, "-O2", *MORE_WARNINGS, compiler="clang", to=".o")


@needs_compiler
def test_nothing_undefined_happens(natives, tmp_path):
    """The sanitizer of gcc and clang sees no overflow, no bad shift, no conversion out of range, no stray access."""
    source = tmp_path / "main.c"
    calls = []
    for name, native in natives.items():
        patterns = ", ".join(f"UINT64_C({n})" for n in rows(native, name).view(np.uint64).tolist())
        size = native.rollout.forms.outputs.size
        calls.append(
            f"{{ static const uint64_t bits[] = {{{patterns}}}; double s[sizeof bits / 8], y[{size}];\n"
            f"  memcpy(s, bits, sizeof bits); t_{name}(s, y); }}"
        )
    source.write_text(written(natives) + "int main(void)\n{\n" + "\n".join(calls) + "\nreturn 0;\n}\n")
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
    """Wider shifts than 64 bits give zeros, or copies of the sign, as XLA defines it."""
    graph = Graph()
    a, k = (graph.input("s", i, INT) for i in range(2))
    outputs = {("y", i): graph.integer(op, a, k) for i, op in enumerate(("shl", "lshr", "ashr"))}
    function = c_function("t", "shift", graph, outputs, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})
    source = tmp_path / "shift.c"
    source.write_text(c_file("t", function.prototype, [function]))
    library = build(source, *EXACT)
    for number in (5, -5, -(2**63)):
        for width in (0, 1, 63, 64, 200, -1):
            given = np.array([number, width]).view(np.float64)
            found = call(library, "t_shift", [given], [3])[0].view(np.int64).tolist()
            wide = not 0 <= width < 64
            left = 0 if wide else (number << width) % 2**64
            expected = [left - 2**64 if left >= 2**63 else left]
            zeros = 0 if wide else (number % 2**64) >> width
            expected += [zeros - 2**64 if zeros >= 2**63 else zeros, number >> (63 if wide else width)]
            assert found == expected


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


def test_arguments_that_nobody_reads_are_accepted():
    graph = Graph()
    function = c_function(
        "t", "f", graph, {("y", 0): graph.constant(2.0)}, {"s": SlotLocation("s")}, {"y": SlotLocation("y", 3)}
    )
    assert "(void)s;" in function.text and "y[3] = 2.0;" in function.text and function.work == 0
    assert function.prototype == "void t_f(const double *s, double *y);"


def test_only_helpers_that_are_called_are_there(natives):
    function = printed(natives["comparisons"], "comparisons")
    text = c_file("t", "", [function])
    named = {name for name in HELPERS if re.search(rf"\bt_{name}\(", text)}
    assert named == function.helpers == {"from_bits"}


def test_what_has_native_code_has_c_code():
    tables = (
        emit_straight_line._FLOAT_OPS,
        emit_straight_line._INTRINSICS,
        emit_straight_line._INTEGER_OPS,
        emit_straight_line._LOGIC_OPS,
        emit_straight_line._FLOAT_COMPARISONS,
    )
    others = set("fma neg select not idiv irem bits from_bits to_float to_int single".split())
    library = emit_straight_line._C_FUNCTIONS - set(EXPANSIONS)
    assert others.union(library, *tables) == set(emit_function._OPERATIONS)


def test_operations_without_c_code_are_named():
    graph = Graph()
    strange = graph.node("gamma", graph.input("s", 0))
    with pytest.raises(UnsupportedPrimitive, match="'gamma' has no C code"):
        c_function("t", "f", graph, {("y", 0): strange}, {"s": SlotLocation("s")}, {"y": SlotLocation("y")})


@needs_compiler
def test_options_that_break_the_arithmetic_are_refused(natives, tmp_path):
    source = tmp_path / "f.c"
    function = printed(natives["arithmetic"], "f")
    source.write_text(c_file("t", function.prototype, [function]))
    with pytest.raises(RuntimeError, match="compile without -ffast-math"):
        build(source, "-std=c99", "-O2", "-ffast-math", to=".o")
