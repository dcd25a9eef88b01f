"""Array rules against XLA, single and batched: reductions, products, rearranging, indexing, sorting, solving."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import linalg, special

from support.native_functions import case, check_against_xla, normal

TOLERANCE = 2e-14


@pytest.fixture(autouse=True)
def standard_promotion():
    """JAX's standard type promotion, as in user code."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def test_reductions():
    x, v = normal(3, 4), normal(5)
    ties, with_nan = np.array([1.0, 3.0, 3.0, 1.0, 1.0, 2.0]), np.array([1.0, np.nan, 3.0, np.nan, 3.0, -1.0])
    infinities = np.array([-np.inf, -np.inf, 1.0, 1.0, np.inf, 0.0])
    argument_ops = (jnp.argmax, jnp.argmin, jnp.argsort)
    cases = {
        "sums": case(lambda x: (x.sum(0), x.sum(), x.mean(1), x.std(), x.var(0), jnp.average(x, 0, x[:, 0] ** 2)), x),
        "products": case(lambda x: (x.prod(1), x.prod(), jnp.cumprod(x, 1), lax.cumprod(x, 0, reverse=True)), x),
        "extremes": case(lambda x: (x.max(0), x.min(), lax.cummax(x, 0, reverse=True), lax.cummin(x, 1)), x),
        "cumulative": case(lambda x: (jnp.cumsum(x, 0), lax.cumsum(x, 1, reverse=True), lax.cumlogsumexp(x, 1)), x),
        "cumulative with infinities": case(lambda v: (lax.cumlogsumexp(v), lax.cummax(v), jnp.cumsum(v)), infinities),
        "logsumexp": case(lambda x: (special.logsumexp(x, 0), special.logsumexp(x, b=x**2)), x),
        "argmax": case(lambda x: (x.argmax(0), x.argmin(1, keepdims=True), x.argmax()), x),
        "ties": case(lambda v: ([f(v) for f in argument_ops], lax.top_k(v, 3), jnp.argsort(v, descending=True)), ties),
        "nan": case(lambda v: ([f(v) for f in argument_ops], lax.top_k(v, 4), v.max(), lax.cummax(v)), with_nan),
        "nan functions": case(lambda v: (jnp.nanmax(v), jnp.nanargmin(v), jnp.nanmean(v), jnp.nansum(v)), with_nan),
        "quantiles": case(lambda x: (jnp.median(x), jnp.quantile(x, 0.3, axis=1), jnp.percentile(x, 30.0)), x),
        "user-defined": case(lambda x: (lax.reduce(x, 0.5, lambda a, b: a + 2 * b, (1,)), _reduce_pair(x)), x),
        "windows": case(lambda x: [lax.reduce_window(x, *_window(op)) for op in (lax.add, lax.max, lax.min)], x),
        "statistics": case(lambda x: (jnp.cov(x), jnp.corrcoef(x), jnp.trapezoid(x), jnp.gradient(x, axis=1)), x),
        "booleans": case(lambda v: ((v > 0).any(), (v > 0).all(), jnp.count_nonzero(v > 0), jnp.allclose(v, v)), v),
    }
    check_against_xla(cases, TOLERANCE)


def _reduce_pair(x):
    return lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0] * b[1], a[1] * b[1]), (0,))


def _window(op):
    initial = {lax.add: 0.0, lax.max: -np.inf, lax.min: np.inf}[op]
    return initial, op, (2, 2), (1, 2), ((1, 0), (0, 1)), (1, 2), (1, 2)


