"""Model: a mechanism as a plain record of physical values, with its topology beside them.

Nothing here is wrapped, scaled or transformed: `model.body.mass[2]` is a mass in kilograms. The numbers are NumPy
arrays until JAX traces them, and every one of them can be differentiated, fitted or batched.
"""

import equinox as eqx
from jaxtyping import Float

from hybridsim.core.types import AnyArray, Vec3
from hybridsim.model.geometry import Geometry
from hybridsim.model.topology import Topology
from hybridsim.spatial.transform import Pose


class Bodies(eqx.Module):
    """Inertial parameters, one row per body."""

    mass: Float[AnyArray, " nb"]
    """Mass [kg]."""
    com: Float[AnyArray, "nb 3"]
    """Centre of mass in the body frame [m]."""
    inertia: Float[AnyArray, "nb 6"]
    """Inertia about the centre of mass in body axes [kg·m²]: xx, yy, zz, xy, xz, yz."""


class Joints(eqx.Module):
    """Joint parameters. Geometry has one row per joint, the rest one entry per degree of freedom of the tree."""

    placement: Pose
    """X_PJ: the joint's frame in the parent body; the body frame coincides with it at q = 0."""
    axis: Float[AnyArray, "nb 3"]
    """Unit axis in the body frame; not used by spherical, free and fixed joints."""
    anchor: Float[AnyArray, "nb 3"]
    """Point in the body frame about which the body turns [m]."""
    armature: Float[AnyArray, " mv"]
    """Rotor inertia reflected through the gear [kg·m² or kg]."""
    stiffness: Float[AnyArray, " mv"]
    """Spring stiffness [N·m/rad or N/m]."""
    rest: Float[AnyArray, " mq"]
    """Coordinates at which the springs are relaxed [rad, m or quaternion]."""
    damping: Float[AnyArray, " mv"]
    """Viscous friction [N·m·s/rad or N·s/m]."""
    friction: Float[AnyArray, " mv"]
    """Dry (Coulomb) friction [N·m or N]."""
    breakaway: Float[AnyArray, " mv"]
    """Friction above `friction` at low speed (Stribeck) [N·m or N]."""
    stribeck_velocity: Float[AnyArray, " mv"]
    """Speed at which the extra friction has decayed to 1/e [rad/s or m/s]."""
    friction_width: Float[AnyArray, " mv"]
    """Speed below which dry friction is smoothed to a line [rad/s or m/s]."""
    lower: Float[AnyArray, " mv"]
    """Lower position limit [rad or m]; -inf where there is none."""
    upper: Float[AnyArray, " mv"]
    """Upper position limit [rad or m]; inf where there is none."""
    limit_stiffness: Float[AnyArray, " mv"]
    """Stiffness of the limit stops [N·m/rad or N/m]."""
    limit_damping: Float[AnyArray, " mv"]
    """Damping of the limit stops [N·m·s/rad or N·s/m]."""
    effort_limit: Float[AnyArray, " mv"]
    """Largest actuation torque or force [N·m or N]; inf where there is none."""
    mimic_ratio: Float[AnyArray, " nb"]
    """A mimic joint's coordinate is `mimic_ratio` times its master's, plus `mimic_offset`."""
    mimic_offset: Float[AnyArray, " nb"]
    """Offset of a mimic joint [rad or m]."""


class Actuators(eqx.Module):
    """Actuators, each driving one joint with one degree of freedom.

    The force of actuator k is `gain·u + bias·(1, length, speed)`, where length and speed are the joint's times `gear`,
    clipped to its range and multiplied by `gear` to give the joint torque.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[int, ...] = eqx.field(static=True)
    """Index of the driven joint."""
    gear: Float[AnyArray, " nu"]
    """Transmission ratio from joint to actuator speed."""
    gain: Float[AnyArray, " nu"]
    """Force per unit of control [N·m or N]."""
    bias: Float[AnyArray, "nu 3"]
    """Constant, per length and per speed part of the force."""
    control_lower: Float[AnyArray, " nu"]
    control_upper: Float[AnyArray, " nu"]
    """Range that controls are clipped to."""
    force_lower: Float[AnyArray, " nu"]
    force_upper: Float[AnyArray, " nu"]
    """Range that forces are clipped to [N·m or N]."""


class Model(eqx.Module):
    """A mechanism: topology, bodies, joints, actuators, shapes, gravity."""

    topology: Topology = eqx.field(static=True)
    body: Bodies
    joint: Joints
    actuator: Actuators
    geometry: Geometry
    frame_placement: Pose
    """X_BF of every named frame in its body."""
    gravity: Vec3
    """Acceleration of a falling body [m/s²]."""
    home: Float[AnyArray, " nq"]
    """Configuration that the model starts in."""
    timestep: float = eqx.field(static=True, default=0.001)
    """Time step that the model file asks for [s]."""

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.topology.name

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
        """Number of controls."""
        return len(self.actuator.names)
