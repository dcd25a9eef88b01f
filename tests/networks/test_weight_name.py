"""Parsed names of network weights."""

import equinox as eqx
import jax
import pytest

from hybridsim.networks.weight_name import WeightName, is_graft_parameter, parse_weight_name
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots.pendulum import pendulum
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.taps.blueprint import Blueprint, Graft


@pytest.mark.parametrize(
    "name, parts",
    {
        "graft[0].weights[0][2,3]": WeightName(0, "", 0, 3),
        "graft[12].net.weights[1][0,7]": WeightName(12, ".net", 1, 7),
        "graft[1].biases[0][4]": WeightName(1, "", 0),
        "graft[1].layers[2].weight[0,1]": WeightName(1, "", 2, 1),
        "graft[1].layers[0].bias[0]": WeightName(1, "", 0),
        "graft[1].layers[0].weight[1]": WeightName(1, ".layers[0].weight[1]"),
        "graft[1].layers[0].weight[1,0,2]": WeightName(1, ".layers[0].weight[1,0,2]"),
        "graft[3].stiffness": WeightName(3, ".stiffness"),
        "graft[3].values[1]": WeightName(3, ".values[1]"),
    }.items(),
)
def test_names_are_parsed(name, parts):
    assert parse_weight_name(name) == parts
    assert parts.is_first_layer_weight == (parts.layer == 0 and parts.column is not None)


@pytest.mark.parametrize("name", ["joint.damping[graft[0]]", "body.mass[graft]", "graft", "sensor.bias[q]"])
def test_other_parameters_are_not_of_networks(name):
    assert not is_graft_parameter(name)


def test_every_weight_of_an_equinox_mlp_is_parsed():
    net = eqx.nn.MLP(2, 1, 3, 1, key=jax.random.key(0))
    sim = Simulator(pendulum(), blueprint=Blueprint(Graft("joint.tau", ["joint.q", "joint.qd"], net)))
    weights = [
        parse_weight_name(label)
        for label in ParameterSpace(Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q"})), [Free("graft[0]")]).names
    ]
    assert [weight.layer for weight in weights if weight] == [0] * 9 + [1] * 4
    assert [weight.column for weight in weights if weight and weight.is_first_layer_weight] == [0, 1] * 3
