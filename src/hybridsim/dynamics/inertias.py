"""Spatial inertias and bias wrenches of the bodies."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia, rigid_inertia


def body_inertias(model: Model) -> RigidInertia:
    """Spatial inertia of every body about the origin of its frame."""
    return jax.vmap(rigid_inertia)(*jax.tree.map(jnp.asarray, (model.body.mass, model.body.com, model.body.inertia)))


def bias_wrenches(inertia: RigidInertia, kin: Kinematics) -> Float[AnyArray, "nb 6"]:
    """Bias wrench of each body at zero acceleration of the body's origin [N·m, N]."""
    return jax.vmap(lambda I, V: I.bias_wrench(V[:3]))(inertia, kin.V_WB_B)


def armature_bias(model: Model, kin: Kinematics) -> Float[AnyArray, " tree_nv"]:
    """Bias torque of the armature at zero acceleration [N·m or N].

    It is nonzero only for free joints: their armature resists linear acceleration in the world, whereas `qd` holds
    velocity components in the rotating body frame.
    """
    topology = model.topology
    if not any(kind.joint.has_rotating_velocity for kind in topology.joint_types):
        return np.zeros(topology.tree_nv)
    parts = [
        kind.joint.classical_acceleration_term(kin.V_PB_B[body])
        if kind.joint.has_rotating_velocity
        else np.zeros(kind.nv)
        for body, kind in enumerate(topology.joint_types)
    ]
    return model.joint.armature * jnp.concatenate(parts)
