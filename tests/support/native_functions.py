"""What tests of native code share: a graph evaluated by NumPy, and native results beside those of XLA."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import llvmlite.binding as llvm
import numpy as np
from scipy import special

from hybridsim.native.graph.graph import FLOAT, FUNCTIONS, INT, Graph
from hybridsim.native.runtime.function import NativeFunction

# a graph evaluated by NumPy

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
    """a·b + c rounded once, which NumPy cannot do."""
    arrays = [np.array(v, float) for v in np.broadcast_arrays(a, b, c)]
    out = np.empty_like(arrays[0])
    _fma_loop()[0](*(v.ctypes.data for v in arrays), out.ctypes.data, out.size)
    return out[()]


def _shifted_right(a, n):
    return (np.asarray(a).view(np.uint64) >> np.uint64(n)).view(np.int64)


PLAIN_OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "fma": _fma, "sqrt": np.sqrt,
    "abs": np.abs, "neg": np.negative, "rint": np.rint, "select": np.where, "lt": np.less, "eq": np.equal,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
    "iadd": np.add, "isub": np.subtract, "iand": np.bitwise_and, "ior": np.bitwise_or, "ixor": np.bitwise_xor,
    "shl": np.left_shift, "lshr": _shifted_right, "ashr": np.right_shift,
    "bits": lambda a: np.asarray(a, float).view(np.int64), "from_bits": lambda a: np.asarray(a, np.int64).view(float),
}  # fmt: skip
"""Operations that are one instruction on every lane, without a conversion of whole numbers."""

_NUMPY_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"
}  # fmt: skip
NUMPY_OPS = {
    **{f: getattr(np, _NUMPY_NAMES.get(f, f)) for f in FUNCTIONS if f not in ("logistic", "erf", "erfc")},
    **PLAIN_OPS,
    "logistic": special.expit, "erf": special.erf, "erfc": special.erfc, "pow": np.power, "atan2": np.arctan2,
    "rem": np.fmod, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "le": np.less_equal, "ne": np.not_equal,
    "imul": np.multiply, "single": lambda a: np.float32(a).astype(float),
    "to_float": lambda a: np.asarray(a, float), "to_int": lambda a: np.trunc(a).astype(np.int64),
}  # fmt: skip
"""All operations of a graph except those that trap."""


def evaluated(graph: Graph, results: Sequence[int], inputs: Mapping[str, Sequence]) -> list[np.ndarray]:
    """The values of nodes.

    Args:
        graph: what to evaluate.
        results: the nodes that are wanted.
        inputs: numbers, or arrays of as many numbers as there are to be evaluated at once, for each cell of a slot.
    """
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in graph.live(results):
            op, known = graph.ops[node], graph.constants.get(node)
            if known is not None:
                values[node] = {FLOAT: np.float64, INT: np.int64}.get(graph.kinds[node], bool)(known)
            elif op == "input":
                slot, index = graph.data[node]
                values[node] = inputs[slot][index]
            else:
                values[node] = NUMPY_OPS[op](*(values[a] for a in graph.args[node]))
    return [values[node] for node in results]


# native results beside those of XLA


class Case(NamedTuple):
    """A function with arguments for it."""

    function: Callable
    arguments: tuple


def case(function: Callable, *arguments) -> Case:
    """A function with arguments; Python numbers become arrays without axes."""
    return Case(function, tuple(jax.tree.map(np.asarray, arguments)))


BATCH = 5
"""Not a multiple of any number of lanes."""


def check(cases: Mapping[str, Case], tolerance: float, *, element_by_element: bool = False) -> None:
    """Native code gives what XLA gives, and the same bits for one set of arguments as for a batch.

    All functions are compiled as one, which is much faster. The arguments of the other members of the batch are the
    given ones with their numbers shifted on.

    Args:
        cases: functions by name.
        tolerance: largest relative difference of floats; zero means the same bits. Whole numbers must be equal.
        element_by_element: is the difference relative to each number, or to the largest one of an array?
    """

    def together(arguments):
        return {name: one.function(*arguments[name]) for name, one in cases.items()}

    given = {name: one.arguments for name, one in cases.items()}
    members = [jax.tree.map(lambda x, k=k: np.roll(x, k), given) for k in range(BATCH)]
    native, by_xla = NativeFunction(together, given), jax.jit(together)
    singles = [native(arguments) for arguments in members]
    batch = native(jax.tree.map(lambda *rows: np.stack(rows), *members), batched=True)
    problems = []
    for k, (arguments, single) in enumerate(zip(members, singles, strict=True)):
        expected = by_xla(arguments)
        for name in cases:
            leaves = [jax.tree.leaves(tree[name]) for tree in (single, expected, batch)]
            for place, (got, wanted, lane) in enumerate(zip(*leaves, strict=True)):
                what = f"{name}, result {place}, member {k}"
                if problem := difference(got, np.asarray(wanted), tolerance, element_by_element):
                    problems.append(f"{what}: {problem}")
                if problem := difference(lane[k], got, 0.0):
                    problems.append(f"{what}, in a batch: {problem}")
    assert not problems, "\n".join(problems)


def difference(got: np.ndarray, wanted: np.ndarray, tolerance: float, element_by_element: bool = False) -> str:
    """What is wrong with an array, in words; nothing if it is right. NaN is NaN, whatever its bits."""
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return f"{got.dtype}{got.shape} instead of {wanted.dtype}{wanted.shape}"
    if got.dtype.kind != "f":
        wrong = got != wanted
    elif tolerance == 0.0:
        wrong = ((got != wanted) | (np.signbit(got) != np.signbit(wanted))) & ~(np.isnan(got) & np.isnan(wanted))
    else:
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = np.abs(wanted) if element_by_element else finite.max(initial=0.0)
        with np.errstate(invalid="ignore"):
            close = np.abs(got - wanted) <= tolerance * scale
        wrong = ~(close | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    if not wrong.any():
        return ""
    places = np.argwhere(wrong)
    shown = [f"{p.tolist()}: {got[tuple(p)]!r} instead of {wanted[tuple(p)]!r}" for p in places[:3]]
    return f"{len(places)} of {got.size} differ, " + "; ".join(shown)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers, always the same."""
    return np.random.default_rng((seed, *shape)).normal(size=shape)
