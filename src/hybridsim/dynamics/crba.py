"""Mass matrix by the composite-rigid-body algorithm (Featherstone 2008, table 6.2).

A joint's motion subspace times the composite inertia of its subtree is a force. It is propagated to the root; its
projections onto the motion subspaces along the path are one column of the mass matrix.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, ArrayLike
from hybridsim.dynamics.inertias import body_inertias
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.tree import traverse_leaves_to_root
from hybridsim.model.coordinates import coupling_matrix
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia


def mass_matrix(model: Model, q: ArrayLike) -> Float[AnyArray, "nv nv"]:
    """Mass matrix M(q), armature included [kg·m², kg·m or kg]."""
    return reduced_mass_matrix(model, kinematics(model, q, jnp.zeros(model.nv)), body_inertias(model))


def reduced_mass_matrix(model: Model, kin: Kinematics, inertia: RigidInertia) -> Float[AnyArray, "nv nv"]:
    """Mass matrix in independent coordinates, from kinematics and body inertias."""
    M = tree_mass_matrix(model, kin, inertia)
    if not model.topology.has_mimic_joints:
        return M
    G = coupling_matrix(model)
    return G.T @ M @ G


def tree_mass_matrix(model: Model, kin: Kinematics, inertia: RigidInertia) -> Float[AnyArray, "tree_nv tree_nv"]:
    """Mass matrix of the tree, with mimic joints as independent joints."""
    topology = model.topology

    def propagate(total, X_PB, dofs):
        (I, F), (S, unit_rows) = total, dofs
        F = F + unit_rows.T @ jax.vmap(lambda s: I * s)(S)
        return (I.transform(X_PB), jax.vmap(X_PB.force)(F)), None, S @ F.T

    forces = np.zeros((model.nb, topology.tree_nv, 6))
    dof_rows = (kin.S, np.eye(topology.tree_nv))
    M = traverse_leaves_to_root(topology, propagate, (inertia, forces), kin.X_PB, dof_rows)[1]
    upper = np.triu(np.ones(M.shape, dtype=bool))
    return jnp.where(upper, M, M.T) + jnp.diag(jnp.asarray(model.joint.armature))
