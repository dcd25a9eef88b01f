"""Frozen fields are declared by the module, not inferred from names."""

import equinox as eqx
import jax
import numpy as np

from hybridsim.networks.frozen_fields import FROZEN, weight_mask
from hybridsim.networks.mlp import MLP
from hybridsim.networks.wiring_summary import weight_count
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots.pendulum import pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft


class Spring(eqx.Module):
    """A user's law: one of its arrays is named like a normalization, but is a weight."""

    log_scale: jax.Array | np.ndarray
    rest: jax.Array | np.ndarray = eqx.field(metadata=FROZEN)
    parts: dict[str, MLP] = eqx.field(metadata=FROZEN)

    def __init__(self):
        self.log_scale, self.rest = np.zeros(1), np.ones(1)
        self.parts = {"inner": MLP(1, 1, hidden=(2,))}

    def __call__(self, q):
        return -jax.numpy.exp(self.log_scale) * (q - self.rest) + self.parts["inner"](q)


def space(*free_parameters):
    sim = Simulator(pendulum(), blueprint=Blueprint(Graft("joint.tau", "joint.q", Spring())))
    return ParameterSpace(Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q"})), free_parameters)


def test_all_arrays_except_frozen_fields_are_weights():
    assert space(Free("graft[0]")).names == ("graft[0].log_scale[0]",)
    assert weight_count(Spring()) == 1


def test_frozen_fields_can_be_freed_by_name():
    assert space(Free("graft[0].rest")).names == ("graft[0].rest[0]",)


def test_frozen_fields_within_frozen_fields_must_be_named_too():
    names = {name.split("[inner].")[1].split("[")[0] for name in space(Free("graft[0].parts")).names}
    assert names == {"weights", "biases"}
    assert space(Free("graft[0].parts[inner].input_scale")).names == ("graft[0].parts[inner].input_scale[0]",)


def test_normalization_of_an_mlp_is_frozen():
    is_weight = weight_mask(MLP(2, 1, input_bias=True))
    assert all(is_weight.weights) and all(is_weight.biases) and is_weight.input_bias
    assert not (is_weight.input_shift or is_weight.input_scale or is_weight.output_scale)
