"""ModelBuilder: defines a mechanism in Python, body by body.

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
from hybridsim.model.merge import merge_fixed_joints
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
from hybridsim.model.validate import model_problems
from hybridsim.spatial.transform import Pose

VectorLike = Sequence[float] | np.ndarray


class ModelBuilder:
    """Collects bodies, shapes, frames and actuators, validates them and builds a `Model`."""

    def __init__(self, name: str, *, gravity: VectorLike = (0.0, 0.0, -9.81), timestep: float = 0.001):
        self.spec = ModelSpec(name, gravity=np.asarray(gravity, dtype=float), timestep=timestep)

    def add_body(
        self,
        name: str,
        *,
        parent: str = WORLD_NAME,
        joint: str = "",
        kind: JointKind | str = JointKind.REVOLUTE,
        at: VectorLike = (0.0, 0.0, 0.0),
        rpy: VectorLike = (0.0, 0.0, 0.0),
        axis: VectorLike = (0.0, 0.0, 1.0),
        mass: float = 0.0,
        com: VectorLike = (0.0, 0.0, 0.0),
        inertia: VectorLike = (0.0, 0.0, 0.0),
        home: float | VectorLike | None = None,
        **parameters,
    ) -> "ModelBuilder":
        """Add a body and the joint that connects it to its parent.

        Args:
            name: name of the body.
            parent: parent body, or `world`.
            joint: name of the joint; the body's name by default.
            kind: joint type.
            at: position of the joint frame in the parent [m].
            rpy: orientation of the joint frame in the parent as roll, pitch, yaw [rad].
            axis: joint axis in the joint frame.
            mass: mass [kg].
            com: centre of mass in the body frame [m].
            inertia: inertia about the centre of mass [kg·m²]: 3 (diagonal), 6 (xx, yy, zz, xy, xz, yz) or 3×3 entries.
            home: coordinates of the joint in the home configuration.
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
        size: VectorLike,
        *,
        name: str = "",
        at: VectorLike = (0.0, 0.0, 0.0),
        rpy: VectorLike = (0.0, 0.0, 0.0),
        data: Sequence | np.ndarray | None = None,
        **surface,
    ) -> "ModelBuilder":
        """Attach a collision shape.

        Args:
            body: body to attach it to, or `world`.
            shape: shape type.
            size: size [m] as `Shape` defines it; padded with zeros to three values.
            name: name of the shape; derived from the body's name by default.
            at: position in the body frame [m].
            rpy: orientation in the body frame as roll, pitch, yaw [rad].
            data: vertices (n, 3) of point sets, convex hulls and polygons (polygons also (n, 2)), or the heights of a
                height field [m].
            **surface: friction, restitution, recovery_time, softness, stiffness, damping; also group, mask, priority.
        """
        padded = np.zeros(3)
        padded[: len(size)] = size
        name = name or f"{body}_geom{sum(g.body == body for g in self.spec.geoms)}"
        shape, points = Shape(shape), None if data is None else np.asarray(data, dtype=float)
        if points is not None and shape is Shape.POLYGON and points.shape[-1] == 2:
            points = np.pad(points, ((0, 0), (0, 1)))
        surface.setdefault("is_friction_specified", "friction" in surface)
        self.spec.geoms.append(GeomSpec(name, body, shape, padded, pose(at, rpy), data=points, **surface))
        return self

    def add_frame(self, name: str, body: str, at: VectorLike = (0.0, 0.0, 0.0), rpy: VectorLike = (0.0, 0.0, 0.0)):
        """Add a named frame fixed to a body."""
        self.spec.frames.append(FrameSpec(name, body, pose(at, rpy)))
        return self

    def add_actuator(self, joint: str, *, name: str = "", **parameters) -> "ModelBuilder":
        """Add an actuator to a joint; `parameters` are fields of `ActuatorSpec`.

        In a model without explicit actuators, every independent joint with one degree of freedom has a torque actuator:
        its command is the torque or force.
        """
        self.spec.actuators.append(ActuatorSpec(name or joint, joint, **parameters))
        return self

    def declare_unactuated(self) -> "ModelBuilder":
        """Declare that no joint is actuated."""
        self.spec.is_unactuated = True
        return self

    def build(self, *, merge: bool = True) -> Model:
        """Validate the description and build the model.

        Args:
            merge: whether bodies on fixed joints are merged into their parents.

        Raises:
            ModelError: the description is invalid; lists every error.
        """
        errors = [p for p in model_problems(self.spec) if p.severity is Severity.ERROR]
        if errors:
            raise ModelError(errors)
        return assemble(merge_fixed_joints(self.spec)[0] if merge else self.spec)


def pose(at: VectorLike, rpy: VectorLike = (0.0, 0.0, 0.0)) -> Pose:
    """Pose from a position [m] and fixed-axis roll, pitch, yaw [rad] about x, y, z."""
    return Pose(_rotation_from_rpy(np.asarray(rpy, dtype=float)), np.array(at, dtype=float))


def _rotation_from_rpy(rpy: np.ndarray) -> np.ndarray:
    if not rpy.any():
        return np.eye(3)
    from scipy.spatial.transform import Rotation  # slow to import

    return Rotation.from_euler("xyz", rpy).as_matrix()


def _as_arrays(parameters: dict) -> dict:
    return {k: np.asarray(v, dtype=float) if isinstance(v, list | tuple) else v for k, v in parameters.items()}
