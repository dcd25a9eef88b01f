"""Rollout kernels: agreement with XLA; bitwise equality for all batch sizes, lanes, threads and segments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.native.llvm import emit, machine
from hybridsim.native.runtime.rollout import Rollout, segment_length
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, STEPS, pendulum, random_batch


@pytest.fixture(scope="module")
def rollout():
    with jax.enable_x64(True):
        return Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)


def cotangents(rollout, batch, seed=1):
    rng = np.random.default_rng(seed)
    sizes = rollout.sizes
    return rng.normal(size=(batch, sizes.x)), rng.normal(size=(batch, STEPS, sizes.y))


def xla_rollout(rollout, fixed, free, initial, inputs):
    """The rollout of one trajectory as a JAX function of its float arrays, and its arguments."""
    layouts = rollout.layouts

    def function(free_tree, floats, inputs):
        carry = layouts.carry.with_float_leaves(layouts.carry.unpack(initial), floats)
        end, outputs = jax.lax.scan(
            lambda c, s: pendulum(FIXED, free_tree, c, {"torque": s}), jax.tree.map(jnp.asarray, carry), inputs
        )
        return layouts.carry.float_leaves(end), outputs

    return function, (layouts.free.unpack(free), layouts.carry.float_leaves(layouts.carry.unpack(initial)), inputs)


def test_forward_equals_xla(rollout):
    fixed, free, initial, inputs = random_batch(rollout, 1)
    result = rollout.forward(fixed, free, initial, inputs)
    with jax.enable_x64(True):
        function, arguments = xla_rollout(rollout, fixed, free[0], initial[0], inputs[0])
        floats, outputs = jax.jit(function)(*arguments)
    got = rollout.layouts.carry.unpack(result.end[0])
    np.testing.assert_allclose(got[0], floats[0], rtol=1e-13)
    np.testing.assert_allclose(got[1], floats[1], rtol=1e-13)
    assert got[2].dtype == np.int64
    assert got[3].dtype == bool
    got_outputs = rollout.layouts.outputs.unpack(result.outputs[0])
    np.testing.assert_allclose(got_outputs["energy"], outputs["energy"], rtol=1e-12)
    np.testing.assert_allclose(got_outputs["sine"], outputs["sine"], rtol=1e-12)


def test_gradient_equals_xla(rollout):
    fixed, free, initial, inputs = random_batch(rollout, 1)
    ct_end, ct_outputs = cotangents(rollout, 1)
    result = rollout.gradient(fixed, free, initial, inputs, ct_end, ct_outputs)
    layouts = rollout.layouts
    with jax.enable_x64(True):
        function, arguments = xla_rollout(rollout, fixed, free[0], initial[0], inputs[0])
        _, vjp = jax.vjp(function, *arguments)
        ct = [jnp.asarray(x) for x in layouts.carry.float_leaves(layouts.carry.unpack(ct_end[0]))]
        d_free, d_floats, d_inputs = vjp((ct, jax.tree.map(jnp.asarray, layouts.outputs.unpack(ct_outputs[0]))))
    np.testing.assert_allclose(result.free[0], layouts.free.pack(d_free), rtol=1e-12)
    np.testing.assert_allclose(result.initial[0, :4], np.concatenate(d_floats), rtol=1e-12)
    np.testing.assert_allclose(result.inputs[0], d_inputs, rtol=1e-12)


@pytest.mark.parametrize("batch", [1, 11])
def test_tangents_equal_xla(rollout, batch):
    fixed, free, initial, inputs = random_batch(rollout, batch)
    rng = np.random.default_rng(3)
    directions, sizes = 5, rollout.sizes
    t_free = rng.normal(size=(1, directions, sizes.free))
    t_initial = rng.normal(size=(batch, directions, sizes.x))
    t_inputs = rng.normal(size=(batch, directions, STEPS, sizes.s))
    result = rollout.tangents(fixed, free, initial, inputs, t_free, t_initial, t_inputs)
    layouts = rollout.layouts
    plain = rollout.forward(fixed, free, initial, inputs)
    np.testing.assert_allclose(result.outputs, plain.outputs, rtol=1e-12)
    np.testing.assert_allclose(result.end, plain.end, rtol=1e-12)
    with jax.enable_x64(True):
        for b, d in ((0, 0), (batch - 1, directions - 1)):
            function, arguments = xla_rollout(rollout, fixed, free[b], initial[b], inputs[b])
            tangent = (
                layouts.free.unpack(t_free[0, d]),
                layouts.carry.float_leaves(layouts.carry.unpack(t_initial[b, d])),
                t_inputs[b, d],
            )
            _, (t_floats, t_outputs) = jax.jvp(function, arguments, tangent)
            np.testing.assert_allclose(result.end_tangents[b, d, :4], np.concatenate(t_floats), rtol=1e-11)
            got = layouts.outputs.unpack(result.output_tangents[b, d])
            np.testing.assert_allclose(got["energy"], t_outputs["energy"], rtol=1e-11)


@pytest.mark.parametrize("batch", [2, 3, 8, 9, 21])
@pytest.mark.parametrize("threads", [1, 3])
def test_bits_do_not_depend_on_batch_lane_or_thread(rollout, batch, threads):
    fixed, free, initial, inputs = random_batch(rollout, batch)
    cts = cotangents(rollout, batch)
    batched = rollout.gradient(fixed, free, initial, inputs, *cts, threads=threads)
    for b in (0, batch // 2, batch - 1):
        one = slice(b, b + 1)
        single = rollout.gradient(fixed, free[b], initial[one], inputs[one], cts[0][one], cts[1][one])
        for whole, part in zip(batched, single, strict=True):
            np.testing.assert_array_equal(whole[one], part)


def test_tangents_have_the_same_bits_by_trajectory_and_by_direction(rollout):
    batch, directions, sizes = 9, 3, rollout.sizes
    fixed, free, initial, inputs = random_batch(rollout, batch)
    rng = np.random.default_rng(5)
    t_free = rng.normal(size=(1, directions, sizes.free))
    t_initial = rng.normal(size=(1, directions, sizes.x))
    batched = rollout.tangents(fixed, free, initial, inputs, t_free, t_initial)
    for b in (0, batch - 1):
        one = slice(b, b + 1)
        single = rollout.tangents(fixed, free[b], initial[one], inputs[one], t_free, t_initial)
        for whole, part in zip(batched, single, strict=True):
            np.testing.assert_array_equal(whole[one], part)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("segment", [1, 4, 8, 22, 23, 40])
def test_bits_do_not_depend_on_checkpoints(rollout, batch, segment):
    fixed, free, initial, inputs = random_batch(rollout, batch)
    cts = cotangents(rollout, batch)
    whole = rollout.gradient(fixed, free, initial, inputs, *cts)
    parts = rollout.gradient(fixed, free, initial, inputs, *cts, segment=segment)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("batch", [1, 64])
def test_memory_of_a_gradient_is_bounded(rollout, batch):
    """All states are stored if they fit in the budget, otherwise a number that grows with the square root of steps."""

    def megabytes(steps):
        kernel = rollout.kernel("gradient", batch)
        segment = segment_length(steps, 8 * kernel.compiled.cells_per_state)
        return 8 * rollout.state_memory_cells(kernel, steps, segment, 0) / 2**20

    assert 0.01 < megabytes(1000) < 2.0
    assert max(megabytes(10**k) for k in range(8)) < 80.0
    assert megabytes(10**9) < 15.0 * megabytes(10**7)


def test_shared_and_repeated_arrays_give_the_same_bits(rollout):
    fixed, free, initial, inputs = random_batch(rollout, 4)
    cts = cotangents(rollout, 1)
    shared = rollout.gradient(fixed, free[0], initial, inputs[:1], cts[0], cts[1][:, :1])
    repeated = rollout.gradient(
        np.repeat(fixed[None], 4, 0),
        np.repeat(free[:1], 4, 0),
        initial,
        np.repeat(inputs[:1], 4, 0),
        np.repeat(cts[0], 4, 0),
        np.repeat(np.repeat(cts[1][:, :1], STEPS, 1), 4, 0),
    )
    for a, b in zip(shared, repeated, strict=True):
        np.testing.assert_array_equal(a, b)


def test_zero_steps(rollout):
    fixed, free, initial, _ = random_batch(rollout, 3)
    ct_end = cotangents(rollout, 3)[0]
    result = rollout.gradient(fixed, free, initial, np.zeros((3, 0, 2)), ct_end, np.zeros((3, 0, 3)))
    np.testing.assert_array_equal(result.end, initial)
    np.testing.assert_array_equal(result.initial[:, :4], ct_end[:, :4])
    np.testing.assert_array_equal(result.free, 0.0)


def test_changed_values_do_not_recompile_but_zeros_are_constants(rollout):
    fixed, free, initial, inputs = random_batch(rollout, 2)
    rollout.forward(fixed, free, initial, inputs)
    before = Rollout.compilations
    for factor in (0.5, -3.0, 1e6):
        scaled = np.where(fixed == 0.0, 0.0, fixed * factor)
        assert rollout.is_compatible(scaled)
        rollout.forward(scaled, free * factor, initial + factor, inputs - factor)
    assert Rollout.compilations == before
    assert not rollout.is_compatible(fixed + 1.0)


def test_the_smallest_integer_is_not_taken_for_zero():
    """Its bits are those of -0.0."""
    smallest = np.array(np.iinfo(np.int64).min)

    def rollout(fixed):
        return Rollout(lambda fixed, free, carry, inputs: (carry + fixed, None), fixed, None, np.array(0), None)

    with jax.enable_x64(True):
        rollouts = rollout(smallest), rollout(np.array(0))
        row = rollouts[0].layouts.fixed.pack(smallest)
        result = rollouts[0].forward(row, np.zeros(0), np.zeros((1, 1)), np.zeros((1, 1, 0)))
    assert rollouts[0].layouts.carry.unpack(result.end[0]) == smallest
    assert rollouts[1].is_compatible(np.zeros(1)) and not rollouts[1].is_compatible(row)


def test_wrong_shapes_are_reported(rollout):
    fixed, free, initial, inputs = random_batch(rollout, 2)
    with pytest.raises(ValueError, match="'s' has shape"):
        rollout.forward(fixed, free, initial, inputs[:, :, :1])
    with pytest.raises(ValueError, match="'free' has shape"):
        rollout.forward(fixed, free[:, :2], initial, inputs)
    with jax.enable_x64(True), pytest.raises(ValueError, match="structure, shapes and types"):
        Rollout(lambda fixed, free, carry, inputs: (carry[:1], None), None, None, (np.zeros(2), 1.0), None)


@pytest.mark.parametrize("target", [machine.AVX2, machine.PLAIN_X86], ids=["avx2", "plain x86"])
def test_other_x86_targets_agree(rollout, target):
    with jax.enable_x64(True):
        other = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS, target=target)
    fixed, free, initial, inputs = random_batch(rollout, 5)
    cts = cotangents(rollout, 5)
    expected = rollout.gradient(fixed, free, initial, inputs, *cts)
    got = other.gradient(fixed, free, initial, inputs, *cts)
    for a, b in zip(got, expected, strict=True):
        if target.fma == rollout.target.fma:
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_code_for_arm_is_generated():
    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS, target=machine.ARM)
        for name in ("forward", "gradient", "tangent"):
            kernel = rollout.emit_kernel(name, single=False)
            code = machine.object_code(emit.module(kernel.functions, kernel.texts), machine.ARM)
            assert code[:4] == b"\x7fELF"
            assert int.from_bytes(code[18:20], "little") == 183  # EM_AARCH64


def test_outputs_that_depend_on_parameters_only_or_nothing():
    def step(fixed, free, carry, inputs):
        return carry, (2.0 * free, jnp.asarray(3.0))

    rollout = Rollout(step, None, np.ones(2), None, None)
    arrays = (np.zeros(0), np.array([1.0, 5.0]), np.zeros((3, 0)), np.zeros((3, 2, 0)))
    np.testing.assert_array_equal(rollout.forward(*arrays).outputs, np.tile([2.0, 10.0, 3.0], (3, 2, 1)))
    silent = Rollout(lambda fixed, free, carry, inputs: (carry, None), None, None, None, None)
    assert silent.forward(np.zeros(0), np.zeros(0), np.zeros((3, 0)), np.zeros((3, 2, 0))).outputs.shape == (3, 2, 0)


def test_long_programs_have_the_same_bits(rollout, monkeypatch):
    """Their schedule differs, but not the order of operations within a sum."""
    arrays = random_batch(rollout, 5)
    monkeypatch.setattr(emit, "LARGE_GRAPH_NODES", 10)
    monkeypatch.setattr(emit, "MAX_BLOCK_NODES", 20)
    with jax.enable_x64(True):
        long = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
    for name in ("forward", "gradient"):
        cts = cotangents(rollout, 5) if name == "gradient" else ()
        results = getattr(long, name)(*arrays, *cts)
        for a, b in zip(results, getattr(rollout, name)(*arrays, *cts), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_step_is_traced_once_for_all_kernels():
    calls = []

    def step(*arguments):
        calls.append(1)
        return pendulum(*arguments)

    with jax.enable_x64(True):
        graphs = Rollout(step, FIXED, FREE, CARRY, INPUTS, outputs=_output_shapes()).graphs
        for name in ("step_graph", "jvp_graph", "sweeps", "vjp_graph"):
            getattr(graphs, name)
    assert len(calls) == 1


def _output_shapes():
    return jax.eval_shape(pendulum, FIXED, FREE, CARRY, INPUTS)[1]
