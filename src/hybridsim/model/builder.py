"""ModelBuilder: a mechanism written in Python, body by body.

arm = ModelBuilder("arm")
arm.add_body("upper", joint="shoulder", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001))
arm.add_body("lower", parent="upper", joint="elbow", at=(0, 0, -0.5), axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.2))
model = arm.build()
"""

from collections.abc import Sequence

import numpy as np

from hybridsim.core.errors import ModelError, Severity
from hybridsim.model.assemble import assemble
from hybridsim.model.geometry import Shape
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.merge import merge_fixed
from hybridsim.model.model import Model
from hybridsim.model.specs import (
    WORLD_NAME,
    ActuatorSpec,
    BodySpec,
    FrameSpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
)
from hybridsim.model.validate import problems_of
from hybridsim.spatial.transform import Pose

Triple = Sequence[float] | np.ndarray


class ModelBuilder:
    """Collects bodies, shapes, frames and actuators, checks them and builds a `Model`."""

    def __init__(self, name: str, *, gravity: Triple = (0.0, 0.0, -9.81), timestep: float = 0.001):
        self.spec = ModelSpec(name, gravity=np.asarray(gravity, dtype=float), timestep=timestep)

    def add_body(
        self,
        name: str,
        *,
        parent: str = WORLD_NAME,
        joint: str = "",
        kind: JointKind | str = JointKind.REVOLUTE,
        at: Triple = (0.0, 0.0, 0.0),
        rpy: Triple = (0.0, 0.0, 0.0),
        axis: Triple = (0.0, 0.0, 1.0),
        mass: float = 0.0,
        com: Triple = (0.0, 0.0, 0.0),
        inertia: Triple = (0.0, 0.0, 0.0),
        home: float | Triple | None = None,
        **parameters,
    ) -> "ModelBuilder":
        """Add a body carried by a joint.

        Args:
            name: name of the body.
            parent: body that carries it, or `world`.
            joint: name of the joint; by default the body's name.
            kind: joint type.
            at: position of the joint's frame in the parent [m].
            rpy: orientation of the joint's frame in the parent as roll, pitch, yaw [rad].
            axis: axis of the joint in its frame.
            mass: mass [kg].
            com: centre of mass in the body frame [m].
            inertia: inertia about the centre of mass [kg·m²]: 3 (diagonal), 6 (xx, yy, zz, xy, xz, yz) or 3×3 numbers.
            home: coordinates of the joint in the starting configuration.
            **parameters: any other field of `JointSpec`, such as damping, friction, lower, upper, armature.
        """
        joint_spec = JointSpec(
            name=joint or name,
            kind=JointKind(kind),
            axis=np.asarray(axis, dtype=float),
            **_as_arrays(parameters),
        )
        inertial = Inertial(float(mass), np.asarray(com, dtype=float), inertia_matrix(inertia))
        self.spec.bodies.append(BodySpec(name, parent, joint_spec, pose(at, rpy), inertial))
        if home is not None:
            self.spec.home[joint_spec.name] = np.asarray(home, dtype=float)
        return self

    def add_geom(
        self,
        body: str,
        shape: Shape | str,
        size: Triple,
        *,
        name: str = "",
        at: Triple = (0.0, 0.0, 0.0),
        rpy: Triple = (0.0, 0.0, 0.0),
        data: Sequence | np.ndarray | None = None,
        **surface,
    ) -> "ModelBuilder":
        """Attach a collision shape.

        Args:
            body: that carries it, or `world`.
            shape: its kind.
            size: [m]; padded with zeros to the three numbers that `Shape` defines.
            name: of the shape; made from the body's by default.
            at: position in the body [m].
            rpy: orientation in the body as roll, pitch, yaw [rad].
            data: points (n, 3) of points, hulls and polygons (n, 2 will do for these), heights of a terrain [m].
            **surface: friction, restitution, recovery_time, softness, stiffness, damping; and group, mask, priority.
        """
        padded = np.zeros(3)
        padded[: len(size)] = size
        name = name or f"{body}_geom{sum(g.body == body for g in self.spec.geoms)}"
        shape, points = Shape(shape), None if data is None else np.asarray(data, dtype=float)
        if points is not None and shape is Shape.POLYGON and points.shape[-1] == 2:
            points = np.pad(points, ((0, 0), (0, 1)))
        surface.setdefault("has_friction", "friction" in surface)
        self.spec.geoms.append(GeomSpec(name, body, shape, padded, pose(at, rpy), data=points, **surface))
        return self

    def add_frame(self, name: str, body: str, at: Triple = (0.0, 0.0, 0.0), rpy: Triple = (0.0, 0.0, 0.0)):
        """Name a frame fixed to a body."""
        self.spec.frames.append(FrameSpec(name, body, pose(at, rpy)))
        return self

    def add_actuator(self, joint: str, *, name: str = "", **parameters) -> "ModelBuilder":
        """Drive a joint; `parameters` are fields of `ActuatorSpec`. Without any, all joints take direct torques."""
        self.spec.actuators.append(ActuatorSpec(name or joint, joint, **parameters))
        return self

    def passive(self) -> "ModelBuilder":
        """Declare that no joint is driven."""
        self.spec.passive = True
        return self

    def build(self, *, merge: bool = True) -> Model:
        """The model; raises `ModelError` with everything that is wrong.

        Args:
            merge: merge bodies on fixed joints into their parents.
        """
        errors = [p for p in problems_of(self.spec) if p.severity is Severity.ERROR]
        if errors:
            raise ModelError(errors)
        return assemble(merge_fixed(self.spec)[0] if merge else self.spec)


def pose(at: Triple, rpy: Triple = (0.0, 0.0, 0.0)) -> Pose:
    """Pose from a position [m] and roll, pitch, yaw [rad] about the fixed axes x, y, z."""
    return Pose(_turned(np.asarray(rpy, dtype=float)), np.array(at, dtype=float))


def _turned(rpy: np.ndarray) -> np.ndarray:
    if not rpy.any():
        return np.eye(3)
    from scipy.spatial.transform import Rotation  # takes a while to load

    return Rotation.from_euler("xyz", rpy).as_matrix()


def _as_arrays(parameters: dict) -> dict:
    return {k: np.asarray(v, dtype=float) if isinstance(v, list | tuple) else v for k, v in parameters.items()}
