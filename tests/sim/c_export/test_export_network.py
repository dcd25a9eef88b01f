"""Network exported as C: values and derivatives equal those of JAX."""

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim import Simulator
from hybridsim.core.errors import HybridsimError
from hybridsim.networks.friction import JointFriction
from hybridsim.networks.frozen_fields import weight_mask
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
from hybridsim.robots import double_pendulum
from hybridsim.sim.c_export.export_network import export_network_c
from hybridsim.taps.blueprint import Blueprint, Graft
from support.c_library import EXACT, build, call, needs_compiler
from support.networks import randomize_weights

STATE = ["joint.q", "joint.qd"]
SHAPE = {"hidden": (5,), "input_shift": 0.1, "input_scale": 2.0}
GRAFTS = {
    "MLP": Graft("joint.tau", STATE, MLP(4, 2, hidden=(8, 8), input_scale=[1.0, 2.0, 3.0, 4.0], output_scale=0.3)),
    "large MLP": Graft("joint.tau", STATE, MLP(4, 2, hidden=(40, 40)), mode="scale"),
    "Dissipative": Graft("joint.tau", STATE, Dissipative(2, 2, damping_scale=0.3, **SHAPE)),
    "Conservative": Graft("joint.tau", "joint.q", Conservative(2, **SHAPE)),
    "PortHamiltonian": Graft("joint.tau", STATE, PortHamiltonian(2, **SHAPE)),
    "JointFriction": Graft("joint.tau", STATE, JointFriction(1, **SHAPE), per="element"),
}


def simulator(kind: str) -> Simulator:
    graft = GRAFTS[kind]
    net = randomize_weights(graft.net, (3, 0.5))
    return Simulator(
        double_pendulum(), blueprint=Blueprint(Graft(graft.outputs, graft.inputs, net, mode=graft.mode, per=graft.per))
    )


@needs_compiler
@pytest.mark.parametrize("kind", GRAFTS)
def test_values_and_derivatives_equal_jax(kind, tmp_path):
    sim = simulator(kind)
    source, header = export_network_c(sim, 0, tmp_path / "net.c", prefix="friction")
    library = build(source, *EXACT)
    net = sim.blueprint.grafts[0].net
    text = header.read_text()
    sizes = {
        line.split()[1][-2:]: int(line.split()[2])
        for line in text.splitlines()
        if line.startswith("#define FRICTION_N") and "_H" not in line
    }
    leaves = [np.ravel(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(net)[0] if hasattr(leaf, "dtype")]
    assert sizes["NP"] == sum(map(len, leaves))
    x = np.random.default_rng(0).normal(size=sizes["NX"])
    params = params_of(source)
    (y,) = call(library, "friction_network", [params, x], [sizes["NY"]])
    with jax.enable_x64(True):
        np.testing.assert_allclose(y, net(x), rtol=1e-12)
        ct = np.random.default_rng(1).normal(size=sizes["NY"])
        of_net, of_x = jax.vjp(lambda n, x: n(x), net, jax.numpy.asarray(x))[1](jax.numpy.asarray(ct))
    ct_params, ct_x = call(library, "friction_network_vjp", [params, x, ct], [sizes["ND"], sizes["NX"]])
    np.testing.assert_allclose(ct_x, of_x, rtol=1e-11, atol=1e-14)
    weights = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(of_net, weight_mask(net)))])
    np.testing.assert_allclose(ct_params, weights, rtol=1e-10, atol=1e-13)


def params_of(source) -> np.ndarray:
    """Parameters in the C file."""
    body = source.read_text().rpartition("= {")[2].partition("};")[0]
    rows = [line.partition("/*")[0] for line in body.splitlines()]
    return np.array([float(word) for row in rows for word in row.split(",") if word.strip()])


def test_the_header_documents_inputs_and_outputs(tmp_path):
    _, header = export_network_c(simulator("JointFriction"), 0, tmp_path / "net.c")
    text = header.read_text()
    assert "x[0]              joint.q" in text and "is added to joint.tau" in text and "one element per call" in text


def test_invalid_exports_are_explained(tmp_path):
    with pytest.raises(HybridsimError, match="there is no network 1; the blueprint has 1 network"):
        export_network_c(simulator("MLP"), 1, tmp_path / "net.c")
    with pytest.raises(HybridsimError, match=r"the extension \.c"):
        export_network_c(simulator("MLP"), 0, tmp_path / "net.cpp")
