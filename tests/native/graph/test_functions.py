"""Expansions of elementary functions: accuracy, special cases and instruction counts."""

import itertools
import math
from collections import Counter
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from hybridsim.native.graph.functions import EXPANSIONS, expand
from hybridsim.native.graph.graph import Graph
from hybridsim.native.graph.optimize import optimize
from support.native_functions import PLAIN_OPS, evaluate_graph

ULP_BOUNDS = {
    "sin": 1.6, "cos": 1.6, "tan": 1.95, "asin": 1.4, "acos": 1.4, "atan": 1.6, "atan2": 1.7, "exp": 1.1, "exp2": 1.2,
    "expm1": 1.4, "sinh": 1.5, "cosh": 1.5, "tanh": 2.6, "logistic": 1.95, "log": 1.6, "log1p": 1.8, "pow": 1.4,
}  # fmt: skip
"""Largest error in ulp."""
INSTRUCTION_BOUNDS = {
    "sin": 32, "cos": 33, "tan": 46, "asin": 33, "acos": 35, "atan": 39, "atan2": 50, "exp": 26, "exp2": 26,
    "expm1": 29, "sinh": 35, "cosh": 33, "tanh": 25, "logistic": 30, "log": 43, "log1p": 43, "pow": 127,
}  # fmt: skip
"""Largest number of instructions with fused multiply-add, not counting bitcasts and negations."""
FREE_OPS = {"const", "input", "bits", "from_bits", "neg"}

MP_FUNCTIONS = {
    "exp2": lambda x: mp.mpf(2) ** x,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "log": mp.ln,
    "pow": lambda x, y: mp.sign(x) ** int(y) * abs(x) ** y if y == int(y) else x**y,
}

VARIANTS = ("fused", "plain", "fused kernel", "plain kernel")
"""With or without fused multiply-add; the bare expansion, or after the optimization passes of a kernel."""


def _arity(name: str) -> int:
    return 2 if name in ("pow", "atan2") else 1


@cache
def _graph(name: str, variant: str) -> tuple[Graph, int]:
    graph = Graph()
    arguments = [graph.input("x", k) for k in range(_arity(name))]
    fused = variant.startswith("fused")
    if variant.endswith("kernel"):
        graph, (result,) = optimize(graph, [graph.function(name, *arguments)], fma=fused)
    else:
        result = expand(graph, name, *arguments, fma=fused)
        assert result is not None
    return graph, result


def evaluate(name: str, variant: str, *arguments) -> np.ndarray:
    graph, result = _graph(name, variant)
    return evaluate_graph(graph, [result], {"x": [np.asarray(a, float) for a in arguments]})[0]


# exact values


def exact_value(name: str, *arguments: float):
    """Value with 200 bits."""
    with mp.workprec(200):
        function = MP_FUNCTIONS.get(name) or getattr(mp, name)
        return function(*(mp.mpf(a) for a in arguments))


def ulp_error(actual: float, exact_value) -> float:
    """Error in ulp of the exact value; for denormal results, in units of the smallest float."""
    with mp.workprec(200):
        if mp.isinf(exact_value) or abs(exact_value) >= 2**1024 - 2**970:
            return 0.0 if actual == math.copysign(math.inf, exact_value) else math.inf
        if not math.isfinite(actual):
            return math.inf
        unit = mp.ldexp(1, max(mp.frexp(exact_value)[1] - 53, -1074))
        return float(abs(mp.mpf(actual) - exact_value) / unit)


def _log_uniform(random, low: float, high: float, count: int) -> np.ndarray:
    """Log-uniform random values between powers of ten, with both signs."""
    return random.choice([-1.0, 1.0], count) * 10.0 ** random.uniform(low, high, count)


def _neighbours(values) -> np.ndarray:
    """Values and their neighbouring floats."""
    values = np.asarray(values, float)
    return np.concatenate([values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf)])


