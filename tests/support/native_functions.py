"""Evaluation of graphs with NumPy, and comparison of native results with XLA, for tests of native code."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import llvmlite.binding as llvm
import numpy as np

from hybridsim.native.graph.elementary import FUNCTIONS, reference_function
from hybridsim.native.graph.graph import FLOAT, INT, Graph
from hybridsim.native.runtime.function import NativeFunction

# evaluation of graphs with NumPy

_FMA = """
declare double @llvm.fma.f64(double, double, double)
define void @fma_loop(ptr %a, ptr %b, ptr %c, ptr %out, i64 %n) {
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  %pa = getelementptr double, ptr %a, i64 %i
  %pb = getelementptr double, ptr %b, i64 %i
  %pc = getelementptr double, ptr %c, i64 %i
  %po = getelementptr double, ptr %out, i64 %i
  %x = load double, ptr %pa
  %y = load double, ptr %pb
  %z = load double, ptr %pc
  %r = call double @llvm.fma.f64(double %x, double %y, double %z)
  store double %r, ptr %po
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@cache
def _fma_loop():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_FMA), machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
    return kind(engine.get_function_address("fma_loop")), engine


def _fma(a, b, c):
    """a·b + c with a single rounding, which NumPy does not support."""
    arrays = [np.array(v, float) for v in np.broadcast_arrays(a, b, c)]
    out = np.empty_like(arrays[0])
    _fma_loop()[0](*(v.ctypes.data for v in arrays), out.ctypes.data, out.size)
    return out[()]


def _logical_shift_right(a, n):
    return (np.asarray(a).view(np.uint64) >> np.uint64(n)).view(np.int64)


PLAIN_OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "fma": _fma, "sqrt": np.sqrt,
    "abs": np.abs, "neg": np.negative, "rint": np.rint, "select": np.where, "lt": np.less, "eq": np.equal,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
    "iadd": np.add, "isub": np.subtract, "iand": np.bitwise_and, "ior": np.bitwise_or, "ixor": np.bitwise_xor,
    "shl": np.left_shift, "lshr": _logical_shift_right, "ashr": np.right_shift,
    "bits": lambda a: np.asarray(a, float).view(np.int64), "from_bits": lambda a: np.asarray(a, np.int64).view(float),
}  # fmt: skip
"""Operations with a SIMD instruction, without integer conversions."""

NUMPY_OPS = {
    **{name: reference_function(name) for name in FUNCTIONS},
    **PLAIN_OPS,
    "pow": np.power, "atan2": np.arctan2,
    "rem": np.fmod, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "le": np.less_equal, "ne": np.not_equal,
    "imul": np.multiply, "float32": lambda a: np.float32(a).astype(float),
    "to_float": lambda a: np.asarray(a, float), "to_int": lambda a: np.trunc(a).astype(np.int64),
}  # fmt: skip
"""All graph operations except those that trap."""


def evaluate_graph(graph: Graph, results: Sequence[int], inputs: Mapping[str, Sequence]) -> list[np.ndarray]:
    """Values of nodes.

    Args:
        graph: the graph.
        results: the nodes to evaluate.
        inputs: for each slot, the values of its entries: scalars, or arrays for vectorized evaluation.
    """
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in graph.live_nodes(results):
            op, constant = graph.ops[node], graph.constants.get(node)
            if constant is not None:
                values[node] = {FLOAT: np.float64, INT: np.int64}.get(graph.kinds[node], bool)(constant)
            elif op == "input":
                slot, index = graph.data[node]
                values[node] = inputs[slot][index]
            else:
                values[node] = NUMPY_OPS[op](*(values[a] for a in graph.args[node]))
    return [values[node] for node in results]


# comparison of native results with XLA


class FunctionCase(NamedTuple):
    """A function with example arguments."""

    function: Callable
    arguments: tuple


def case(function: Callable, *arguments) -> FunctionCase:
    """A case whose Python numbers are converted to scalar arrays."""
    return FunctionCase(function, tuple(jax.tree.map(np.asarray, arguments)))


BATCH = 5
"""Batch size; not a multiple of any number of lanes."""


def check_against_xla(cases: Mapping[str, FunctionCase], tolerance: float, *, element_by_element: bool = False) -> None:
    """Check that native results equal those of XLA, and that single and batched results are bitwise equal.

    All functions are compiled as one program, which is much faster. The other members of the batch have the same
    arguments with their elements rotated.

    Args:
        cases: functions by name.
        tolerance: maximum relative difference of floats; zero for bitwise equality. Integers must be equal.
        element_by_element: whether differences are relative to each element, rather than to the largest one.
    """

    def all_cases(arguments):
        return {name: one.function(*arguments[name]) for name, one in cases.items()}

    all_arguments = {name: one.arguments for name, one in cases.items()}
    members = [jax.tree.map(lambda x, k=k: np.roll(x, k), all_arguments) for k in range(BATCH)]
    native, xla_function = NativeFunction(all_cases, all_arguments), jax.jit(all_cases)
    singles = [native(arguments) for arguments in members]
    batch = native(jax.tree.map(lambda *rows: np.stack(rows), *members), batched=True)
    problems = []
    for k, (arguments, single) in enumerate(zip(members, singles, strict=True)):
        expected = xla_function(arguments)
        for name in cases:
            leaves = [jax.tree.leaves(tree[name]) for tree in (single, expected, batch)]
            for index, (native_result, xla_result, lane) in enumerate(zip(*leaves, strict=True)):
                what = f"{name}, result {index}, member {k}"
                if problem := describe_difference(native_result, np.asarray(xla_result), tolerance, element_by_element):
                    problems.append(f"{what}: {problem}")
                if problem := describe_difference(lane[k], native_result, 0.0):
                    problems.append(f"{what}, in a batch: {problem}")
    assert not problems, "\n".join(problems)


def describe_difference(
    actual: np.ndarray, expected: np.ndarray, tolerance: float, element_by_element: bool = False
) -> str:
    """Description of the differences of two arrays; empty if they are equal. All NaNs are equal."""
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if actual.dtype.kind != "f":
        differs = actual != expected
    elif tolerance == 0.0:
        differs = ((actual != expected) | (np.signbit(actual) != np.signbit(expected))) & ~(
            np.isnan(actual) & np.isnan(expected)
        )
    else:
        finite = np.abs(expected[np.isfinite(expected)])
        scale = np.abs(expected) if element_by_element else finite.max(initial=0.0)
        with np.errstate(invalid="ignore"):
            close = np.abs(actual - expected) <= tolerance * scale
        differs = ~(close | (actual == expected) | (np.isnan(actual) & np.isnan(expected)))
    if not differs.any():
        return ""
    indices = np.argwhere(differs)
    shown = [f"{p.tolist()}: {actual[tuple(p)]!r} instead of {expected[tuple(p)]!r}" for p in indices[:3]]
    return f"{len(indices)} of {actual.size} differ, " + "; ".join(shown)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Reproducible normal random numbers."""
    return np.random.default_rng((seed, *shape)).normal(size=shape)
