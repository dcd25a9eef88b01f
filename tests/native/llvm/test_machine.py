"""Code generation for all targets: results do not depend on lanes, and differ between targets by rounding only."""

import platform
from dataclasses import replace

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import pytest
from jax import lax

from hybridsim.native.llvm import emit, machine
from hybridsim.native.runtime.function import NativeFunction
from support.native_functions import describe_difference, normal

on_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86")

LANES = (1, 2, 4, 8)
BATCH = 9


def functions(x, A, n):
    """Functions that cover every kind of node and of memory access."""
    return {
        "functions": (jnp.sin(x), jnp.exp(x), jnp.tanh(x), jnp.log1p(x * x), jnp.arctan2(x, A[0, 0]), jnp.cbrt(x)),
        "sums": (A @ x, A.T @ A, jnp.linalg.norm(x), jnp.cumsum(x), lax.scan(lambda c, u: (c * 0.9 + u, c), 0.0, x)),
        "solve": jnp.linalg.solve(A @ A.T + jnp.eye(3), x),
        "choices": (jnp.sort(x), x.argmax(), jnp.where(x > 0, x, -x), lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), x > 0),
        "whole": (n // 3, n % 5, n << 2, n >> 1, n.astype(float), (x * 10).astype(int), jnp.floor(x), jnp.round(x)),
        "picked": (x[n[0] % 3], x.at[n[1] % 3].add(1.0), A[n[0] % 3, n[1] % 3]),
        "single": x.astype(np.float32) * np.float32(0.3),
        "gradient": jax.grad(lambda x: jnp.sum(jnp.tanh(A @ x) ** 2))(x),
    }


ARGUMENTS = normal(BATCH, 3), normal(BATCH, 3, 3), np.arange(2 * BATCH).reshape(BATCH, 2) - 7


@pytest.fixture(scope="module")
def expected():
    return jax.jit(jax.vmap(functions))(*ARGUMENTS)


def results(target: machine.CpuTarget):
    one = NativeFunction(functions, *(a[0] for a in ARGUMENTS), target=target)
    return one(*ARGUMENTS, batched=True), one(*(a[0] for a in ARGUMENTS))


def describe_differences(results, expected, tolerance: float) -> list[str]:
    pairs = zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True)
    return [problem for a, b in pairs if (problem := describe_difference(np.asarray(a), np.asarray(b), tolerance))]


@pytest.fixture(scope="module")
def references(expected):
    """Results with the most lanes, with and without fused multiply-add."""
    references = {
        fma: results(replace(target, lanes=8)) for fma, target in ((True, _fma_target()), (False, machine.PLAIN_X86))
    }
    for batch, _ in references.values():
        assert not describe_differences(batch, expected, 1e-13)
    return references


def _fma_target() -> machine.CpuTarget:
    """Target with fused multiply-add, if the host has it."""
    return machine.AVX2 if llvm.get_host_cpu_features().get("fma") else machine.host()


def targets() -> dict[str, machine.CpuTarget]:
    result = {"host": machine.host(), "plain": machine.PLAIN_X86}
    if llvm.get_host_cpu_features().get("avx2"):
        result["avx2"] = machine.AVX2
    return result


@on_x86
@pytest.mark.parametrize("name", targets())
@pytest.mark.parametrize("lanes", LANES)
def test_bits_do_not_depend_on_lanes_or_processor(name, lanes, references):
    target = targets()[name]
    batch, single = results(replace(target, lanes=lanes))
    reference = references[target.fma]
    assert not describe_differences(batch, reference[0], 0.0)
    assert not describe_differences(single, reference[1], 0.0)
    assert not describe_differences(single, jax.tree.map(lambda a: a[0], batch), 0.0)


@on_x86
def test_fused_multiply_add_differs_by_rounding_only(references):
    if not _fma_target().fma:
        pytest.skip("no fused multiply-add here")
    assert not describe_differences(references[True][0], references[False][0], 1e-13)
    # makes sure that the two differ at all
    assert describe_differences(references[True][0], references[False][0], 0.0)


def _text(target: machine.CpuTarget, lanes: int) -> str:
    target = replace(target, lanes=lanes, register_width=lanes)
    function = NativeFunction(functions, *(a[0] for a in ARGUMENTS), target=target)
    kernel = function.rollout.emit_kernel("forward", single=lanes == 1)
    return emit.module(kernel.functions, kernel.texts)


def test_instructions_are_those_of_the_target():
    plain, fused = (machine.assembly(_text(t, t.lanes), t) for t in (machine.PLAIN_X86, machine.AVX2))
    assert "vfmadd" in fused and "ymm" in fused
    assert "vfmadd" not in plain and "ymm" not in plain
    assert "llvm.fma" not in _text(machine.PLAIN_X86, 1)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_code_for_arm_is_generated(lanes):
    code = machine.object_code(_text(machine.ARM, lanes), machine.ARM)
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == 183  # AArch64
    assert b"forward" in code and len(code) > 10_000
    assert "fmla" in machine.assembly(_text(machine.ARM, lanes), machine.ARM) or lanes == 1
