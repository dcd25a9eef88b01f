"""Robot arms from Denavit–Hartenberg parameters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hybridsim.model.builder import ModelBuilder, pose
from hybridsim.model.inertial import Inertial, solid_cylinder
from hybridsim.model.model import Model
from hybridsim.model.specs import BodySpec, FrameSpec, JointKind, JointSpec
from hybridsim.spatial.transform import Pose


class DH(NamedTuple):
    """Denavit–Hartenberg parameters of one joint in the classical (distal) convention: Rz(θ) Tz(d) Tx(a) Rx(α)."""

    a: float
    """Link length [m]."""
    alpha: float
    """Link twist [rad]."""
    d: float
    """Link offset [m]; offset of the coordinate of a prismatic joint."""
    theta: float = 0.0
    """Joint angle [rad]; offset of the coordinate of a revolute joint."""
    prismatic: bool = False


def arm_from_dh(
    parameters: Sequence[DH],
    *,
    inertials: Sequence[Inertial] | None = None,
    name: str = "arm",
    damping: float = 0.0,
) -> Model:
    """Serial arm with joints `joint1`, `joint2`, … and a frame `tool` at its tip.

    The frame of body `link<i>` is at the tip of link i−1, with its z axis along the axis of joint i. The offset of the
    joint coordinate is part of the placement of the joint; the other parameters of row i lead to the tip of link i.

    Args:
        parameters: one row per joint.
        inertials: mass properties of each link in its body frame; by default those of a slender cylinder of 3 kg/m
            from the joint to the next one.
        name: name of the model.
        damping: viscous damping of every joint [N·m·s/rad or N·s/m].
    """
    if inertials is not None and len(inertials) != len(parameters):
        raise ValueError(f"expected one inertial for each of the {len(parameters)} joints, not {len(inertials)}")
    arm = ModelBuilder(name)
    origin = (0.0, 0.0, 0.0)
    parent, X_PJ = "world", pose(origin)
    for i, row in enumerate(parameters):
        body = f"link{i + 1}"
        # the offset of the joint coordinate precedes the joint; the other parameters follow it
        X_PJ = X_PJ @ (pose((0.0, 0.0, row.d)) if row.prismatic else pose(origin, (0.0, 0.0, row.theta)))
        X_after = pose(origin, (0.0, 0.0, row.theta)) if row.prismatic else pose((0.0, 0.0, row.d))
        X_tip = X_after @ pose((row.a, 0.0, 0.0), (row.alpha, 0.0, 0.0))
        kind = JointKind.PRISMATIC if row.prismatic else JointKind.REVOLUTE
        joint = JointSpec(f"joint{i + 1}", kind, np.array([0.0, 0.0, 1.0]), damping=damping)
        inertial = inertials[i] if inertials is not None else _rod(np.asarray(X_tip.p))
        arm.spec.bodies.append(BodySpec(body, parent, joint, X_PJ, inertial))
        parent, X_PJ = body, X_tip
    arm.spec.frames.append(FrameSpec("tool", parent, X_PJ))
    return arm.build()


def four_joint_arm() -> Model:
    """Arm with links of 0.4, 0.3 and 0.2 m in a vertical plane, which a base joint rotates about the vertical axis."""
    rows = [DH(a=0.4, alpha=0.0, d=0.0), DH(a=0.3, alpha=0.0, d=0.0), DH(a=0.2, alpha=0.0, d=0.0)]
    base = DH(a=0.0, alpha=np.pi / 2, d=0.2)
    return arm_from_dh([base, *rows], name="arm", damping=0.1)


def _rod(tip: np.ndarray, radius: float = 0.03, mass_per_length: float = 3.0) -> Inertial:
    """Mass properties of a cylinder from the origin to `tip`, or of a short one along z if the two nearly coincide."""
    length = float(np.linalg.norm(tip))
    if length < radius:
        return solid_cylinder(mass_per_length * radius, radius, 0.5 * radius)
    from scipy.spatial.transform import Rotation  # slow to import

    direction = tip / length
    R = Rotation.align_vectors(direction[None], np.array([[0.0, 0.0, 1.0]]))[0].as_matrix()
    return solid_cylinder(mass_per_length * length, radius, 0.5 * length).transform(Pose(R, 0.5 * tip))