def test_products():
    a, b, c, d = normal(3, 4), normal(4, 2), normal(2, 3, 4), normal(2, 4, 2)
    images, kernels = normal(1, 2, 4, 3), normal(2, 1, 3, 2)
    layouts = ("WHCN", "WHIO", "HCNW")

    def convolutions(x, k):
        doubled = jnp.concatenate([k, -k], 1)
        return (
            lax.conv_general_dilated(x, doubled, (2, 1), ((1, 2), (0, -1)), (1, 2), (2, 1)),
            lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=2),
            lax.conv_general_dilated(x.T, doubled.T, (1, 2), "VALID", None, None, layouts),
            jax.grad(lambda x, k: jnp.sin(lax.conv(x, k, (1, 1), "SAME")).sum(), (0, 1))(x, doubled),
        )

    cases = {
        "matrices": case(lambda a, b: (a @ b, a @ b[:, 0], b[:, 1] @ a.T, jnp.tensordot(a, a, 2)), a, b),
        "batches": case(lambda c, d: (c @ d, jnp.einsum("bij,bkj->kbi", c, c), jnp.einsum("bij,bjk->ki", c, d)), c, d),
        "einsum": case(lambda a: (jnp.einsum("ij,ij->i", a, a), jnp.einsum("ij,kj->ijk", a, a), jnp.vdot(a, a)), a),
        "outer": case(lambda a, b: (jnp.outer(a, b), jnp.kron(b, b[:2]), jnp.cross(a[0, :3], a[1, :3])), a, b),
        "polynomials": case(lambda a: (jnp.polyval(a[0], a[1]), jnp.vander(a[0]), jnp.convolve(a[0], a[1, :2])), a),
        "convolutions": case(convolutions, images, kernels),
    }
    check_against_xla(cases, TOLERANCE)


def test_rearranging():
    x = normal(3, 4)
    sizes = [(0, 0, 0), (2, 1, 0), (-1, 1, 0), (0, -2, 1), (-1, -2, 2), (2, -2, 0), (2, 0, 1), (-1, 0, 1)]
    modes = ("constant", "edge", "wrap", "reflect", "symmetric")
    cases = {
        "shape": case(lambda x: (x.T, x.reshape(2, 6), x.ravel(order="F"), x[None].squeeze(), x[..., None]), x),
        "slices": case(lambda x: (x[::2, 1:], x[:, ::-1], x[-1], jnp.split(x, 2, 1), jnp.array_split(x, 3, 1)), x),
        "concatenated": case(lambda x: (jnp.stack([x, x], 1), jnp.append(x, x.T), jnp.block([[x, x], [x, x]])), x),
        "unstacked": case(lambda x: (jnp.unstack(x, axis=1), [*x], jnp.diag(x[0]), jnp.diag(x)), x),
        "triangles": case(lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.tri(3)), x),
        "rolled": case(lambda x: (jnp.flip(x), jnp.roll(x, 1, 1), jnp.roll(x, -5), jnp.rot90(x)), x),
        "repeated": case(lambda x: (jnp.repeat(x, 2, 0), jnp.tile(x, (2, 1)), jnp.broadcast_to(x, (2, 3, 4))), x),
        "padded": case(lambda x: [lax.pad(x, 0.5, ((a, b, c), (b, 0, a + 1))) for a, b, c in sizes], x),
        "pad modes": case(lambda x: [jnp.pad(x, ((1, 2), (0, 1)), mode=mode) for mode in modes], x),
        "selected": case(lambda x: (jnp.where(x > 0, x, 7.0), jnp.select([x > 1, x > 0], [x, -x], -1.0)), x),
        "piecewise": case(lambda x: jnp.piecewise(x, [x < 0, x >= 1], [lambda v: -v, 3.0, 0.0]), x),
        "select_n": case(lambda x, k: lax.select_n(k, x[0], x[1], x[2]), x, np.array([0, 1, 2, 1], np.int32)),
    }
    check_against_xla(cases, 0.0)


def test_creation():
    v = np.abs(normal(5))
    cases = {
        "created": case(lambda v: (jnp.full(2, v[0]), jnp.zeros_like(v), jnp.indices((2, 2)), jnp.tri(3) * v[:3]), v),
        "grid": case(lambda v: jnp.meshgrid(v[:2], v[:3]), v),
        "mixed": case(lambda v: (v[:3] + jnp.arange(3), jnp.arange(3, dtype=np.int32) + v[:3].astype(np.int8)), v),
        "spaced": case(lambda v: (jnp.linspace(v[0], v[1], 4), jnp.linspace(0, 1, 5) + v[0], jnp.eye(3) * v[1]), v),
        "constants": case(lambda: (np.arange(3.0), np.float32(2.5), np.int32(7), True, np.eye(2, dtype=np.int8))),
        "special constants": case(lambda v: (np.array([np.nan, -0.0, np.inf]), v[:2] * np.array([2.0, -1.0])), v),
        "scalars": case(lambda a: (a.reshape(1, 1), a.sum(), a.max(), jnp.stack([a, a]), jnp.argmax(a)), 1.5),
        "other kinds": case(lambda n, t: (n * 2, ~t, jnp.where(t, n, 0), n.astype(float)), 3, True),
    }
    check_against_xla(cases, 1e-15)