def _arguments(name: str, count: int) -> tuple[np.ndarray, ...]:
    """Arguments over the domain of a function, dense where it is difficult."""
    random = np.random.default_rng(list(name.encode()))
    uniform, small = random.uniform, _log_uniform(random, -20, -1, count // 4)
    denormal = np.array([5e-324, -5e-324, 1e-310, -2.2e-308])
    if name in ("sin", "cos", "tan"):
        multiples = random.integers(-636_000, 636_000, count)
        near = _neighbours([float(k * mp.pi / 2) for k in multiples] + [math.pi / 4, -math.pi / 4])
        parts = uniform(-1, 1, count), uniform(-10, 10, count), uniform(-1e6, 1e6, count), near, small, denormal
    elif name in ("exp", "exp2"):
        low, high = (-745.2, 709.9) if name == "exp" else (-1075.1, 1024.1)
        edges = _neighbours(
            [709.782712893384, -745.1332191019412, -708.3964185322641, 1024.0, -1022.0, -1074.0, -1075.0]
        )
        parts = uniform(-2, 2, count), uniform(low, high, count), uniform(low, -705, count // 4), edges, small, denormal
    elif name in ("expm1", "sinh", "cosh", "tanh", "logistic"):
        edges = _neighbours([709.782712893384, 710.4758600739439, 0.65, -37.5, 19.1, 0.5 * math.log(2)])
        parts = uniform(-2, 2, count), uniform(-40, 40, count), uniform(-745, 711, count), edges, small, denormal
    elif name in ("log", "log1p"):
        near = _neighbours([math.sqrt(2), math.sqrt(0.5)]) - (name == "log1p")
        near_minus_one = -1 + 10.0 ** uniform(-15, 0, count // 4)
        parts = np.abs(_log_uniform(random, -307, 308.2, count)), uniform(0, 3, count), near
        parts = (*parts, near_minus_one, small, denormal) if name == "log1p" else (*parts, 1 + small, np.abs(denormal))
    elif name in ("asin", "acos"):
        parts = uniform(-1, 1, count), 1 - np.abs(small), np.abs(small) - 1, small, _neighbours([0.5, -0.5]), denormal
    elif name == "atan":
        parts = uniform(-3, 3, count), _log_uniform(random, -8, 20, count), _neighbours([1.0, -1.0]), denormal
    elif name == "atan2":
        near = uniform(-2, 2, count), _log_uniform(random, -150, 150, count)
        return np.concatenate([*near, denormal]), np.concatenate([near[0][::-1], near[1][::-1], denormal + 1.0])
    else:
        # results in the normal range, from bases far from one, near one and denormal; integer powers of negative bases
        base = np.concatenate(
            [np.exp(uniform(-700, 700, count)), uniform(0.4, 2.5, count), 1 + small, [1e-310, 5e-324]]
        )
        base = base[base != 1.0]
        power = uniform(-708, 709, base.size) / np.log(base)
        whole = random.integers(-60, 60, count)
        return np.concatenate([base, -uniform(0, 50, count)]), np.concatenate([power, whole])
    return (np.concatenate(parts),)


@cache
def _references(name: str, count: int) -> tuple[tuple[np.ndarray, ...], list]:
    arguments = _arguments(name, count)
    return arguments, [exact_value(name, *a) for a in zip(*arguments, strict=True)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", EXPANSIONS)
def test_accuracy(name, variant):
    arguments, exact_values = _references(name, 400)
    errors = [ulp_error(float(g), t) for g, t in zip(evaluate(name, variant, *arguments), exact_values, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= ULP_BOUNDS[name], [a[worst] for a in arguments]


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="requires extended precision for comparison")
@pytest.mark.parametrize("name", EXPANSIONS)
def test_accuracy_on_dense_samples(name):
    arguments = _arguments(name, 400_000)
    extended = [a.astype(np.longdouble) for a in arguments]
    with np.errstate(all="ignore"):
        exact_values = 1 / (1 + np.exp(-extended[0])) if name == "logistic" else getattr(np, name)(*extended)
        unit = np.ldexp(np.longdouble(1), np.maximum(np.frexp(exact_values)[1] - 53, -1074))
        for variant in VARIANTS:
            errors = np.abs(evaluate(name, variant, *arguments) - exact_values) / unit
            is_finite = np.abs(exact_values) < 2.0**1023 * 1.999
            worst = np.argmax(np.where(is_finite, errors, 0.0))
            assert errors[worst] <= ULP_BOUNDS[name], (variant, [a[worst] for a in arguments])


# special cases

EDGES = [0.0, 5e-324, 1e-310, 2.0**-1022, 1e-20, 0.5, 1.0, 1.5, 2.0, 3.0, 1e15, 1e16 + 2, 1e300, 1.7976931348623157e308]
EDGES = [*EDGES, math.inf, *(-e for e in EDGES), -math.inf, math.nan]


def _same(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Elementwise: equal to within 2 ulp, and bitwise (except NaN) where the result is 0, 1 or infinite."""
    with np.errstate(all="ignore"):
        close = np.abs(actual - expected) <= 2 * np.spacing(np.abs(expected))
    is_exact = np.isin(np.abs(expected), [0.0, 1.0, np.inf])
    equal = (actual == expected) & (np.signbit(actual) == np.signbit(expected))
    return np.where(np.isnan(expected), np.isnan(actual), np.where(is_exact, equal, close))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", EXPANSIONS)
def test_special_cases_equal_the_c_library(name, variant):
    edges = [e for e in EDGES if not (name in ("sin", "cos", "tan") and 1e6 < abs(e) < math.inf)]
    points = np.array(list(itertools.product(edges, repeat=_arity(name)))).T
    with np.errstate(all="ignore"):
        expected = special.expit(*points) if name == "logistic" else getattr(np, name)(*points)
    same = _same(evaluate(name, variant, *points), expected)
    assert same.all(), points[:, ~same]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_huge_angles_stay_bounded(name, variant):
    random = np.random.default_rng(0)
    x = _log_uniform(random, 6, 15, 20_000)
    actual = evaluate(name, variant, x)
    assert np.abs(actual).max() <= 1.0
    # the error is that of rounding x once more
    assert (np.abs(actual - getattr(np, name)(x)) <= np.spacing(np.abs(x))).all()
    assert np.isnan(evaluate(name, variant, [1.01e15, -2e15, 1e18, 1e300, np.inf])).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "tanh", "expm1", "log1p"])
def test_sign_of_zero_is_preserved(name, variant):
    assert np.signbit(evaluate(name, variant, [-0.0, 0.0])).tolist() == [True, False]


@pytest.mark.parametrize("variant", VARIANTS)
def test_odd_and_even_functions_are_bitwise_symmetric(variant):
    x = _arguments("sinh", 300)[0]
    for name in ("sin", "tan", "atan", "sinh", "tanh"):
        np.testing.assert_array_equal(evaluate(name, variant, -x), -evaluate(name, variant, x))
    for name in ("cos", "cosh"):
        np.testing.assert_array_equal(evaluate(name, variant, -x), evaluate(name, variant, x))
    assert np.abs(evaluate("tanh", variant, x)).max() <= 1.0


# instructions


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", EXPANSIONS)
def test_expansions_use_simd_instructions_only(name, variant):
    graph, result = _graph(name, variant)
    used = graph.op_counts([result])
    assert set(used) <= {*PLAIN_OPS, "const", "input"}
    assert used["div"] + used["sqrt"] <= 1
    assert ("fma" in used) == variant.startswith("fused")


def _instruction_count(graph: Graph, *results: int) -> int:
    return sum(count for op, count in Counter(graph.op_counts(results)).items() if op not in FREE_OPS)


@pytest.mark.parametrize("name", EXPANSIONS)
def test_instruction_count(name):
    assert _instruction_count(*_graph(name, "fused")) <= INSTRUCTION_BOUNDS[name]


def test_sine_and_cosine_share_their_range_reduction():
    graph = Graph()
    x = graph.input("x", 0)
    sine, cosine = (expand(graph, name, x, fma=True) for name in ("sin", "cos"))
    assert sine is not None and cosine is not None
    assert _instruction_count(graph, sine, cosine) <= INSTRUCTION_BOUNDS["sin"] + 5


@pytest.mark.parametrize(("exponent", "operations"), [(1.5, 110), (0.5, 4), (1.0, 0), (2.0, 1), (-1.0, 1)])
def test_constant_exponents_need_fewer_instructions(exponent, operations):
    graph = Graph()
    power = expand(graph, "pow", graph.input("x", 0), graph.constant(exponent), fma=True)
    assert power is not None
    assert _instruction_count(graph, power) <= operations
    x = np.array(EDGES)
    with np.errstate(all="ignore"):
        # with an array of exponents, because NumPy has special cases for scalar ones
        assert _same(evaluate_graph(graph, [power], {"x": [x]})[0], np.power(x, np.full_like(x, exponent))).all()


def test_rare_functions_are_left_to_the_c_library():
    graph = Graph()
    assert expand(graph, "erf", graph.input("x", 0), fma=True) is None
