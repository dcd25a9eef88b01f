"""Native rollouts inside JAX: jit, grad, jvp, vmap, and what they may not do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.native.runtime.jax_call import NativeCall
from hybridsim.native.runtime.rollout import Rollout
from support.native_pendulum import CARRY, FIXED, FREE, INPUTS, STEPS, pendulum


@pytest.fixture(scope="module")
def native():
    """The pendulum of the rollout tests as a function of JAX arrays: one trajectory in, one out."""
    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
    call = NativeCall(rollout)
    fixed = rollout.forms.fixed.pack(FIXED)[None]
    start = rollout.forms.carry.pack(CARRY)

    def run(free, angles, torques):
        x0 = jnp.concatenate([angles, jnp.asarray(start[2:])])
        end, outputs = call(fixed, free[None], x0[None], torques[None])
        return end[0, :4], outputs[0]

    return run


def plain(free, angles, torques):
    """The same by XLA."""
    parameters = {"damping": free[0], "length": free[1:3], "mass": free[3:5]}
    carry = (angles, *[jnp.asarray(x) for x in CARRY[1:]])
    end, outputs = jax.lax.scan(lambda c, s: pendulum(FIXED, parameters, c, {"torque": s}), carry, torques)
    return jnp.concatenate(end[:2]), jnp.concatenate([outputs["energy"][:, None], outputs["sine"]], axis=1)


ARGUMENTS = (
    np.array([0.1, 1.0, 0.7, 1.0, 2.0]),
    np.array([0.9, -0.4]),
    np.random.default_rng(0).normal(size=(STEPS, 2)),
)


def loss(run):
    def function(free, angles, torques):
        end, outputs = run(free, angles, torques)
        return jnp.sum(end**2) + jnp.sum(jnp.sin(outputs))

    return function


def assert_close(got, expected, rtol=1e-11):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_value(native, wrapped):
    with jax.enable_x64(True):
        assert_close(wrapped(native)(*ARGUMENTS), plain(*ARGUMENTS))


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradient(native, wrapped):
    with jax.enable_x64(True):
        got = wrapped(jax.value_and_grad(loss(native), argnums=(0, 1, 2)))(*ARGUMENTS)
        assert_close(got, jax.value_and_grad(loss(plain), argnums=(0, 1, 2))(*ARGUMENTS))


def test_gradient_of_some_arguments(native):
    with jax.enable_x64(True):
        assert_close(jax.grad(loss(native), argnums=1)(*ARGUMENTS), jax.grad(loss(plain), argnums=1)(*ARGUMENTS))
        assert_close(jax.grad(loss(native))(*ARGUMENTS), jax.grad(loss(plain))(*ARGUMENTS))


def test_jvp(native):
    rng = np.random.default_rng(1)
    along = tuple(rng.normal(size=a.shape) for a in ARGUMENTS)
    with jax.enable_x64(True):
        assert_close(jax.jvp(native, ARGUMENTS, along), jax.jvp(plain, ARGUMENTS, along))


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_jacobian(native, mode):
    with jax.enable_x64(True):
        assert_close(jax.jit(mode(native, argnums=(0, 1)))(*ARGUMENTS), jax.jacfwd(plain, argnums=(0, 1))(*ARGUMENTS))


@pytest.mark.parametrize("axes", [(None, 0, None), (0, 0, 0), (0, None, None), (None, None, 1)], ids=str)
def test_vmap(native, axes):
    rng = np.random.default_rng(2)

    def mapped(array, axis):
        if axis is None:
            return array
        return np.stack([array * rng.uniform(0.9, 1.1, size=array.shape) for _ in range(11)], axis=axis)

    arguments = tuple(mapped(a, axis) for a, axis in zip(ARGUMENTS, axes, strict=True))
    with jax.enable_x64(True):
        assert_close(jax.vmap(native, axes)(*arguments), jax.vmap(plain, axes)(*arguments))
        gradient = jax.jit(jax.vmap(jax.grad(loss(native), argnums=(0, 1, 2)), axes))
        assert_close(gradient(*arguments), jax.vmap(jax.grad(loss(plain), argnums=(0, 1, 2)), axes)(*arguments))
        # the gradient of a sum over trajectories of what they share
        total = lambda run: lambda *a: jnp.sum(jax.vmap(loss(run), axes)(*a))  # noqa: E731
        assert_close(jax.grad(total(native), (0, 1, 2))(*arguments), jax.grad(total(plain), (0, 1, 2))(*arguments))


def test_nested_vmap(native):
    free = np.stack([ARGUMENTS[0] * k for k in (0.9, 1.0, 1.2)])
    angles = np.stack([ARGUMENTS[1] + k for k in (0.0, 0.1)])

    def nested(run):
        return jax.vmap(jax.vmap(run, (None, 0, None)), (0, None, None))

    with jax.enable_x64(True):
        assert_close(nested(native)(free, angles, ARGUMENTS[2]), nested(plain)(free, angles, ARGUMENTS[2]))


def test_several_threads_give_the_same_bits():
    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
        fixed, free = rollout.forms.fixed.pack(FIXED)[None], rollout.forms.free.pack(FREE)[None]
        start = np.repeat(rollout.forms.carry.pack(CARRY)[None], 40, axis=0)
        start[:, :4] += np.random.default_rng(3).normal(size=(40, 4))
        torques = np.zeros((1, STEPS, 2))
        one, three = (
            jax.jit(NativeCall(rollout, threads=lambda batch, steps, n=n: n).__call__)(fixed, free, start, torques)
            for n in (1, 3)
        )
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


SECOND = {
    "hessian": jax.hessian,
    "twice reverse": lambda f: jax.jacrev(jax.grad(f)),
    "twice forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
}


@pytest.mark.parametrize("order", SECOND)
def test_second_derivatives_are_refused_with_a_reason(native, order):
    with jax.enable_x64(True), pytest.raises(NotImplementedError, match="first derivatives only"):
        SECOND[order](loss(native))(*ARGUMENTS)


@pytest.mark.parametrize("order", SECOND)
def test_second_derivatives_by_another_function(order):
    """Of a sum over trajectories that share parameters; the other function is what they come from."""
    reasons = []

    def other(fixed, free, start, inputs):
        def one(free, start, inputs):
            carry = (start[:2], *rollout.forms.carry.unpack_traced(start)[1:])
            end, outputs = jax.lax.scan(
                lambda c, s: pendulum(FIXED, rollout.forms.free.unpack_traced(free), c, {"torque": s}), carry, inputs
            )
            return rollout.forms.carry.pack_traced(end), jax.vmap(rollout.forms.outputs.pack_traced)(outputs)

        batch = len(start)
        return jax.vmap(one)(*(jnp.broadcast_to(a, (batch, *a.shape[1:])) for a in (free, start, inputs)))

    with jax.enable_x64(True):
        rollout = Rollout(pendulum, FIXED, FREE, CARRY, INPUTS)
        call = NativeCall(rollout, otherwise=other, warn=reasons.append)
        fixed, start = rollout.forms.fixed.pack(FIXED)[None], rollout.forms.carry.pack(CARRY)[None]
        starts = np.concatenate([start, start])
        starts[1, :2] += 0.3

        def total(run):
            def function(free):
                end, outputs = run(fixed, free[None], starts, ARGUMENTS[2][None])
                return jnp.sum(end[:, :4] ** 2) + jnp.sum(jnp.sin(outputs))

            return function

        got = jax.jit(SECOND[order](total(call)))(ARGUMENTS[0])
        assert_close(got, jax.jit(jax.jacfwd(jax.jacfwd(total(other))))(ARGUMENTS[0]), rtol=1e-9)
    assert set(reasons) == {"native rollouts have first derivatives only"}


def test_inside_a_scan(native):
    def three_times(run):
        def body(angles, _):
            end, _ = run(ARGUMENTS[0], angles, ARGUMENTS[2])
            return end[:2], None

        return jax.lax.scan(body, ARGUMENTS[1], length=3)[0]

    with jax.enable_x64(True):
        assert_close(jax.jit(lambda: three_times(native))(), three_times(plain), rtol=1e-9)