def test_empty_arrays():
    v = normal(5)
    empty = np.zeros(0, int)
    cases = {
        "arguments": case(lambda e: (e, e.T, e.sum(0), e.sum(1)), np.zeros((0, 2))),
        "concatenated": case(lambda v: (jnp.concatenate([v, v[:0]]), v[:0], v[empty], v.at[empty].add(1.0)), v),
        "reduced": case(lambda v: (v[:0].sum(), v[:0].prod(), v[:0].max(initial=-1.0), jnp.linalg.norm(v[:0])), v),
        "extremes": case(lambda v: (lax.reduce_max(v[:0], (0,)), lax.reduce_min(v[:0].astype(int), (0,))), v),
        "booleans": case(lambda v: ((v[:0] > 0).any(), (v[:0] > 0).all()), v),
        "products": case(lambda v: (v[:0, None] @ v[None, :3], jnp.zeros((2, 0)) @ jnp.zeros((0, 2)) + v[0]), v),
        "sorted": case(lambda v: (jnp.sort(v[:0]), jnp.cumsum(v[:0]), lax.scan(_accumulate, 0.0, v[:0])), v),
        "matrices": case(lambda v: [f(jnp.zeros((0, 3, 3))) for f in (jnp.linalg.inv, jnp.linalg.cholesky)], v),
        "flat matrices": case(lambda v: jnp.linalg.inv(jnp.zeros((2, 0, 0))), v),
    }
    check_against_xla(cases, 0.0)


def _accumulate(total, x):
    return total + x, total


INDICES = np.array([0, 2, -1, 7, -9, 1])


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds", None])
def test_gather_modes(mode):
    x = normal(3, 4)
    indices = INDICES if mode != "promise_in_bounds" else np.array([0, 2, 1, 1, 0, 2])

    def gather(x, i):
        integers, signs = (x * 10).astype(int), x > 0
        rows = [y.at[i].get(mode=mode) for y in (x, integers, signs, jnp.abs(integers).astype(np.uint8))]
        return rows, x.at[:, i].get(mode=mode), x.at[i, i[::-1]].get(mode=mode), x.at[i[:2, None], i].get(mode=mode)

    check_against_xla({"dynamic": case(gather, x, indices), "constant": case(lambda x: gather(x, indices), x)}, 0.0)


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds", None])
def test_scatter_modes(mode):
    x, u = np.abs(normal(3, 2)), np.abs(normal(7, 2))
    index = np.append(INDICES, 1) if mode != "promise_in_bounds" else np.array([0, 2, 1, 1, 0, 2, 2])

    def scatter(x, u, i):
        updates = [getattr(x.at[i], op)(u, mode=mode) for op in ("add", "subtract", "multiply", "min", "max")]
        elements = [getattr(x.at[i[:3], 1], op)(u[:3, 0], mode=mode) for op in ("add", "multiply")]
        # which of several updates of one element is applied last is undefined
        once = [getattr(x.at[i[:3]], op)(u[:3], mode=mode) for op in ("set", "divide")]
        return updates, elements, once, x.at[:, i[:2]].set(0.5, mode=mode), x.at[i[:3]].apply(jnp.sin, mode=mode)

    check_against_xla(
        {"dynamic": case(scatter, x, u, index), "constant": case(lambda x, u: scatter(x, u, index), x, u)}, TOLERANCE
    )


