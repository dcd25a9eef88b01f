"""Elementwise and higher-order rules, and networks, against XLA, single and batched.

Array rules are in test_rules_arrays.py.
"""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special
from scipy.special import erfinv

from hybridsim.core.errors import UnsupportedOperationError
from hybridsim.native.lowering import lower, rules_calls
from hybridsim.native.runtime.function import NativeFunction
from support.native_functions import case, check_against_xla, describe_difference, normal

TOLERANCE = 2e-14
EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -0.5, 1.5, 0.49999999999999994, -3e9, 1e100])
PAIRS = np.stack(np.meshgrid(EDGES[:9], EDGES[:9])).reshape(2, -1)
MODERATE = np.array([-2.7, -0.3, 0.9, 2.1])
POSITIVE = np.array([0.02, 0.7, 1.3, 4.4])
BOOLEANS = np.array([False, True, True, False, True])
INTEGERS = {
    "int64": np.array([0, 1, -1, -7, 2**31, -(2**63), 2**63 - 1], np.int64),
    "int32": np.array([0, 1, -1, -7, -(2**31), 2**31 - 1], np.int32),
    "int8": np.array([1, -1, 127, -128, 5], np.int8),
    "uint8": np.array([0, 1, 255, 128, 5], np.uint8),
}


@pytest.fixture(autouse=True)
def standard_promotion():
    """JAX's standard type promotion, as in user code."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


# elementwise


def test_elementary_functions():
    """Every name maps to its function; accuracy and special cases are tested in test_functions.py."""
    all_reals = "sin cos tan arctan sinh cosh tanh exp exp2 expm1 arcsinh cbrt square reciprocal sinc deg2rad".split()
    cases = {name: case(getattr(jnp, name), MODERATE) for name in all_reals}
    cases |= {name: case(getattr(jnp, name), POSITIVE) for name in "sqrt log log1p log2 log10".split()}
    cases |= {name: case(getattr(jnp, name), MODERATE / 3) for name in "arcsin arccos arctanh".split()}
    cases |= {name: case(getattr(special, name), MODERATE) for name in ("erf", "erfc", "expit", "ndtr")}
    for name in "arctan2 hypot logaddexp fmod remainder floor_divide float_power copysign".split():
        cases[name] = case(getattr(jnp, name), POSITIVE, MODERATE)
    cases |= {
        "arccosh": case(jnp.arccosh, POSITIVE + 1.0),
        "rsqrt": case(lax.rsqrt, POSITIVE),
        "pow": case(lambda x, y: (x**y, x**2.5, x**0.5, x**-2, x**7, 2.0**x, x**0), POSITIVE, MODERATE),
        "powers": case(lambda x: [lax.integer_pow(x, n) for n in (-3, 0, 1, 2, 5)], MODERATE),
        "integer powers": case(lambda x, n: (x**n, jnp.ldexp(x, n)), MODERATE, np.array([2, -1, 0, 3])),
    }
    check_against_xla(cases, 4e-14, element_by_element=True)


def test_inverse_of_erf():
    """Against SciPy, because XLA is accurate to only ten digits near ±1."""
    x = np.array([0.0, 0.3, -0.49999, 0.5, -0.999, 0.999999, 1 - 2.0**-53, 1e-300, 1.0, -1.0, 1.1, np.nan])
    actual = NativeFunction(lax.erf_inv, x)(x)
    assert not describe_difference(actual, erfinv(x), 4e-15, element_by_element=True)


def test_arithmetic_in_special_cases():
    extremes = (jnp.maximum, jnp.minimum)
    cases = {
        "arithmetic": case(lambda x, y: (x + y, x - y, x * y, x / y), *PAIRS),
        "extremes": case(lambda x, y: [op(x, y) for op in extremes], *PAIRS),
        "compared": case(lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), *PAIRS),
        "total order": case(lambda x, y: (lax.lt_to_p.bind(x, y), lax.le_to_p.bind(x, y)), *PAIRS),
        "bounded": case(lambda x: [op(x, c) for op in extremes for c in (1.0, -np.inf, np.inf, np.nan)], EDGES),
        "divided by constants": case(lambda x: [x / c for c in (3.0, 1e30, np.inf, -np.inf, np.nan, 0.0)], EDGES),
        "constants divided": case(lambda x: [c / x for c in (3.0, np.inf, np.nan)], EDGES),
        "rounded": case(lambda x: (jnp.floor(x), jnp.ceil(x), jnp.trunc(x), jnp.round(x), lax.round(x)), EDGES),
        "sign": case(lambda x: (jnp.sign(x), jnp.abs(x), -x, jnp.signbit(x), jnp.copysign(1.0, x)), EDGES),
        "finite": case(lambda x: (jnp.isfinite(x), jnp.isnan(x), jnp.isinf(x), jnp.nan_to_num(x)), EDGES),
        "clip": case(lambda x: (jnp.clip(x, -1.0, 2.0), jnp.clip(x, None, np.inf)), EDGES),
        "clamp": case(lambda x: (lax.clamp(-1.0, x, 2.0), lax.clamp(2.0, x, -1.0), lax.clamp(np.nan, x, 1.0)), EDGES),
        "roots": case(lambda x: (jnp.sqrt(x), x**0.5, x**3, x**-1, jnp.exp(x), jnp.log(x), jnp.tanh(x)), EDGES),
        "constants": case(lambda: (jnp.sqrt(np.float64(-1.0)), jnp.floor(np.float64(np.inf)), jnp.float64(0.0) / 0.0)),
    }
    check_against_xla(cases, TOLERANCE, element_by_element=True)


def test_sign_of_zero():
    """Preserved except by sums, differences, maxima and minima."""
    zeros = np.array([0.0, -0.0])
    ops = (jnp.sin, jnp.sqrt, jnp.floor, jnp.ceil, jnp.round, jnp.trunc, jnp.sign, jnp.negative, jnp.tanh, jnp.arctan)
    cases = {op.__name__: case(op, zeros) for op in ops}
    cases["products"] = case(lambda x: (x * 3.0, x / 3.0, x * -2.0, 1.0 / x, x**3, jnp.where(x == 0, x, 1.0)), zeros)
    cases["rearranged"] = case(
        lambda x: (x[::-1], jnp.stack([x, -x]), jnp.array([-0.0]), jnp.ceil(jnp.float64(-0.3))), zeros
    )
    check_against_xla(cases, 0.0)


def test_zero_times_anything_is_zero():
    """By design, unlike in XLA: zeros of a mechanism are structural."""
    products = NativeFunction(lambda x: (x * 0.0, 0.0 * x, 0.0 / x), EDGES)(EDGES)
    np.testing.assert_array_equal(products, np.zeros((3, len(EDGES))))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    """Overflow, division by zero and shifts by more than the width are as in XLA."""
    x = INTEGERS[name]
    pairs = np.stack(np.meshgrid(x, x)).reshape(2, -1)
    distances = np.array([0, 3, 7, 8, 32, 64, -1]).astype(name)
    shifts = np.stack(np.meshgrid(x, distances)).reshape(2, -1)
    binary = "add sub mul div rem max min bitwise_and bitwise_or bitwise_xor lt le eq ne".split()
    cases = {op: case(getattr(lax, op), *pairs) for op in binary}
    cases |= {op: case(getattr(jnp, op), *pairs) for op in ("floor_divide", "remainder")}
    cases |= {op: case(getattr(lax, op), x) for op in ("neg", "sign", "bitwise_not", "square")}
    for op in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
        cases[op] = case(getattr(lax, op), *shifts)
        cases[op + " by 3"] = case(lambda x, op=op: getattr(lax, op)(x, np.asarray(3, x.dtype)), x)
    cases |= {
        # further operations on the results reveal missing wraparound
        "wrapped": case(lambda x: ((x + x) > x, (x - x[1]) > x, (x * x) // 7, (x << 3) > 0, ~x > 0, -x > 0), x),
        "wrapped sums": case(lambda x: (lax.reduce_sum(x, (0,)) > 0, lax.cumsum(x) // 3, lax.cumprod(x) // 3), x),
        "wrapped products": case(lambda x: (lax.reduce_prod(x[1:5], (0,)) // 3, jnp.outer(x, x) @ x // 2), x),
        "powers": case(lambda x: (lax.integer_pow(x, 3) // 3, lax.integer_pow(x, 0)), x),
        "scattered": case(lambda x: x.at[np.array([0, 0, 1])].add(x[:3]) // 3, x),
        "extremes": case(lambda x: (x.max(), x.min(), x.argmax(), x.argmin(), lax.cummax(x), jnp.sort(x)), x),
        "bits": case(lambda x: [op(values, (0,)) for op in _BITWISE for values in (x, x[:0])], x),
        "booleans": case(lambda x: (jnp.any(x), jnp.all(x), x.astype(bool)), x),
        "converted": case(lambda x: [x.astype(t) for t in (float, np.float32, *INTEGERS)], x),
    }
    if name != "uint8":
        cases["abs"] = case(lambda x: lax.abs(x) // 3, x)
    check_against_xla(cases, 0.0)


_BITWISE = (lax.reduce_and, lax.reduce_or, lax.reduce_xor)


def test_integer_constants():
    """Constant folding has the same results."""
    x = INTEGERS["int32"]
    pairs = np.stack(np.meshgrid(x, x)).reshape(2, -1)
    operations = (lax.add, lax.mul, lax.div, lax.rem, lax.shift_left, lax.shift_right_logical, lax.bitwise_xor)

    def with_constants(x):
        a, b = (lax.optimization_barrier(p) for p in pairs)
        floats = [lax.optimization_barrier(np.array([1e30, -np.inf, np.nan, -2.5])).astype(t) for t in INTEGERS]
        return [op(a, b) for op in operations], a << 3, floats, x

    check_against_xla({"constants": case(with_constants, 1.0)}, 0.0)


def test_conversions_of_floats_and_booleans():
    beyond = np.array([1e19, -1e19, 254.9, 255.1, 127.9, -128.9, -129.1, 2.0**31, 2.0**63, -(2.0**63)])
    cases = {
        "to integers": case(lambda x: [lax.convert_element_type(x, t) for t in (*INTEGERS, bool)], beyond),
        "special cases to integers": case(lambda x: [lax.convert_element_type(x, t) for t in (*INTEGERS, bool)], EDGES),
        "to single": case(lambda x: x.astype(np.float32), np.append(EDGES[:-1], MODERATE)),
        "bits": case(lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, int) ^ 7, float), EDGES[7:]),
        "from booleans": case(lambda t: [t.astype(kind) for kind in (float, np.float32, *INTEGERS)], BOOLEANS),
        "booleans": case(lambda t: (t & t[::-1], t | t[::-1], t ^ t[::-1], ~t, t < t[::-1], t >= t[::-1]), BOOLEANS),
        "selected": case(lambda t: (jnp.where(t, t[::-1], ~t), jnp.sort(t), t.max(), t.min(), t.argmax()), BOOLEANS),
        "counted": case(lambda t: (t.sum(), t.any(), t.all(), lax.reduce_xor(t, (0,)), jnp.cumsum(t)), BOOLEANS),
    }
    check_against_xla(cases, 0.0)


def test_single_precision():
    """Arithmetic is bitwise equal; functions, which are approximate in XLA, are equal to within a few ulp."""
    x, y = (normal(40, seed=k).astype(np.float32) for k in range(2))
    big = np.array([1e30, 3e38, -1e30, 1e-15], np.float32)
    exact = {
        "arithmetic": case(lambda x, y: (x + y, x - y, x * y, x / y, -x, abs(x), jnp.sqrt(abs(x)), x * x), x, y),
        "constants": case(lambda x: (x * 0.1, x + np.float32(0.7), x - 1.0, 1 / x), x),
        "compared": case(lambda x, y: (x < y, jnp.maximum(x, y), jnp.where(x > y, x, y)), x, y),
        "created": case(lambda x: (jnp.arange(1, 4, dtype=np.float32) * x[0], jnp.tri(3), np.float32(0.1)), x),
        "converted": case(lambda x: (x.astype(float), (100 * x).astype(int)), x),
        "overflow": case(lambda x: (x * x, x / np.float32(1e-30)), big),
        "sorted": case(lambda x: (jnp.sort(x), lax.top_k(x, 2), x.argmax()), x[:7]),
    }
    check_against_xla(exact, 0.0)
    approximate = {
        "functions": case(lambda x, y: (jnp.sin(x), jnp.exp(x), jnp.tanh(x), jnp.arctan2(x, y), abs(x) ** y), x, y),
        "sums": case(lambda x, y: (x.sum(), x @ y, jnp.cumsum(x), jnp.linalg.norm(x), x.std()), x[:9] ** 2, y[:9] ** 2),
        "solve": case(lambda A, b: jnp.linalg.solve(A + 3 * np.eye(3, dtype=A.dtype), b), x[:9].reshape(3, 3), x[:3]),
        "gradient": case(lambda x: jax.grad(lambda v: jnp.tanh(v * v).sum())(x), x[:9]),
    }
    check_against_xla(approximate, 2e-6)


def test_single_precision_division_is_correctly_rounded():
    """Unlike in XLA, which multiplies by the rounded reciprocal of a constant."""
    x = normal(200).astype(np.float32)
    actual = NativeFunction(lambda x: (x / 3, x / np.float32(0.7), (x * x) + x), x)(x)
    for result, expected in zip(actual, (x / np.float32(3), x / np.float32(0.7), x * x + x), strict=True):
        np.testing.assert_array_equal(result, expected)


# higher-order primitives


@jax.custom_jvp
def _with_jvp(x):
    return jnp.sin(x)


_with_jvp.defjvp(lambda primals, tangents: (_with_jvp(primals[0]), 7.0 * tangents[0] * primals[0]))


@jax.custom_vjp
def _with_vjp(x, y):
    return x * y


_with_vjp.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, ct: (2.0 * ct * saved[1], 3.0 * ct * saved[0]))


def test_loops_and_branches():
    x, v = normal(3, 4), normal(5)
    branches = [jnp.sin, jnp.cos, lambda v: v * 2]

    def scans(x):
        forward = lax.scan(lambda c, u: (c * 0.5 + u, c.sum()), jnp.zeros(4), x)
        backward = lax.scan(lambda c, u: (c * 0.5 + u, (c, u)), jnp.zeros(4), x, reverse=True)
        return forward, backward, lax.scan(lambda c, _: (c * 0.5, None), x, None, length=3, unroll=2)

    def loops(x):
        until = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.1), (0, x))
        step = np.float32(0.1)
        floating = lax.while_loop(lambda s: s[0] < 0.9, lambda s: (s[0] + step, s[1] + 1), (np.float32(0.0), x))
        bounded = lax.while_loop(
            lambda s: (s[0] < 9) & (jnp.sum(s[1] ** 2) > 1.0), lambda s: (s[0] + 1, s[1] * 0.7), (0, x)
        )
        rows = jax.vmap(
            lambda r: lax.while_loop(lambda s: (s[0] < 6) & (s[1][0] > 0.1), lambda s: (s[0] + 1, 0.5 * s[1]), (0, r))
        )(x)
        counted = lax.fori_loop(0, 4, lambda k, c: c * 0.9 + x[0, k], 0.0)
        return until, floating, bounded, rows, counted, lax.fori_loop(1, 1, lambda k, c: c * 2, x), lax.map(jnp.sum, x)

    def choices(x, k):
        single = (lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), lax.switch(k[0], branches, x), lax.switch(1, branches, x))
        mapped = jax.vmap(lambda r, i: (lax.switch(i, branches, r), lax.cond(r[0] > 0, jnp.sin, jnp.cos, r)))(x, k)
        gradient = jax.grad(lambda x: lax.switch(k[0], branches, x).sum())(x)
        for_cpu = lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
        return single, mapped, gradient, lax.cond(True, jnp.sin, jnp.cos, x), for_cpu

    cases = {
        "scan": case(scans, x),
        "loops": case(loops, x),
        "choices": case(choices, x, np.array([1, -3, 9])),
        "parallel": case(lambda x: (lax.associative_scan(jnp.add, x, axis=1), jax.vmap(loops)(x[None])), x),
        "gradients": case(lambda v: jax.grad(lambda v: lax.scan(lambda c, u: (jnp.sin(c) * u, c), 1.0, v)[0])(v), v),
    }
    check_against_xla(cases, TOLERANCE)


def test_custom_rules_and_calls():
    x = normal(3, 4)
    twice = jax.checkpoint(lambda u: jnp.sin(jnp.sin(u)), policy=jax.checkpoint_policies.nothing_saveable)
    cases = {
        "jvp": case(lambda x: (_with_jvp(x), jax.grad(lambda x: _with_jvp(x).sum())(x), jax.vmap(_with_jvp)(x)), x),
        "tangents": case(lambda x: jax.jvp(_with_jvp, (x,), (x + 1.0,)), x),
        "vjp": case(lambda x: (_with_vjp(x, x), jax.grad(lambda x: _with_vjp(x, 2 * x).sum())(x)), x),
        "mapped": case(lambda x: jax.vmap(_with_vjp)(x, x), x),
        "checkpoint": case(lambda x: (twice(x), jax.grad(lambda x: twice(x).sum())(x)), x),
        "jit": case(lambda x: (jax.jit(jnp.sin)(x), jax.named_call(jnp.cos)(x), lax.stop_gradient(x)), x),
        "barrier": case(lambda x: (lax.optimization_barrier(x), lax.reduce_precision(x, 8, 23)), x),
        "second order": case(lambda x: (jax.hessian(lambda v: jnp.sum(v**3))(x[0]), jax.jacfwd(jnp.tanh)(x[0])), x),
    }
    check_against_xla(cases, TOLERANCE)


def _random_network(network):
    """A network with random weights; its own initialization takes seconds."""
    shapes = eqx.filter_eval_shape(network, key=jax.random.key(0))
    return jax.tree.map(lambda w: jnp.asarray(normal(*w.shape)) if isinstance(w, jax.ShapeDtypeStruct) else w, shapes)


def test_networks():
    x, signal = normal(2, 3), normal(2, 5)
    mlp = _random_network(partial(eqx.nn.MLP, 3, 2, 4, 2, jax.nn.tanh))
    single = jax.tree.map(lambda a: a.astype(np.float32) if eqx.is_array(a) else a, mlp)
    gru, lstm = _random_network(partial(eqx.nn.GRUCell, 3, 2)), _random_network(partial(eqx.nn.LSTMCell, 3, 2))
    attention = _random_network(partial(eqx.nn.MultiheadAttention, 1, 3))
    convolution = _random_network(partial(eqx.nn.Conv1d, 2, 2, 3, padding=1))
    activations = "relu gelu silu softplus elu sigmoid leaky_relu selu hard_tanh log_sigmoid mish soft_sign softmax"
    cases = {
        "mlp": case(lambda x: (jax.vmap(mlp)(x), jax.grad(lambda v: mlp(v).sum())(x[0])), x),
        "weights": case(lambda x: eqx.filter_grad(lambda m: jnp.sum(m(x[0]) ** 2))(mlp), x),
        "recurrent": case(lambda x: (gru(x[0], jnp.ones(2)), lstm(x[0], (jnp.ones(2), jnp.zeros(2)))), x),
        "norms": case(lambda x: (eqx.nn.LayerNorm(3)(x[0]), eqx.nn.RMSNorm(3)(x[0]), jax.nn.standardize(x)), x),
        "attention": case(lambda x: attention(x, x, x), x),
        "convolution": case(lambda w: (convolution(w), eqx.nn.MaxPool1d(2)(w), eqx.nn.AvgPool1d(3)(w)), signal),
        "activations": case(lambda x: [getattr(jax.nn, name)(x) for name in activations.split()], x[0] * 3),
    }
    check_against_xla(cases, 1e-13)
    check_against_xla({"single": case(jax.vmap(single), x.astype(np.float32))}, 1e-6)


def test_bits_as_uint64():
    """Bit operations on uint64 are supported; others are refused by name."""

    def sign_and_exponent(x):
        bits = lax.bitcast_convert_type(x, np.uint64)
        sign = bits & np.uint64(1 << 63)
        exponent = ((bits >> np.uint64(52)) & np.uint64(2047)).astype(np.int32)
        doubled = lax.bitcast_convert_type(bits + (np.uint64(1) << np.uint64(52)), np.float64)
        return sign == np.uint64(0), exponent, doubled, lax.bitcast_convert_type(sign, np.float64)

    x = np.array([1.0, -2.5, 1e-300, 7e200])
    for actual, expected in zip(NativeFunction(sign_and_exponent, x)(x), sign_and_exponent(x), strict=True):
        np.testing.assert_array_equal(actual, expected)
    for unsupported in (
        lambda x: lax.bitcast_convert_type(x, np.uint64) < np.uint64(3),
        lambda x: lax.bitcast_convert_type(x, np.uint64).astype(float),
    ):
        with pytest.raises(UnsupportedOperationError, match="uint64"):
            NativeFunction(unsupported, x)(x)


def test_primitives_of_newer_versions_of_jax():
    """Primitives that only newer versions of JAX have, such as in the derivative of tanh."""
    functions = {"one_minus_square": lambda f: f, "polynomial": lambda f: lambda x: f(x, (1.0, 2.0 * x, -3.0))}
    available = [wrap(getattr(lax, name)) for name, wrap in functions.items() if hasattr(lax, name)]
    x = np.linspace(-0.9, 0.9, 5)

    def everything(x):
        return [f(x) for f in (*available, jnp.log2, jax.grad(lambda x: jnp.sum(jnp.tanh(x))))]

    for actual, expected in zip(NativeFunction(everything, x)(1.0 + x), everything(1.0 + x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=1e-15)


# unsupported


def _for(n, x):
    return lax.fori_loop(0, n, lambda k, c: c * 1.1, x)


def _while(n, x):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.1), (0, x))


UNSUPPORTED = {
    "fft": lambda x: jnp.abs(jnp.fft.rfft(x)),
    "eigh": lambda x: jnp.linalg.eigvalsh(jnp.outer(x, x)),
    "random_": lambda x: x * jax.random.normal(jax.random.key(0), (2,)),
    "a while loop has more than": lambda x: lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2.0, x),
    "float16": lambda x: (x.astype(np.float16) * 2).astype(float),
    "complex128": lambda x: jnp.abs(x * (1.0 + 2.0j)),
    "uint64": lambda x: jnp.sum(x.astype(np.uint8)) > 3,
    "debug_": lambda x: jax.debug.print("{}", x) or x,
    "too many possible positions": lambda x: jnp.zeros((70, 70))[x[0].astype(int), x[1].astype(int)],
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_primitives_are_named_with_their_location(name):
    with pytest.raises(UnsupportedOperationError) as caught:
        NativeFunction(UNSUPPORTED[name], np.ones(2))(np.ones(2))
    message, location = str(caught.value).split(" (at ")
    assert name in message
    assert Path(location.split(":")[0]).name == "test_lower.py"
    line = Path(__file__).read_text().splitlines()[int(location.split(":")[1]) - 1]
    assert line.strip().startswith(f'"{name}": lambda')


def test_unsupported_argument_types_are_named():
    for function, argument in ((jnp.fft.fft, np.ones(4)), (jnp.abs, np.ones(2, np.float16))):
        with pytest.raises(UnsupportedOperationError, match=r"complex128|float16"):
            NativeFunction(function, argument)


def test_long_while_loops_are_refused(monkeypatch):
    monkeypatch.setattr(rules_calls, "MAX_WHILE_ITERATIONS", 20)
    NativeFunction(partial(_while, 20), np.ones(2))(np.ones(2))
    with pytest.raises(UnsupportedOperationError, match=r"more than 20 iterations.*test_lower\.py"):
        NativeFunction(partial(_while, 21), np.ones(2))(np.ones(2))


@pytest.mark.parametrize("loop", [_for, _while], ids=["for", "while"])
def test_programs_that_unroll_too_far_are_refused(loop, monkeypatch):
    monkeypatch.setattr(lower, "MAX_NODES", 30)
    with pytest.raises(UnsupportedOperationError, match=r"more than 30 operations.*test_lower\.py"):
        NativeFunction(partial(loop, 20), np.ones(2))(np.ones(2))
