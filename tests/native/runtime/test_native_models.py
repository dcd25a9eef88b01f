"""Native code and XLA agree on every mechanism: values, gradients and Jacobians, with and without grafts.

One step to 1e-11 of the largest entry, a hundred to 1e-9. Derivatives are taken with respect to the state, the commands
and the masses, and for a few mechanisms with respect to every parameter at once.
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
"""Mechanisms of the default run, and whether with a graft; XLA takes long to compile the others."""
IMPORTED = ("laikago", "a1", "panda", "humanoid")
DENSE = ("cartpole", "ball", "arm")
"""Mechanisms that are differentiated with respect to every parameter."""


def loaded(name):
    if name not in IMPORTED:
        return BUILT_IN[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        if name == "humanoid":
            return load_model(suite_file(name))
        path, options = URDF[name]
        return load_model(bullet_file(path), **options)


def grafted(model):
    """A network from positions and velocities to all torques, with weights that do something."""
    net = MLP(2 * model.nv, model.nv, hidden=(5,), seed=1)
    weights = tuple(np.random.default_rng(k).normal(scale=0.1, size=w.shape) for k, w in enumerate(net.weights))
    net = eqx.tree_at(lambda n: n.weights, net, weights)
    return Blueprint(Graft("joint.tau", ["joint.qd", "joint.passive"], net))


class Case:
    """A simulator with random states and commands, and its step as native code and XLA run it."""

    def __init__(self, model, *, blueprint=None, dense=False, steps):
        rng = np.random.default_rng(0)
        self.sim = Simulator(model, blueprint=blueprint, dt=0.001)
        free = self.sim if dense else model.body.mass

        def step(fixed, free, run, inputs):
            sim = free if dense else eqx.tree_at(lambda s: s.model.body.mass, fixed, free)
            return guarded_step(sim, run, inputs)

        self.step, self.free, self.fixed = step, free, None if dense else self.sim
        self.run = initial_carry(self.sim.initial_state(qd=rng.normal(scale=0.5, size=model.nv)))
        self.rollout = Rollout(step, self.fixed, free, self.run, Inputs(np.zeros(model.nu)))
        forms = self.rollout.forms
        self.rows = (
            forms.fixed.pack(self.fixed),
            forms.free.pack(free),
            forms.carry.pack(self.run)[None],
            rng.normal(size=(1, steps, model.nu)),
        )
        self.cotangents = (
            rng.normal(size=(1, forms.carry.size)),
            rng.normal(size=(1, steps, forms.outputs.size)),
        )
        self.directions = tuple(rng.normal(size=(1, 2, n)) for n in (forms.free.size, forms.carry.size))

    def by_xla(self):
        """The rollout as a function of floats: parameters, state, commands."""
        forms = self.rollout.forms

        def function(free, floats, commands):
            run = forms.carry.with_floats(self.run, floats)
            end, rows = jax.lax.scan(lambda r, u: self.step(self.fixed, free, r, Inputs(u)), run, commands)
            return forms.carry.floats(end), forms.outputs.floats(rows)

        return function, (self.free, forms.carry.floats(self.run), self.rows[3][0])


def close(got, expected, tolerance):
    size = max(np.abs(expected).max(initial=0.0), 1e-6)  # what vanishes exactly is noise on both sides
    np.testing.assert_allclose(got / size, expected / size, rtol=0.0, atol=tolerance)


def flat(trees):
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(trees)])


def check(case, tolerance):
    forms = case.rollout.forms
    function, arguments = case.by_xla()
    ct_floats = forms.carry.floats(forms.carry.unpack(case.cotangents[0][0]))
    ct_rows = forms.outputs.floats(forms.outputs.unpack(case.cotangents[1][0]))
    t_free, t_start = (t[0, 1] for t in case.directions)
    along = (forms.free.unpack(t_free), forms.carry.floats(forms.carry.unpack(t_start)), np.zeros_like(arguments[2]))

    def everything(arguments, cotangents, along):
        value, pull = jax.vjp(function, *arguments)
        return value, pull(cotangents), jax.jvp(function, arguments, along)[1]

    value, gradients, tangents = jax.jit(everything)(arguments, (ct_floats, ct_rows), along)
    native = case.rollout.gradient(*case.rows, *case.cotangents)
    end = forms.carry.unpack(native.end[0])
    close(flat(forms.carry.floats(end)), flat(value[0]), tolerance)
    close(
        native.outputs[0].ravel(),
        forms.outputs.pack(forms.outputs.treedef.unflatten(value[1]), native.outputs[0].shape[:1]).ravel(),
        tolerance,
    )
    start = forms.carry.unpack(native.initial[0])
    # together, because the mass of a body that nothing touches has no effect: its gradient is rounding alone
    close(
        np.concatenate([native.free[0], flat(forms.carry.floats(start))]),
        np.concatenate([forms.free.pack(gradients[0]), flat(gradients[1])]),
        tolerance,
    )
    close(native.inputs[0], gradients[2], tolerance)
    sensitivities = case.rollout.tangents(*case.rows, *case.directions)
    along_end = forms.carry.floats(forms.carry.unpack(sensitivities.end_tangents[0, 1]))
    close(flat(along_end), flat(tangents[0]), tolerance)


@pytest.mark.parametrize(
    ("name", "grafts"),
    [
        pytest.param(name, grafts, marks=[] if (name, grafts) in QUICK else pytest.mark.slow)
        for name in (*sorted(BUILT_IN), *IMPORTED)
        for grafts in (False, True)
    ],
)
def test_native_code_equals_xla(name, grafts):
    model = loaded(name)
    blueprint = grafted(model) if grafts else None
    check(Case(model, blueprint=blueprint, steps=1), 1e-11)
    check(Case(model, blueprint=blueprint, steps=100), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSE)
def test_with_respect_to_every_parameter(name):
    check(Case(BUILT_IN[name](), dense=True, steps=1), 1e-11)
    check(Case(BUILT_IN[name](), dense=True, steps=100), 1e-9)