def test_indexing():
    x, v = normal(3, 4), normal(6)

    def index_one(x, i, j):
        blocks = lax.dynamic_slice(x, (i, j), (2, 2)), lax.dynamic_update_slice(x, x[:2, :2] * 2, (i, j))
        elements = x[i, j], x[:, j], x[i][::2], lax.dynamic_index_in_dim(x, i), x[jnp.array([0, 1]), j]
        return blocks, elements, x.at[i, j].set(3.0), x.at[i].add(1.0)

    def index_each(x, i):
        return (
            (jax.vmap(lambda r, k: r[k])(x, i), jax.vmap(lambda r, k: r[k], (1, None))(x, i[0])),
            (jax.vmap(lambda r, k: r.at[k].add(1.0))(x, i), jax.vmap(lambda r, k: r.at[k].set(k * 1.0))(x, i)),
            jax.vmap(lambda r, k: lax.dynamic_slice(r, (k,), (2,)))(x, i),
            jax.vmap(lambda r, k: lax.dynamic_update_slice(r, r[:2], (k,)))(x, i),
            jnp.take_along_axis(x, i[:, None], axis=1),
        )

    def windows(v, i):
        return jnp.sum(jax.vmap(lambda k: lax.dynamic_slice(v, (k,), (2,)))(i) ** 2)

    bins = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    cases = {
        "in bounds": case(lambda x, i: index_one(x, i[0], i[1]), x, np.array([1, 2, 0, 1, 3])),
        "out of bounds": case(lambda x, i: index_one(x, i[0], i[1]), x, np.array([-5, 9, -2, 4, 0])),
        "constant": case(lambda x: (index_one(x, 1, 2), index_one(x, -5, 9)), x),
        "each": case(index_each, x, np.array([0, 3, 2])),
        "windows": case(jax.grad(windows), v, np.array([0, 3, 2, 2])),
        "each constant": case(lambda x: index_each(x, np.array([0, 3, 2])), x),
        "tables": case(lambda v: (jnp.interp(v, bins, bins**2), jnp.interp(v, jnp.sort(v), v)), v),
        "bins": case(lambda v: (jnp.digitize(v, bins), jnp.bincount(jnp.clip(v, 0, 3).astype(int), length=4)), v),
        "one-hot": case(lambda x: (jax.nn.one_hot(x.argmax(1), 4), jnp.unwrap(x[0] * 9), jnp.diff(x)), x),
    }
    for method in ("scan", "scan_unrolled", "sort", "compare_all"):
        for side in ("left", "right"):
            cases[f"search {method} {side}"] = case(
                lambda v, w, m=method, s=side: jnp.searchsorted(jnp.sort(v), w, side=s, method=m), v[:4], v[2:5]
            )
    check_against_xla(cases, TOLERANCE)


def test_sorting():
    x, v = normal(4, 3), normal(5)
    zeros = np.array([0.0, -0.0, 1.0, -0.0, np.inf, -np.inf, np.nan])
    first, second = np.array([1, 0, 1, 0, 1]), np.array([2.0, np.nan, -1.0, 0.0, 2.0])
    booleans = np.array([False, True, True, False, True])
    integers = np.random.default_rng(1).integers(0, 9, 37)
    cases = {
        "axes": case(lambda x: (jnp.sort(x, 0), jnp.sort(x, 1, descending=True), jnp.argsort(x, 0), -jnp.sort(-x)), x),
        "several operands": case(lambda x: (lax.sort((x, x * 2), dimension=0), lax.top_k(x, 2)), x),
        "keys": case(lambda a, b, v: (lax.sort((a, b, v), num_keys=2), jnp.lexsort((b, a))), first, second, v),
        "nan": case(lambda b, v: lax.sort((jnp.where(b > 0, jnp.nan, b), v), num_keys=2), second, v),
        "stable": case(lambda a: (jnp.argsort(a), jnp.argsort(a, descending=True, stable=True)), first),
        "edges": case(lambda z: (jnp.abs(jnp.sort(z)), jnp.argsort(z), lax.top_k(jnp.abs(z), 4)), zeros),
        "booleans": case(lambda t: lax.sort((t, jnp.arange(5)), num_keys=1), booleans),
        "many": case(lambda a: (jnp.sort(a), jnp.argsort(a), lax.sort((a % 3, a % 2, a), num_keys=2)), integers),
        "many rows": case(lambda a: (jnp.sort(a, 1), jnp.argsort(a, 1)), integers[:26].reshape(2, 13) * 0.5),
    }
    check_against_xla(cases, 0.0)


def _spd_matrix(A):
    return A @ A.T + 3 * jnp.eye(len(A))


