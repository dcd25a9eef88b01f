"""What a model is built from: plain descriptions of bodies, joints, shapes, frames and actuators.

Importers and the `ModelBuilder` write these; `assemble` turns them into a `Model`. Everything is NumPy and Python,
so that reading a model file needs no compilation. Each description remembers where it came from.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from hybridsim.model.geometry import DEFAULT_FRICTION, DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, NOT_TOLD, Faces, Shape
from hybridsim.model.inertial import Inertial
from hybridsim.spatial.transform import Pose

WORLD_NAME = "world"


@dataclass(frozen=True)
class Source:
    """Place in a file that a description was read from."""

    file: str = ""
    line: int = 0


class JointKind(StrEnum):
    """Joint types that a user can ask for; compound ones become chains of elementary ones."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    """Revolute without limits."""
    PRISMATIC = "prismatic"
    SPHERICAL = "spherical"
    UNIVERSAL = "universal"
    """Turns about `axis`, fixed in the parent, then about `axis2`, fixed in the body."""
    PLANAR = "planar"
    """Moves in the plane normal to `axis` and turns about it."""
    FREE = "free"


PARTS = {JointKind.UNIVERSAL: ("1", "2"), JointKind.PLANAR: ("x", "y", "yaw")}
"""Endings of the names of the elementary joints that a compound joint consists of: `hinge.1`, `hinge.2`."""


def identity_pose() -> Pose:
    """Pose of a frame in itself."""
    return Pose(np.eye(3), np.zeros(3))


@dataclass
class JointSpec:
    """A joint and its parameters; scalars apply to each of its degrees of freedom."""

    name: str
    kind: JointKind = JointKind.REVOLUTE
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis2: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    """Second axis of a universal joint."""
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """Point of the body about which it turns, in the body frame [m]."""
    armature: float = 0.0
    stiffness: float = 0.0
    rest: np.ndarray | float = 0.0
    """Coordinate at which the spring is relaxed [rad, m]; a quaternion for spherical joints."""
    damping: float = 0.0
    friction: float = 0.0
    breakaway: float = 0.0
    stribeck_velocity: float = 0.1
    friction_width: float | None = None
    """Velocity [rad/s or m/s] over which dry friction rises; by default as narrow as the time step can follow."""
    lower: float = -np.inf
    upper: float = np.inf
    effort_limit: float = np.inf
    limit_stiffness: float | None = None
    """Stiffness of the stops; by default chosen from the inertia that the joint shows."""
    limit_damping: float | None = None
    mimic: str = ""
    """Name of the joint that this one follows."""
    mimic_ratio: float = 1.0
    mimic_offset: float = 0.0
    source: Source = Source()


@dataclass
class BodySpec:
    """A body, the joint that carries it and where that joint sits on the parent."""

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
    """A collision shape."""

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
    """Body that the shape was described with, if that one was merged into `body`; empty otherwise."""
    restitution: float = 0.0
    recovery_time: float = DEFAULT_RECOVERY_TIME
    softness: float = DEFAULT_SOFTNESS
    stiffness: float = NOT_TOLD
    damping: float = NOT_TOLD
    has_friction: bool = True
    """Was the friction told, or is it the default?"""
    priority: int = 0
    data: np.ndarray | None = None
    """Points or heights, as `Geometry.data` has them."""
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
    """An actuator on a joint with one degree of freedom, or on such a part of a compound joint: `base.yaw`."""

    name: str
    joint: str
    gear: float = 1.0
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control_range: tuple[float, float] = (-np.inf, np.inf)
    force_range: tuple[float, float] = (-np.inf, np.inf)
    source: Source = Source()


@dataclass
class ModelSpec:
    """A whole mechanism, ready to be checked and assembled."""

    name: str
    bodies: list[BodySpec] = field(default_factory=list)
    geoms: list[GeomSpec] = field(default_factory=list)
    frames: list[FrameSpec] = field(default_factory=list)
    actuators: list[ActuatorSpec] = field(default_factory=list)
    """Left empty, every joint with one degree of freedom gets a direct torque or force."""
    passive: bool = False
    """True for a mechanism without any actuator."""
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    home: dict[str, np.ndarray | float] = field(default_factory=dict)
    """Starting coordinates by joint name; zero (or no rotation) for the joints not named."""
    timestep: float = 0.001
    excluded_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of links (bodies, merged ones included) whose shapes never collide."""
    explicit_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of shapes that collide whatever their groups say."""
    pair_friction: dict[tuple[str, str], float] = field(default_factory=dict)
    """Friction of pairs of shapes that have a number of their own, whatever their surfaces are like."""
    carried_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Links at rest, and links on a joint that hangs on them; found when the former are merged into the world."""
