"""Frozen fields are declared by the module, not inferred from names."""

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.core.errors import TapError
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.frozen_fields import FROZEN, weight_mask
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
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


def space(*frees):
    sim = Simulator(pendulum(), blueprint=Blueprint(Graft("joint.tau", "joint.q", Spring())))
    return ParameterSpace(Setup(sim, Sensors.of(sim, {"q": "joint.q"})), frees)


def test_all_arrays_except_frozen_fields_are_weights():
    assert space(Free("graft[0]")).labels == ("graft[0].log_scale[0]",)
    assert weight_count(Spring()) == 1


def test_frozen_fields_can_be_freed_by_name():
    assert space(Free("graft[0].rest")).labels == ("graft[0].rest[0]",)


def test_frozen_fields_within_frozen_fields_must_be_named_too():
    names = {label.split("[inner].")[1].split("[")[0] for label in space(Free("graft[0].parts")).labels}
    assert names == {"weights", "biases"}
    assert space(Free("graft[0].parts[inner].input_scale")).labels == ("graft[0].parts[inner].input_scale[0]",)


def test_normalization_of_a_perceptron_is_frozen():
    is_weight = weight_mask(MLP(2, 1, input_bias=True))
    assert all(is_weight.weights) and all(is_weight.biases) and is_weight.input_bias
    assert not (is_weight.input_shift or is_weight.input_scale or is_weight.output_scale)


INVALID = {
    "input_scale": lambda: MLP(2, 1, input_scale=(1.0, 0.0)),
    "output_scale": lambda: MLP(2, 1, output_scale=np.inf),
    "damping_scale": lambda: Dissipative(1, 1, damping_scale=-1.0),
    "potential_scale": lambda: Conservative(1, potential_scale=0.0),
    "inertia_scale": lambda: Lagrangian(1, inertia_scale=-2.0),
    "width": lambda: JointFriction(width=0.0),
    "friction_scale": lambda: JointFriction(friction_scale=-1.0),
    "friction": lambda: ConeFriction(friction=-0.5),
    "speed_scale": lambda: ConeFriction(speed_scale=np.nan),
    "distance_scale": lambda: InternalForce(distance_scale=0.0),
}


@pytest.mark.parametrize("name", INVALID)
def test_scales_that_are_not_positive_are_refused(name):
    with pytest.raises(TapError, match=f"^{name} must be positive and finite"):
        INVALID[name]()


def test_a_damping_scale_of_zero_disables_damping():
    assert InternalForce(damping_scale=0.0).damping_scale == 0.0
    with pytest.raises(TapError, match=r"^damping_scale must be nonnegative and finite"):
        InternalForce(damping_scale=-0.1)
    with pytest.raises(TapError, match="damping_scale"):
        PortHamiltonian(2, damping_scale=-1.0)