def test_factorizations():
    A, b, stack = normal(4, 4), normal(4), normal(2, 3, 3)
    flags = np.array(np.meshgrid(*[[False, True]] * 4)).reshape(4, -1).T.tolist()

    def solve_triangular(A, B):
        A = A + 3 * jnp.eye(3)
        names = ("left_side", "lower", "transpose_a", "unit_diagonal")
        solve = lax.linalg.triangular_solve
        return [solve(A, B if f[0] else B.T, **dict(zip(names, f, strict=True))) for f in flags]

    def solve_stacks(S):
        return jnp.linalg.inv(S), jnp.linalg.det(S), jnp.linalg.cholesky(jax.vmap(_spd_matrix)(S))

    cases = {
        "cholesky": case(lambda A: [jnp.linalg.cholesky(_spd_matrix(A), upper=upper) for upper in (False, True)], A),
        "lower half": case(lambda A: lax.linalg.cholesky(_spd_matrix(A) + jnp.triu(A, 1), symmetrize_input=False), A),
        "symmetrized": case(lambda A: lax.linalg.cholesky(_spd_matrix(A) + 0.1 * jnp.tril(A)), A),
        "definite": case(lambda A, b: linalg.cho_solve(linalg.cho_factor(_spd_matrix(A)), b), A, b),
        "triangles": case(solve_triangular, stack[0], normal(3, 2)),
        "solve": case(lambda A, b: (jnp.linalg.solve(A, b), jnp.linalg.solve(A, A.T), jnp.linalg.inv(A)), A, b),
        "lu": case(lambda A: (lax.linalg.lu(A), lax.linalg.lu(A[:3]), lax.linalg.lu(A[:, :2]), linalg.lu(A)), A),
        "det": case(lambda A: [(jnp.linalg.det(A[:n, :n]), jnp.linalg.slogdet(A[:n, :n])) for n in (1, 2, 3, 4)], A),
        "singular": case(lambda A: (jnp.linalg.det(A), lax.linalg.lu(A), jnp.linalg.slogdet(A)), np.ones((4, 4))),
        "stacks": case(solve_stacks, stack),
        "norms": case(lambda A, b: [jnp.linalg.norm(A, o) for o in (None, 1, np.inf)] + [jnp.linalg.norm(b, 3)], A, b),
        "powers": case(lambda A: (jnp.linalg.matrix_power(A, 5), linalg.expm(A[:2, :2])), A * 0.5),
    }
    # the shifted matrices of the other batch elements are not all well-conditioned
    check_against_xla(cases, 2e-12)


def test_a_matrix_that_is_not_positive_definite_gives_nan():
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    check_against_xla({"bad": case(lambda A: jnp.isnan(jnp.linalg.cholesky(A)).any(), bad)}, 0.0)


def test_gradients():
    x, A = normal(6), normal(3, 3)
    functions = {
        "sort": lambda v: jnp.sort(v) @ jnp.arange(6.0),
        "max": lambda v: jnp.max(v) * jnp.min(v),
        "prod": jnp.prod,
        "cumulative": lambda v: jnp.cumprod(v)[-1] + jnp.cumsum(v)[2] + lax.cummax(v).sum() + lax.cumlogsumexp(v)[3],
        "softmax": lambda v: jax.nn.softmax(v)[1] + special.logsumexp(v),
        "top": lambda v: lax.top_k(v, 2)[0].sum(),
        "std": jnp.std,
        "interp": lambda v: jnp.interp(v, jnp.arange(-2.0, 3.0), jnp.arange(5.0) ** 2).sum(),
        "gathered": lambda v: (v[jnp.array([0, 2, 2])] ** 2).sum() + v[jnp.argmax(v)] ** 3,
        "scattered": lambda v: (v.at[1].set(v[0] ** 2).at[jnp.argmin(v)].multiply(3.0) ** 2).sum(),
        "selected": lambda v: jnp.where(v > 0, v**2, jnp.sin(v)).sum() + jnp.clip(v, -0.5, 0.5).sum(),
        "windows": lambda v: (jnp.convolve(v, v[:3]) ** 2).sum(),
    }
    cases = {name: case(jax.grad(f), x) for name, f in functions.items()}
    cases |= {
        "hessian": case(jax.hessian(functions["softmax"]), x[:4]),
        "solve": case(jax.grad(lambda A: jnp.linalg.solve(_spd_matrix(A), A[0]).sum()), A),
        "cholesky": case(jax.grad(lambda A: jnp.linalg.cholesky(_spd_matrix(A)).sum()), A),
        "det and norm": case(lambda A: (jax.grad(jnp.linalg.det)(A), jax.grad(jnp.linalg.norm)(A)), A),
        "inverse": case(lambda A: jax.jacrev(jnp.linalg.inv)(_spd_matrix(A)), A),
    }
    check_against_xla(cases, 1e-12)
