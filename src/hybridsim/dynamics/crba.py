"""Mass matrix by composite inertias (Featherstone 2008, table 6.2), vectorised over pairs of degrees of freedom.

The composite inertia of everything above a joint times the joint's direction is a force; its projection on the
directions of all ancestors is a column of the mass matrix. In world axes that is one matrix product and a mask.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.rows import take
from hybridsim.core.types import AnyArray, Numbers
from hybridsim.dynamics.inertias import body_inertias
from hybridsim.dynamics.jacobian import world_directions
from hybridsim.dynamics.kinematics import Kinematics, kinematics
from hybridsim.dynamics.tree import ancestor_mask, leaves_to_root
from hybridsim.model.coordinates import coupling
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import RigidInertia
from hybridsim.spatial.transform import Pose


def mass_matrix(model: Model, q: Numbers) -> Float[AnyArray, "nv nv"]:
    """Joint-space inertia M(q), armature included [kg·m², kg·m or kg]."""
    kin = kinematics(model, q, jnp.zeros(model.nv))
    M = tree_mass_matrix(model, kin, body_inertias(model))
    if not model.topology.is_coupled:
        return M
    G = coupling(model)
    return G.T @ M @ G


def tree_mass_matrix(model: Model, kin: Kinematics, inertia: RigidInertia) -> Float[AnyArray, "mv mv"]:
    """Inertia of the tree, mimic joints counted as independent."""
    topology = model.topology

    def collect(total, X_PB, dofs):
        return total.seen_from(X_PB), total, jnp.zeros(dofs.shape)

    composite, _ = leaves_to_root(topology, collect, inertia, kin.X_PB, jnp.zeros(topology.mv))
    owner = topology.dof_owners
    F_B = jax.vmap(lambda I, S: I * S)(take(composite, owner), kin.S)
    # everything about the first body's origin: far from the world's origin nothing cancels
    reference = kin.X_WB.p[0]
    X_WB = take(kin.X_WB, owner)
    F_W = jax.vmap(lambda X, F: Pose(X.R, X.p - reference).force(F))(X_WB, F_B)
    S_W = world_directions(topology, kin, reference)
    # entry (i, j) is given by the deeper of the two; i moves with j only if j is an ancestor
    moves = np.asarray(ancestor_mask(topology), dtype=float)[list(owner)]
    below = moves * np.tri(topology.mv)
    lower = (F_W @ S_W.T) * below
    return lower + (lower * (1.0 - np.eye(topology.mv))).T + jnp.diag(jnp.asarray(model.joint.armature))
