"""Energy, momentum and centre of mass."""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from hybridsim.core.numerics import safe_divide
from hybridsim.core.types import AnyArray, Scalar, Vec3
from hybridsim.dynamics.inertias import body_inertias
from hybridsim.dynamics.kinematics import Kinematics
from hybridsim.dynamics.passive import spring_deflection
from hybridsim.model.coordinates import expand_q, expand_v
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose


def kinetic_energy(model: Model, kin: Kinematics, qd: Float[AnyArray, " nv"]) -> Scalar:
    """Kinetic energy of the bodies and of the armature [J]."""
    momenta = jax.vmap(lambda I, V: I * V)(body_inertias(model), kin.V_WB_B)
    tree_qd = expand_v(model, qd)
    return 0.5 * jnp.sum(kin.V_WB_B * momenta) + 0.5 * jnp.sum(model.joint.armature * tree_qd**2)


def gravity_energy(model: Model, kin: Kinematics) -> Scalar:
    """Gravitational potential energy, zero at the world origin [J]."""
    return -(_first_moment(model, kin) @ model.gravity)


def spring_energy(model: Model, q: Float[AnyArray, " nq"]) -> Scalar:
    """Potential energy of the joint springs, without those of limit stops [J]."""
    deflection = spring_deflection(model, expand_q(model, q))
    return 0.5 * jnp.sum(model.joint.stiffness * deflection**2)


def total_mass(model: Model) -> Scalar:
    """Total mass of all bodies [kg]."""
    return jnp.sum(jnp.asarray(model.body.mass))


def centre_of_mass(model: Model, kin: Kinematics) -> Vec3:
    """Centre of mass of the mechanism in the world [m]."""
    return safe_divide(_first_moment(model, kin), total_mass(model))


def _first_moment(model: Model, kin: Kinematics) -> Vec3:
    """Sum of mass times position [kg·m]."""
    return model.body.mass @ jax.vmap(lambda X, c: X.point(c))(kin.X_WB, jnp.asarray(model.body.com))


def momentum(model: Model, kin: Kinematics) -> Float[AnyArray, "6"]:
    """Angular momentum about the centre of mass [kg·m²/s], then linear momentum [kg·m/s], in world axes."""
    com = centre_of_mass(model, kin)

    def body_momentum(I, V, X):
        return Pose(X.R, X.p - com).force(I * V)

    return jnp.sum(jax.vmap(body_momentum)(body_inertias(model), kin.V_WB_B, kin.X_WB), axis=0)
