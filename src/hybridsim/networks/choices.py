"""The kinds of networks that are selected by name; listing them does not load JAX.

Every kind has a class attribute `wiring`, which describes its inputs and outputs for messages, and a class method
`sizes(inputs, outputs)`, which returns the arguments of its constructor that follow from the numbers of inputs and
outputs, or None if it does not support them.
"""

from hybridsim.core.choices import ImportTable

NETWORKS = ImportTable(
    {
        "mlp": "hybridsim.networks.mlp:MLP",
        "dissipative": "hybridsim.networks.passive:Dissipative",
        "conservative": "hybridsim.networks.passive:Conservative",
        "port_hamiltonian": "hybridsim.networks.passive:PortHamiltonian",
        "lagrangian": "hybridsim.networks.lagrangian:Lagrangian",
        "joint_friction": "hybridsim.networks.friction:JointFriction",
        "cone_friction": "hybridsim.networks.friction:ConeFriction",
        "internal_force": "hybridsim.networks.internal_force:InternalForce",
        "rod_drag": "hybridsim.networks.drag:RodDrag",
    }
)
"""Kinds of networks by name."""

SIZES = ("inputs", "outputs", "context_size", "size", "ports")
"""Arguments of networks that follow from their wiring."""
