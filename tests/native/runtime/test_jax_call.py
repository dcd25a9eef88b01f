"""Native rollouts under JAX transformations: jit, grad, jvp, vmap; second derivatives are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.native.runtime.jax_call import NativeCall
from hybridsim.native.runtime.rollout import Rollout
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, STEPS, pendulum


@pytest.fixture(scope="module")
def native():
    """Rollout of the test pendulum as a function of JAX arrays, for one trajectory."""
    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
    call = NativeCall(rollout)
    fixed = rollout.layouts.fixed.pack(FIXED)[None]
    initial = rollout.layouts.carry.pack(CARRY)

    def rollout_function(free, angles, torques):
        x0 = jnp.concatenate([angles, jnp.asarray(initial[2:])])
        end, outputs = call(fixed, free[None], x0[None], torques[None])
        return end[0, :4], outputs[0]

    return rollout_function


def xla_rollout(free, angles, torques):
    """The same rollout by XLA."""
    parameters = {"damping": free[0], "length": free[1:3], "mass": free[3:5]}
    carry = (angles, *[jnp.asarray(x) for x in CARRY[1:]])
    end, outputs = jax.lax.scan(lambda c, s: pendulum(FIXED, parameters, c, {"torque": s}), carry, torques)
    return jnp.concatenate(end[:2]), jnp.concatenate([outputs["energy"][:, None], outputs["sine"]], axis=1)


ARGUMENTS = (
    np.array([0.1, 1.0, 0.7, 1.0, 2.0]),
    np.array([0.9, -0.4]),
    np.random.default_rng(0).normal(size=(STEPS, 2)),
)


def loss(rollout_function):
    def function(free, angles, torques):
        end, outputs = rollout_function(free, angles, torques)
        return jnp.sum(end**2) + jnp.sum(jnp.sin(outputs))

    return function


def assert_close(result, expected, rtol=1e-11):
    for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_value(native, transform):
    with jax.enable_x64(True):
        assert_close(transform(native)(*ARGUMENTS), xla_rollout(*ARGUMENTS))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradient(native, transform):
    with jax.enable_x64(True):
        result = transform(jax.value_and_grad(loss(native), argnums=(0, 1, 2)))(*ARGUMENTS)
        assert_close(result, jax.value_and_grad(loss(xla_rollout), argnums=(0, 1, 2))(*ARGUMENTS))


def test_gradient_of_some_arguments(native):
    with jax.enable_x64(True):
        assert_close(jax.grad(loss(native), argnums=1)(*ARGUMENTS), jax.grad(loss(xla_rollout), argnums=1)(*ARGUMENTS))
        assert_close(jax.grad(loss(native))(*ARGUMENTS), jax.grad(loss(xla_rollout))(*ARGUMENTS))


def test_jvp(native):
    rng = np.random.default_rng(1)
    tangents = tuple(rng.normal(size=a.shape) for a in ARGUMENTS)
    with jax.enable_x64(True):
        assert_close(jax.jvp(native, ARGUMENTS, tangents), jax.jvp(xla_rollout, ARGUMENTS, tangents))


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_jacobian(native, mode):
    with jax.enable_x64(True):
        assert_close(
            jax.jit(mode(native, argnums=(0, 1)))(*ARGUMENTS), jax.jacfwd(xla_rollout, argnums=(0, 1))(*ARGUMENTS)
        )


@pytest.mark.parametrize("axes", [(None, 0, None), (0, 0, 0), (0, None, None), (None, None, 1)], ids=str)
def test_vmap(native, axes):
    rng = np.random.default_rng(2)

    def mapped(array, axis):
        if axis is None:
            return array
        return np.stack([array * rng.uniform(0.9, 1.1, size=array.shape) for _ in range(11)], axis=axis)

    arguments = tuple(mapped(a, axis) for a, axis in zip(ARGUMENTS, axes, strict=True))
    with jax.enable_x64(True):
        assert_close(jax.vmap(native, axes)(*arguments), jax.vmap(xla_rollout, axes)(*arguments))
        gradient = jax.jit(jax.vmap(jax.grad(loss(native), argnums=(0, 1, 2)), axes))
        assert_close(gradient(*arguments), jax.vmap(jax.grad(loss(xla_rollout), argnums=(0, 1, 2)), axes)(*arguments))
        # gradient of a sum over trajectories with respect to shared arguments
        total = lambda rollout_function: lambda *a: jnp.sum(jax.vmap(loss(rollout_function), axes)(*a))  # noqa: E731
        assert_close(
            jax.grad(total(native), (0, 1, 2))(*arguments), jax.grad(total(xla_rollout), (0, 1, 2))(*arguments)
        )


def test_nested_vmap(native):
    free = np.stack([ARGUMENTS[0] * k for k in (0.9, 1.0, 1.2)])
    angles = np.stack([ARGUMENTS[1] + k for k in (0.0, 0.1)])

    def nested(rollout_function):
        return jax.vmap(jax.vmap(rollout_function, (None, 0, None)), (0, None, None))

    with jax.enable_x64(True):
        assert_close(nested(native)(free, angles, ARGUMENTS[2]), nested(xla_rollout)(free, angles, ARGUMENTS[2]))


def test_several_threads_give_the_same_bits():
    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
        fixed, free = rollout.layouts.fixed.pack(FIXED)[None], rollout.layouts.free.pack(FREE)[None]
        initial = np.repeat(rollout.layouts.carry.pack(CARRY)[None], 40, axis=0)
        initial[:, :4] += np.random.default_rng(3).normal(size=(40, 4))
        torques = np.zeros((1, STEPS, 2))
        one, three = (
            jax.jit(NativeCall(rollout, threads=lambda batch, steps, n=n: n).__call__)(fixed, free, initial, torques)
            for n in (1, 3)
        )
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


SECOND_DERIVATIVES = {
    "hessian": jax.hessian,
    "twice reverse": lambda f: jax.jacrev(jax.grad(f)),
    "twice forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
}


@pytest.mark.parametrize("order", SECOND_DERIVATIVES)
def test_second_derivatives_are_refused_with_a_reason(native, order):
    with jax.enable_x64(True), pytest.raises(NotImplementedError, match="first derivatives only"):
        SECOND_DERIVATIVES[order](loss(native))(*ARGUMENTS)


@pytest.mark.parametrize("order", SECOND_DERIVATIVES)
def test_second_derivatives_by_the_fallback(order):
    """Second derivatives of a sum over trajectories with shared parameters are computed by the fallback."""
    reasons = []

    def fallback(fixed, free, initial, inputs):
        def one(free, initial, inputs):
            carry = (initial[:2], *rollout.layouts.carry.unpack_traced(initial)[1:])
            end, outputs = jax.lax.scan(
                lambda c, s: pendulum(FIXED, rollout.layouts.free.unpack_traced(free), c, {"torque": s}), carry, inputs
            )
            return rollout.layouts.carry.pack_traced(end), jax.vmap(rollout.layouts.outputs.pack_traced)(outputs)

        batch = len(initial)
        return jax.vmap(one)(*(jnp.broadcast_to(a, (batch, *a.shape[1:])) for a in (free, initial, inputs)))

    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
        call = NativeCall(rollout, fallback=fallback, warn=reasons.append)
        fixed, initial = rollout.layouts.fixed.pack(FIXED)[None], rollout.layouts.carry.pack(CARRY)[None]
        states = np.concatenate([initial, initial])
        states[1, :2] += 0.3

        def total(rollout_function):
            def function(free):
                end, outputs = rollout_function(fixed, free[None], states, ARGUMENTS[2][None])
                return jnp.sum(end[:, :4] ** 2) + jnp.sum(jnp.sin(outputs))

            return function

        result = jax.jit(SECOND_DERIVATIVES[order](total(call)))(ARGUMENTS[0])
        assert_close(result, jax.jit(jax.jacfwd(jax.jacfwd(total(fallback))))(ARGUMENTS[0]), rtol=1e-9)
    assert set(reasons) == {"native rollouts support first derivatives only"}


def test_inside_a_scan(native):
    def three_times(rollout_function):
        def body(angles, _):
            end, _ = rollout_function(ARGUMENTS[0], angles, ARGUMENTS[2])
            return end[:2], None

        return jax.lax.scan(body, ARGUMENTS[1], length=3)[0]

    with jax.enable_x64(True):
        assert_close(jax.jit(lambda: three_times(native))(), three_times(xla_rollout), rtol=1e-9)
