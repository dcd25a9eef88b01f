"""Native code and XLA agree on all models: values, gradients and Jacobians, with and without grafts.

One step to 1e-11 of the largest entry, a hundred to 1e-9. Derivatives are taken with respect to the state, the commands
and the masses, and for a few models with respect to all parameters.
"""

import warnings

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.core.errors import ModelWarning
from hybridsim.io.load import load_model
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.networks.mlp import MLP
from hybridsim.robots import BUILT_IN
from hybridsim.sim.guard import guarded_step, initial_carry
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.taps.blueprint import Blueprint, Graft
from support.real_models import URDF, bullet_file, suite_file

QUICK = (("pendulum", True),)
"""Models of the default test run, and whether with a graft; XLA takes long to compile the others."""
IMPORTED = ("laikago", "a1", "panda", "humanoid")
ALL_PARAMETERS_FREE = ("cartpole", "ball", "arm")
"""Models that are differentiated with respect to all parameters."""


def load(name):
    if name not in IMPORTED:
        return BUILT_IN[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        if name == "humanoid":
            return load_model(suite_file(name))
        path, options = URDF[name]
        return load_model(bullet_file(path), **options)


def network_blueprint(model):
    """Blueprint with a network from velocities and passive torques to all torques, with nonzero weights."""
    net = MLP(2 * model.nv, model.nv, hidden=(5,), seed=1)
    weights = tuple(np.random.default_rng(k).normal(scale=0.1, size=w.shape) for k, w in enumerate(net.weights))
    net = eqx.tree_at(lambda n: n.weights, net, weights)
    return Blueprint(Graft("joint.tau", ["joint.qd", "joint.passive"], net))


class BackendComparison:
    """A simulator with random states and commands, and its rollout by native code and by XLA."""

    def __init__(self, model, *, blueprint=None, all_free=False, steps):
        rng = np.random.default_rng(0)
        self.sim = Simulator(model, blueprint=blueprint, dt=0.001)
        free = self.sim if all_free else model.body.mass

        def step(fixed, free, carry, inputs):
            sim = free if all_free else eqx.tree_at(lambda s: s.model.body.mass, fixed, free)
            return guarded_step(sim, carry, inputs)

        self.step, self.free, self.fixed = step, free, None if all_free else self.sim
        self.carry = initial_carry(self.sim.initial_state(qd=rng.normal(scale=0.5, size=model.nv)))
        self.rollout = Rollout(step, self.fixed, free, self.carry, Inputs(np.zeros(model.nu)))
        layouts = self.rollout.layouts
        self.rows = (
            layouts.fixed.pack(self.fixed),
            layouts.free.pack(free),
            layouts.carry.pack(self.carry)[None],
            rng.normal(size=(1, steps, model.nu)),
        )
        self.cotangents = (
            rng.normal(size=(1, layouts.carry.size)),
            rng.normal(size=(1, steps, layouts.outputs.size)),
        )
        self.directions = tuple(rng.normal(size=(1, 2, n)) for n in (layouts.free.size, layouts.carry.size))

    def xla_rollout(self):
        """The rollout by XLA as a function of parameters, floats of the state and commands, and its arguments."""
        layouts = self.rollout.layouts

        def function(free, floats, commands):
            carry = layouts.carry.with_float_leaves(self.carry, floats)
            end, rows = jax.lax.scan(lambda r, u: self.step(self.fixed, free, r, Inputs(u)), carry, commands)
            return layouts.carry.float_leaves(end), layouts.outputs.float_leaves(rows)

        return function, (self.free, layouts.carry.float_leaves(self.carry), self.rows[3][0])


def assert_close(result, expected, tolerance):
    size = max(np.abs(expected).max(initial=0.0), 1e-6)  # an exact zero is rounding noise on both sides
    np.testing.assert_allclose(result / size, expected / size, rtol=0.0, atol=tolerance)


def flatten(trees):
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(trees)])


def check_backends_agree(comparison, tolerance):
    layouts = comparison.rollout.layouts
    function, arguments = comparison.xla_rollout()
    ct_floats = layouts.carry.float_leaves(layouts.carry.unpack(comparison.cotangents[0][0]))
    ct_rows = layouts.outputs.float_leaves(layouts.outputs.unpack(comparison.cotangents[1][0]))
    t_free, t_initial = (t[0, 1] for t in comparison.directions)
    direction = (
        layouts.free.unpack(t_free),
        layouts.carry.float_leaves(layouts.carry.unpack(t_initial)),
        np.zeros_like(arguments[2]),
    )

    def value_and_derivatives(arguments, cotangents, direction):
        value, vjp = jax.vjp(function, *arguments)
        return value, vjp(cotangents), jax.jvp(function, arguments, direction)[1]

    value, gradients, tangents = jax.jit(value_and_derivatives)(arguments, (ct_floats, ct_rows), direction)
    native = comparison.rollout.gradient(*comparison.rows, *comparison.cotangents)
    end = layouts.carry.unpack(native.end[0])
    assert_close(flatten(layouts.carry.float_leaves(end)), flatten(value[0]), tolerance)
    assert_close(
        native.outputs[0].ravel(),
        layouts.outputs.pack(layouts.outputs.treedef.unflatten(value[1]), native.outputs[0].shape[:1]).ravel(),
        tolerance,
    )
    initial = layouts.carry.unpack(native.initial[0])
    # compared as one array, because the gradient of a mass without effect is rounding error only
    assert_close(
        np.concatenate([native.free[0], flatten(layouts.carry.float_leaves(initial))]),
        np.concatenate([layouts.free.pack(gradients[0]), flatten(gradients[1])]),
        tolerance,
    )
    assert_close(native.inputs[0], gradients[2], tolerance)
    sensitivities = comparison.rollout.tangents(*comparison.rows, *comparison.directions)
    end_tangent = layouts.carry.float_leaves(layouts.carry.unpack(sensitivities.end_tangents[0, 1]))
    assert_close(flatten(end_tangent), flatten(tangents[0]), tolerance)


@pytest.mark.parametrize(
    ("name", "grafts"),
    [
        pytest.param(name, grafts, marks=[] if (name, grafts) in QUICK else pytest.mark.slow)
        for name in (*sorted(BUILT_IN), *IMPORTED)
        for grafts in (False, True)
    ],
)
def test_native_code_equals_xla(name, grafts):
    model = load(name)
    blueprint = network_blueprint(model) if grafts else None
    check_backends_agree(BackendComparison(model, blueprint=blueprint, steps=1), 1e-11)
    check_backends_agree(BackendComparison(model, blueprint=blueprint, steps=100), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_PARAMETERS_FREE)
def test_with_respect_to_every_parameter(name):
    check_backends_agree(BackendComparison(BUILT_IN[name](), all_free=True, steps=1), 1e-11)
    check_backends_agree(BackendComparison(BUILT_IN[name](), all_free=True, steps=100), 1e-9)
