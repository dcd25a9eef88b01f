"""Model: a mechanism as a plain record of physical values and its static topology.

Nothing here is wrapped, scaled or transformed: `model.body.mass[2]` is a mass in kilograms. The fields are NumPy arrays
until JAX traces them, and all of them can be differentiated, fitted or batched.
"""

import equinox as eqx
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Vec3
from hybridsim.model.geometry import Geometry
from hybridsim.model.topology import ModelSource, Topology
from hybridsim.spatial.transform import Pose


class Bodies(eqx.Module):
    """Mass properties, one row per body."""

    mass: Float[AnyArray, " nb"]
    """Mass [kg]."""
    com: Float[AnyArray, "nb 3"]
    """Centre of mass in the body frame [m]."""
    inertia: Float[AnyArray, "nb 6"]
    """Inertia about the centre of mass in body axes [kg·m²]: xx, yy, zz, xy, xz, yz."""


class Joints(eqx.Module):
    """Joint parameters, with one row per joint, coordinate or degree of freedom of the tree, mimic joints included."""

    placement: Pose
    """X_PJ: joint frame in the parent body; the body frame coincides with it at q = 0."""
    axis: Float[AnyArray, "nb 3"]
    """Unit axis in the body frame; ignored by spherical, free and fixed joints."""
    anchor: Float[AnyArray, "nb 3"]
    """Centre of rotation in the body frame [m]."""
    armature: Float[AnyArray, " tree_nv"]
    """Rotor inertia reflected through the gear [kg·m² or kg]."""
    stiffness: Float[AnyArray, " tree_nv"]
    """Spring stiffness [N·m/rad or N/m]."""
    rest: Float[AnyArray, " tree_nq"]
    """Rest configuration of the springs [rad, m or quaternion]."""
    damping: Float[AnyArray, " tree_nv"]
    """Viscous damping [N·m·s/rad or N·s/m]."""
    friction: Float[AnyArray, " tree_nv"]
    """Dry (Coulomb) friction [N·m or N]."""
    stribeck_friction: Float[AnyArray, " tree_nv"]
    """Breakaway friction in excess of `friction` at low speed (Stribeck) [N·m or N]."""
    stribeck_velocity: Float[AnyArray, " tree_nv"]
    """Velocity at which the Stribeck friction has decayed to 1/e [rad/s or m/s]."""
    friction_width: Float[AnyArray, " tree_nv"]
    """Speed scale [rad/s or m/s] of the regularization of dry friction, tanh(qd/friction_width)."""
    lower: Float[AnyArray, " tree_nv"]
    """Lower position limit [rad or m]; -inf where there is none."""
    upper: Float[AnyArray, " tree_nv"]
    """Upper position limit [rad or m]; inf where there is none."""
    limit_stiffness: Float[AnyArray, " tree_nv"]
    """Stiffness of the limit stops [N·m/rad or N/m]."""
    limit_damping: Float[AnyArray, " tree_nv"]
    """Damping of the limit stops [N·m·s/rad or N·s/m]."""
    effort_limit: Float[AnyArray, " tree_nv"]
    """Maximum actuation torque or force [N·m or N]; inf where there is none."""
    mimic_ratio: Float[AnyArray, " nb"]
    """Ratio of a mimic joint, whose coordinate is `mimic_ratio` times that of its master plus `mimic_offset`."""
    mimic_offset: Float[AnyArray, " nb"]
    """Offset of a mimic joint [rad or m]."""


class Actuators(eqx.Module):
    """Actuators, each acting on one joint with one degree of freedom.

    The force of actuator k is `gain·u + bias·(1, length, velocity)`, clipped to its range; length and velocity are
    `gear` times the position and velocity of the joint, and the joint torque is `gear` times the force.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[int, ...] = eqx.field(static=True)
    """Index of the actuated joint."""
    gear: Float[AnyArray, " nu"]
    """Transmission ratio: actuator speed per joint speed."""
    gain: Float[AnyArray, " nu"]
    """Force per unit of command [N·m or N]."""
    bias: Float[AnyArray, "nu 3"]
    """Constant force, force per length and force per velocity."""
    command_lower: Float[AnyArray, " nu"]
    command_upper: Float[AnyArray, " nu"]
    """Range to which commands are clipped."""
    force_lower: Float[AnyArray, " nu"]
    force_upper: Float[AnyArray, " nu"]
    """Range to which forces are clipped [N·m or N]."""


class Model(eqx.Module):
    """A mechanism: topology, bodies, joints, actuators, shapes, gravity."""

    topology: Topology = eqx.field(static=True)
    body: Bodies
    joint: Joints
    actuator: Actuators
    geometry: Geometry
    frame_placement: Pose
    """X_BF: pose of every named frame in its body."""
    gravity: Vec3
    """Gravitational acceleration in the world frame [m/s²]."""
    home: Float[AnyArray, " nq"]
    """Home configuration: the default initial configuration."""
    timestep: float = eqx.field(static=True, default=0.001)
    """Time step specified by the model file or the builder [s]."""

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.topology.name

    @property
    def source(self) -> ModelSource | None:
        """File that the model was loaded from; None for a mechanism built in Python."""
        return self.topology.source

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return self.topology.nb

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return self.topology.nv

    @property
    def nu(self) -> int:
        """Number of commands."""
        return len(self.actuator.names)
