"""Model descriptions: plain records of bodies, joints, shapes, frames and actuators.

File readers and the `ModelBuilder` create them; `assemble` turns them into a `Model`. Everything is NumPy and Python,
so that reading a model file needs no compilation. Bodies, joints, shapes and actuators carry their location in it.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from hybridsim.core.choices import check_choice
from hybridsim.model.geometry import (
    DEFAULT_FRICTION,
    DEFAULT_RECOVERY_TIME,
    DEFAULT_SOFTNESS,
    UNSPECIFIED,
    Faces,
    Shape,
)
from hybridsim.model.inertial import Inertial
from hybridsim.model.joints import ElementaryJointType
from hybridsim.spatial.transform import Pose

WORLD_NAME = "world"


@dataclass(frozen=True)
class Source:
    """File and line that a description was read from."""

    file: str = ""
    line: int = 0


class JointKind(StrEnum):
    """Joint types available to the user; compound ones become chains of elementary joints."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    """Revolute without position limits."""
    PRISMATIC = "prismatic"
    SPHERICAL = "spherical"
    UNIVERSAL = "universal"
    """Rotation about `axis`, fixed in the parent, then about `axis2`, fixed in the body."""
    PLANAR = "planar"
    """Translation in the plane normal to `axis` and rotation about it."""
    FREE = "free"

    @classmethod
    def _missing_(cls, value: object):
        check_choice("joint type", value, cls)

    @property
    def is_compound(self) -> bool:
        """Whether the joint becomes a chain of elementary joints."""
        return self is not JointKind.CONTINUOUS and self.value not in tuple(ElementaryJointType)

    @property
    def elementary_type(self) -> ElementaryJointType:
        """Type in the tree; compound joints have none."""
        return ElementaryJointType.REVOLUTE if self is JointKind.CONTINUOUS else ElementaryJointType(self.value)


ONE_DOF_JOINTS = tuple(kind for kind in JointKind if not kind.is_compound and kind.elementary_type.nv == 1)
"""Joints with one degree of freedom."""


def identity_pose() -> Pose:
    """Identity pose."""
    return Pose(np.eye(3), np.zeros(3))


@dataclass
class JointSpec:
    """A joint and its parameters, with the units of `Joints`; scalars apply to each of its degrees of freedom."""

    name: str
    kind: JointKind = JointKind.REVOLUTE
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis2: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    """Second axis of a universal joint."""
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """Centre of rotation in the body frame [m]."""
    armature: float = 0.0
    stiffness: float = 0.0
    rest: np.ndarray | float = 0.0
    """Rest position of the spring [rad, m]; a quaternion for spherical joints."""
    damping: float = 0.0
    friction: float = 0.0
    stribeck_friction: float = 0.0
    stribeck_velocity: float = 0.1
    friction_width: float | None = None
    """Speed scale [rad/s or m/s] of the regularization of dry friction, tanh(qd/friction_width); by default 0.01,
    or the smallest value that the time step resolves if that is larger."""
    lower: float = -np.inf
    upper: float = np.inf
    effort_limit: float = np.inf
    limit_stiffness: float | None = None
    """Stiffness of the limit stops; by default derived from the apparent inertia of the joint."""
    limit_damping: float | None = None
    mimic: str = ""
    """Name of the joint that this one mimics; empty for an independent joint."""
    mimic_ratio: float = 1.0
    mimic_offset: float = 0.0
    source: Source = Source()


@dataclass
class BodySpec:
    """A body, the joint that connects it to its parent and the placement of that joint."""

    name: str
    parent: str
    joint: JointSpec
    placement: Pose = field(default_factory=identity_pose)
    """X_PJ: joint frame in the parent body."""
    inertial: Inertial = field(default_factory=Inertial)
    source: Source = Source()
    inertial_source: Source = Source()


@dataclass
class GeomSpec:
    """A collision shape: a geom, called shape in messages; `Shape` is its type."""

    name: str
    body: str
    shape: Shape
    size: np.ndarray
    placement: Pose = field(default_factory=identity_pose)
    friction: float = DEFAULT_FRICTION
    mesh_file: str = ""
    group: int = 1
    mask: int = 1
    source: Source = Source()
    link: str = ""
    """Link that the shape was defined on, if that link was merged into `body`; empty otherwise."""
    restitution: float = 0.0
    recovery_time: float = DEFAULT_RECOVERY_TIME
    softness: float = DEFAULT_SOFTNESS
    stiffness: float = UNSPECIFIED
    damping: float = UNSPECIFIED
    is_friction_specified: bool = True
    """Whether friction was specified rather than left at its default."""
    priority: int = 0
    data: np.ndarray | None = None
    """Vertices or heights, as in `Geometry.data`."""
    faces: Faces = ()
    """Triangles of a convex hull."""


@dataclass
class FrameSpec:
    """A named frame fixed to a body."""

    name: str
    body: str
    placement: Pose = field(default_factory=identity_pose)


@dataclass
class ActuatorSpec:
    """An actuator on a joint with one degree of freedom or on an elementary joint of a compound joint: `base.yaw`."""

    name: str
    joint: str
    gear: float = 1.0
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    command_range: tuple[float, float] = (-np.inf, np.inf)
    force_range: tuple[float, float] = (-np.inf, np.inf)
    source: Source = Source()


@dataclass
class ModelSpec:
    """Description of a mechanism, to be validated and assembled."""

    name: str
    bodies: list[BodySpec] = field(default_factory=list)
    geoms: list[GeomSpec] = field(default_factory=list)
    frames: list[FrameSpec] = field(default_factory=list)
    actuators: list[ActuatorSpec] = field(default_factory=list)
    """If empty, every independent joint with one degree of freedom has a torque actuator: gear 1, gain 1, no bias."""
    is_unactuated: bool = False
    """Whether the mechanism has no actuators at all."""
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    home: dict[str, np.ndarray | float] = field(default_factory=dict)
    """Home configuration by joint name; zero (or no rotation) for joints not listed."""
    timestep: float = 0.001
    excluded_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of links (bodies, merged ones included) whose shapes never collide."""
    explicit_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of shapes that collide regardless of their groups."""
    pair_friction: dict[tuple[str, str], float] = field(default_factory=dict)
    """Friction coefficient of individual pairs of shapes; overrides that of their surfaces."""
    parent_child_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a link merged into the world and a link connected to it by a joint; set by `merge_fixed_joints`."""
