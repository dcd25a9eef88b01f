"""Inertial-parameter regressor: joint torques are linear in masses, first moments and inertias.

`tau = Y(q, qd, qdd) φ`, with ten parameters per body: m, m c (3), and the inertia about the body frame's origin
(xx, yy, zz, xy, xz, yz). With measured torques, the base parameters, which are
the identifiable linear combinations of φ, follow from linear least squares without simulation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Q, Qd, Qdd, Vec3
from hybridsim.dynamics.inertias import body_inertias
from hybridsim.dynamics.jacobian import body_jacobians
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.rnea import body_accelerations
from hybridsim.model.coordinates import expand_v
from hybridsim.model.model import Model
from hybridsim.spatial.inertia import SYMMETRIC_ORDER, RigidInertia, symmetric_matrix


def inertial_parameters(model: Model) -> Float[AnyArray, "nb 10"]:
    """Inertial parameters φ of every body: m [kg], m c [kg·m], inertia about the frame's origin [kg·m²]."""
    inertia = body_inertias(model)
    rows, columns = np.array(SYMMETRIC_ORDER).T
    return jnp.concatenate([inertia.mass[:, None], inertia.h, inertia.I[:, rows, columns]], axis=1)


def inertial_regressor(model: Model, q: Q, qd: Qd, qdd: Qdd) -> Float[AnyArray, "nv nb 10"]:
    """Regressor Y with `tau = Σ_b Y[:, b] φ_b`; torques of the armature are not included."""
    kin = kinematics(model, q, qd)
    A_WB_B = body_accelerations(model, kin, expand_v(model, qdd))
    body_rows = jax.vmap(_body_regressor)(kin.V_WB_B[:, :3], A_WB_B)
    return jnp.einsum("bij,bik->jbk", body_jacobians(model, kin), body_rows)


def _body_regressor(omega: Vec3, A: Float[AnyArray, "6"]) -> Float[AnyArray, "6 10"]:
    """Regressor of one body: partial derivatives of its wrench with respect to its parameters."""

    def wrench(phi):
        inertia = RigidInertia(phi[0], phi[1:4], symmetric_matrix(phi[4:]))
        return inertia * A + inertia.bias_wrench(omega)

    return jax.vmap(wrench, out_axes=1)(jnp.eye(10))
