"""Conversion between network tables and networks.

A network is determined by its table and the numbers of its inputs and outputs, so that tables and weights suffice to
restore a blueprint.
"""

from collections.abc import Callable
from typing import Any, get_args

import jax
import numpy as np

from hybridsim.networks.drag import RodDrag
from hybridsim.networks.friction import ConeFriction, JointFriction
from hybridsim.networks.internal_force import InternalForce
from hybridsim.networks.lagrangian import Lagrangian
from hybridsim.networks.mlp import MLP
from hybridsim.networks.passive import Conservative, Dissipative, PortHamiltonian
from hybridsim.project.schema import networks as tables

KINDS: dict[type[tables.NetworkTable], Callable] = {
    tables.MLPTable: MLP,
    tables.DissipativeTable: Dissipative,
    tables.ConservativeTable: Conservative,
    tables.PortHamiltonianTable: PortHamiltonian,
    tables.LagrangianTable: Lagrangian,
    tables.JointFrictionTable: JointFriction,
    tables.ConeFrictionTable: ConeFriction,
    tables.InternalForceTable: InternalForce,
    tables.RodDragTable: RodDrag,
}


def network(table: tables.NetworkTable, inputs: int, outputs: int, seed: int) -> Callable:
    """Network with initial weights.

    Args:
        table: kind and settings.
        inputs: number of inputs.
        outputs: number of outputs.
        seed: random seed of the initial weights, unless the table specifies one.

    Raises:
        ValueError: the kind does not support these numbers of inputs and outputs.
    """
    sizes = _sizes(table.kind, inputs, outputs)
    if sizes is None:
        actual = f"{inputs} inputs and {outputs} outputs"
        raise ValueError(f"a network of kind {table.kind!r} {table.signature}; it cannot have {actual}")
    settings = {name: getattr(table, name) for name in type(table).model_fields if name != "kind"}
    if settings.get("seed", 0) is None:
        settings["seed"] = seed
    settings |= dict.fromkeys(data_dependent_keys(table), 1.0)
    return KINDS[type(table)](**sizes, **settings)


def data_dependent_keys(table: tables.NetworkTable) -> list[str]:
    """Keys of a table whose values are to be determined from recordings."""
    return [name for name in ("input_scale", "output_scale") if getattr(table, name, None) == "data"]


def _sizes(kind: str, inputs: int, outputs: int) -> dict[str, int] | None:
    """Size arguments of a network; None if its kind does not support these numbers of inputs and outputs."""
    match kind:
        case "mlp":
            return {"inputs": inputs, "outputs": outputs}
        case "dissipative" if inputs >= outputs:
            return {"context_size": inputs - outputs, "size": outputs}
        case "conservative" if inputs == outputs:
            return {"size": outputs}
        case "port_hamiltonian" if inputs >= 2 * outputs:
            return {"size": outputs, "ports": inputs - 2 * outputs}
        case "lagrangian" if inputs == 3 * outputs + outputs**2:
            return {"size": outputs}
        case "joint_friction" if outputs == 1 and inputs:
            return {"context_size": inputs - 1}
        case "cone_friction" if outputs == 2 and inputs >= 3:
            return {"context_size": inputs - 3}
        case "internal_force" if (inputs, outputs) == (24, 12):
            return {}
        case "rod_drag" if (inputs, outputs) == (6, 6):
            return {}
    return None


def table_of(net: Any) -> tables.NetworkTable | None:
    """Table of a network, without its weights; None for user-defined networks."""
    schema = next((table for table, constructor in KINDS.items() if type(net) is constructor), None)
    if schema is None:
        return None
    settings: dict[str, Any] = {"kind": get_args(schema.model_fields["kind"].annotation)[0]}
    for mlp in mlps_in(net)[:1]:
        settings |= {"hidden": tuple(int(W.shape[0]) for W in mlp.weights[:-1]), "activation": mlp.activation}
    if isinstance(net, MLP) and net.input_bias is not None:
        settings["input_bias"] = True
    if isinstance(net, RodDrag):
        settings |= {name: tuple(np.asarray(getattr(net, f"{name}_point")).tolist()) for name in ("start", "end")}
    return schema.model_validate(settings)


def mlps_in(net: Any) -> list[MLP]:
    """MLPs within a network."""
    leaves = jax.tree.leaves(net, is_leaf=lambda x: isinstance(x, MLP))
    return [leaf for leaf in leaves if isinstance(leaf, MLP)]
