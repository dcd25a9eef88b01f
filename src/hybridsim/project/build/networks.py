"""From tables of networks to networks, and back.

A network is made from its table and the number of its inputs and outputs alone, so that a file with nothing but tables
and weights is a blueprint again.
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

KINDS: dict[type[tables.Kind], Callable] = {
    tables.MLPSection: MLP,
    tables.DissipativeSection: Dissipative,
    tables.ConservativeSection: Conservative,
    tables.PortHamiltonianSection: PortHamiltonian,
    tables.LagrangianSection: Lagrangian,
    tables.JointFrictionSection: JointFriction,
    tables.ConeFrictionSection: ConeFriction,
    tables.InternalForceSection: InternalForce,
    tables.RodDragSection: RodDrag,
}


def network(table: tables.Kind, inputs: int, outputs: int, seed: int) -> Callable:
    """A network as it is before a fit.

    Args:
        table: what it is.
        inputs: numbers that it reads.
        outputs: numbers that it returns.
        seed: of the first weights, unless the table has its own.

    Raises:
        ValueError: a network of this kind has other numbers of inputs and outputs.
    """
    sizes = _sizes(table.kind, inputs, outputs)
    if sizes is None:
        raise ValueError(f"a network of the kind {table.kind!r} {table.reads}, not {inputs} for {outputs}")
    told = {name: getattr(table, name) for name in type(table).model_fields if name != "kind"}
    if told.get("seed", 0) is None:
        told["seed"] = seed
    told |= dict.fromkeys(scales_from_data(table), 1.0)
    return KINDS[type(table)](**sizes, **told)


def scales_from_data(table: tables.Kind) -> list[str]:
    """Keys of a table whose numbers are to be taken from recordings, which a network does not know by itself."""
    return [name for name in ("input_scale", "output_scale") if getattr(table, name, None) == "data"]


def _sizes(kind: str, inputs: int, outputs: int) -> dict[str, int] | None:
    """How many of what a network has; None if it cannot have these."""
    match kind:
        case "mlp":
            return {"inputs": inputs, "outputs": outputs}
        case "dissipative" if inputs >= outputs:
            return {"context": inputs - outputs, "size": outputs}
        case "conservative" if inputs == outputs:
            return {"size": outputs}
        case "port_hamiltonian" if inputs >= 2 * outputs:
            return {"size": outputs, "ports": inputs - 2 * outputs}
        case "lagrangian" if inputs == 3 * outputs + outputs**2:
            return {"size": outputs}
        case "joint_friction" if outputs == 1 and inputs:
            return {"context": inputs - 1}
        case "cone_friction" if outputs == 2 and inputs >= 3:
            return {"context": inputs - 3}
        case "internal_force" if (inputs, outputs) == (24, 12):
            return {}
        case "rod_drag" if (inputs, outputs) == (6, 6):
            return {}
    return None


def table_of(net: Any) -> tables.Kind | None:
    """The table of a network, without what is among its weights; None for one that is the user's own."""
    found = next((table for table, made in KINDS.items() if type(net) is made), None)
    if found is None:
        return None
    told: dict[str, Any] = {"kind": get_args(found.model_fields["kind"].annotation)[0]}
    for mlp in mlps_in(net)[:1]:
        told |= {"hidden": tuple(int(W.shape[0]) for W in mlp.weights[:-1]), "activation": mlp.activation}
    if isinstance(net, MLP) and net.input_bias is not None:
        told["input_bias"] = True
    if isinstance(net, RodDrag):
        told |= {name: tuple(np.asarray(getattr(net, f"{name}_point")).tolist()) for name in ("start", "end")}
    return found.model_validate(told)


def mlps_in(net: Any) -> list[MLP]:
    """All perceptrons inside of a network."""
    leaves = jax.tree.leaves(net, is_leaf=lambda x: isinstance(x, MLP))
    return [leaf for leaf in leaves if isinstance(leaf, MLP)]
