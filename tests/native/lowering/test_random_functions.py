"""Random programs with control flow, compiled natively and by XLA: the same values and the same gradients.

The difference between two correct results depends on the conditioning of the program: cancellation or a comparison of
nearly equal values amplifies rounding errors without bound. So each program is also run by XLA with every intermediate
result perturbed by a random relative amount of the size of its rounding error. The spread of the results measures the
conditioning, and native results may differ by a multiple of it. Ill-conditioned programs, in which a perturbation flips
a comparison, are discarded.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax import lax

from hybridsim.native.runtime.function import NativeFunction

MAX_SIZE = 12
"""Largest size of a value."""
ROUNDING = 2.0**-52
TRIALS = 6
ALLOWED_SPREADS = 30.0
"""Allowed error in units of the spread; large, as operations round several times and the spread is a random sample."""
ERROR_FLOOR = 1e-14
"""Errors that are always allowed, relative to the largest element."""
MAX_SPREAD = 1e-9
"""Largest relative spread of a well-conditioned program."""


# operations on two values and a small integer; each takes values of any shape and returns bounded ones


def squash(x):
    return x / jnp.sqrt(1.0 + x * x)


def resize(x, shape):
    return jnp.resize(x, shape)


def rows(x):
    return x.reshape(x.shape[0] if x.ndim else 1, -1)


def index(x, k, size):
    """A dynamic index."""
    return jnp.floor(jnp.abs(3.0 * x.ravel()[k % x.size])).astype(int) % size


def spd_matrix(x):
    m = rows(x)[:3, :3]
    return m @ m.T + jnp.eye(m.shape[0])


@jax.custom_vjp
def custom_gradient(x):
    return jnp.sin(x)


custom_gradient.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x) * 0.9,))


def scan(a, b, k):
    initial = resize(b, rows(a).shape[1:])
    final, results = lax.scan(lambda c, u: (squash(c * 0.7 + u), c * u), initial, rows(a), reverse=bool(k % 2))
    return results + final[None]


def for_loop(a, b, k):
    return lax.fori_loop(0, k % 4, lambda n, c: jnp.sin(c + 0.1 * n) + resize(b, c.shape) * 0.5, a)


def while_loop(a, b, k):
    # while loops have no reverse-mode gradient
    initial = lax.stop_gradient(a + resize(b, a.shape))
    return lax.while_loop(lambda s: s[0] < k % 3, lambda s: (s[0] + 1, jnp.tanh(s[1] * 1.3)), (0, initial))[1] * a


def switch(a, b, k):
    return lax.switch(index(b, k, 3), [jnp.sin, lambda x: x * 0.5, lambda x: jnp.maximum(x, 0.1)], a)


def solve(a, b, k):
    A = spd_matrix(a)
    return jnp.linalg.solve(A, resize(b, A.shape[:1])) if k % 2 else jnp.linalg.cholesky(A) @ resize(b, A.shape[:1])


def pad(a, b, k):
    return lax.pad(a, b.ravel()[0], [((k % 3) - 1, (k % 2), k % 2)] * a.ndim)


def update_slice(a, b, k):
    m = rows(a)
    return lax.dynamic_update_slice(m, resize(b, (1, m.shape[1])), (index(b, k, m.shape[0] + 1), 0))


def dynamic_slice(a, b, k):
    m = rows(a)
    return lax.dynamic_slice(m, (index(b, k, m.shape[0] + 1), 0), (1, m.shape[1]))


def gather_rows(a, b, k):
    m = rows(a)
    return jax.vmap(lambda r, n: r[n % r.size] * r)(m, jnp.arange(m.shape[0]) + index(b, k, 3))


def integers(a, b, k):
    n = jnp.floor(10.0 * a).astype(int)
    return jnp.where((n % 3 == k % 3) ^ (n // 2 > 1), a, resize(b, a.shape) + 0.01 * (n & 7).astype(float))


OPERATIONS: dict[str, Callable] = {
    "add": lambda a, b, k: squash(a + resize(b, a.shape)),
    "sub": lambda a, b, k: a - resize(b, a.shape) * 0.5,
    "mul": lambda a, b, k: a * resize(b, a.shape),
    "div": lambda a, b, k: squash(a / (1.5 + resize(b, a.shape) ** 2)),
    "atan2": lambda a, b, k: jnp.arctan2(a, 0.5 + resize(b, a.shape) ** 2),
    "pow": lambda a, b, k: squash((1.0 + a * a) ** resize(b, a.shape)),
    "power": lambda a, b, k: squash(a ** (k % 5)),
    "sin": lambda a, b, k: jnp.sin(a * (k + 1)),
    "cos": lambda a, b, k: jnp.cos(a + k),
    "tanh": lambda a, b, k: jnp.tanh(a * 2.0),
    "exp": lambda a, b, k: jnp.exp(-a * a),
    "log": lambda a, b, k: jnp.log1p(a * a),
    "sqrt": lambda a, b, k: jnp.sqrt(0.1 + a * a),
    "sigmoid": lambda a, b, k: jax.nn.silu(a),
    "abs": lambda a, b, k: jnp.abs(a) - 0.3 * jnp.sign(a),
    "extremes": lambda a, b, k: jnp.maximum(a, -0.2) + jnp.minimum(a, resize(b, a.shape)),
    "where": lambda a, b, k: jnp.where(a > resize(b, a.shape), a, jnp.cos(resize(b, a.shape))),
    "integers": integers,
    "sum": lambda a, b, k: squash(rows(a).sum(k % 2)),
    "mean": lambda a, b, k: rows(a).mean(k % 2, keepdims=True) - a.ravel()[0],
    "max": lambda a, b, k: rows(a).max(k % 2),
    "prod": lambda a, b, k: squash(rows(1.0 + a).prod(k % 2)),
    "softmax": lambda a, b, k: jax.nn.softmax(a.ravel() * 3.0),
    "cumsum": lambda a, b, k: squash(lax.cumsum(rows(a), k % 2, reverse=k > 5)),
    "cummax": lambda a, b, k: lax.cummax(rows(a), k % 2),
    "matmul": lambda a, b, k: squash(rows(a)[:, :3] @ resize(b, (rows(a)[:, :3].shape[1], 1 + k % 3))),
    "einsum": lambda a, b, k: squash(jnp.einsum("ij,kj->ik", rows(a), rows(a))),
    "transpose": lambda a, b, k: a.T,
    "reshape": lambda a, b, k: a.reshape((-1, 2) if a.size % 2 == 0 else (-1,)),
    "flip": lambda a, b, k: jnp.roll(jnp.flip(a), k),
    "concatenate": lambda a, b, k: jnp.concatenate([a.ravel(), b.ravel()]),
    "stack": lambda a, b, k: jnp.stack([a, resize(b, a.shape)], k % (a.ndim + 1)),
    "slice": lambda a, b, k: a.ravel()[k % a.size :: 1 + k % 2],
    "pad": pad,
    "gather": lambda a, b, k: a.ravel()[(np.arange(5) * (k + 1)) % a.size],
    "dynamic gather": lambda a, b, k: rows(a)[index(b, k, rows(a).shape[0])],
    "scatter": lambda a, b, k: squash(a.ravel().at[np.array([0, k % a.size, 0])].add(resize(b, (3,)))),
    "dynamic scatter": lambda a, b, k: a.ravel().at[index(b, k, a.size)].set(b.ravel()[0]),
    "dynamic slice": dynamic_slice,
    "dynamic update": update_slice,
    "gather rows": gather_rows,
    "sort": lambda a, b, k: jnp.sort(a.ravel())[::-1],
    "argsort": lambda a, b, k: a.ravel()[jnp.argsort(resize(b, (a.size,)))],
    "top": lambda a, b, k: lax.top_k(a.ravel(), 1 + k % a.size)[0],
    "scan": scan,
    "for": for_loop,
    "while": while_loop,
    "cond": lambda a, b, k: lax.cond(b.mean() > 0.1, jnp.sin, lambda x: x * 0.7, a),
    "switch": switch,
    "solve": solve,
    "custom": lambda a, b, k: custom_gradient(a),
    "checkpoint": lambda a, b, k: jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)))(a),
    "jit": lambda a, b, k: jax.jit(jnp.tanh)(a),
    "gradient": lambda a, b, k: squash(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(a)),
    "interp": lambda a, b, k: jnp.interp(a, jnp.array([-1.0, 0.0, 0.4, 1.0]), jnp.array([0.3, 0.0, -0.2, 0.5])),
}


class Instruction(NamedTuple):
    """An operation on two of the latest values and an immediate operand."""

    operation: str
    first: int
    second: int
    immediate: int


INSTRUCTIONS = st.builds(
    Instruction, st.sampled_from(list(OPERATIONS)), st.integers(0, 4), st.integers(0, 7), st.integers(0, 11)
)
SHAPES = st.lists(st.sampled_from([(), (3,), (2, 3), (2, 2, 2), (4, 1), (5,)]), min_size=1, max_size=3)
PROGRAMS = st.lists(INSTRUCTIONS, min_size=5, max_size=40)


def evaluate(program: list[Instruction], values: list, noise=None):
    """The last value of a program, and a sum over all values; noise perturbs every intermediate value."""
    values = list(values)
    for step, (operation, first, second, immediate) in enumerate(program):
        a, b = (values[-1 - k % len(values)] for k in (first, second))
        result = OPERATIONS[operation](a, b, immediate)
        # neither too large nor empty
        result = result.ravel()[:MAX_SIZE] if result.size > MAX_SIZE else result if result.size else a
        if noise is not None:
            result = result * (1.0 + noise[step, : result.size].reshape(result.shape))
        values.append(result)
    return values[-1], sum(jnp.sin(v).sum() for v in values)


def values_and_gradient(program: list[Instruction], values: list, noise=None):
    """Results and the gradient of their weighted sum."""
    results, pullback = jax.vjp(lambda values: evaluate(program, values, noise), values)
    weights = [jnp.cos(1.0 + jnp.arange(1.0, 1.0 + r.size)).reshape(r.shape) for r in results]
    return results, pullback(tuple(weights))


def relative_errors(results, expected) -> np.ndarray:
    """Largest error of each array, relative to its largest element."""
    errors = []
    for actual, reference in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        scale = np.abs(reference).max(initial=1e-3)
        errors.append(np.abs(np.asarray(actual) - np.asarray(reference)).max(initial=0.0) / scale)
    return np.array(errors)


def compare(program: list[Instruction], shapes: list[tuple[int, ...]], *, batch: int = 0) -> None:
    random = np.random.default_rng(len(program))
    inputs = [random.uniform(-1.0, 1.0, shape) for shape in shapes]
    xla = jax.jit(lambda values, noise: values_and_gradient(program, values, noise))
    shape = (len(program), MAX_SIZE)
    expected = xla(inputs, np.zeros(shape))
    noises = [ROUNDING * random.uniform(-1.0, 1.0, shape) for _ in range(TRIALS)]
    spread = np.max([relative_errors(xla(inputs, noise), expected) for noise in noises], axis=0)
    assume(np.isfinite(spread).all() and (spread < MAX_SPREAD).all())
    native = NativeFunction(lambda values: values_and_gradient(program, values), inputs)
    actual = native(inputs)
    error = relative_errors(actual, expected)
    assert (error <= ERROR_FLOOR + ALLOWED_SPREADS * spread).all(), f"error {error}, spread {spread}"
    if batch:
        batched = native([np.stack([x * (1.0 - 0.1 * k) for k in range(batch)]) for x in inputs], batched=True)
        for single, lanes in zip(jax.tree.leaves(actual), jax.tree.leaves(batched), strict=True):
            np.testing.assert_array_equal(lanes[0], single)


@settings(max_examples=12)
@given(PROGRAMS, SHAPES)
def test_random_functions(program, shapes):
    compare(program, shapes)


@pytest.mark.slow
@settings(max_examples=200)
@given(PROGRAMS, SHAPES)
def test_many_random_functions(program, shapes):
    compare(program, shapes, batch=5)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_have_native_code(operation):
    """One operation per test, so that a failing rule is named."""
    program = [Instruction(operation, 0, 1, immediate) for immediate in (0, 3)]
    native = NativeFunction(lambda values: values_and_gradient(program, values), [np.zeros((2, 3)), np.zeros(4)])
    graph, outputs = native.rollout.graphs.step_graph
    assert graph.op_counts(outputs.values())["sin"] == 0  # all functions are expanded
