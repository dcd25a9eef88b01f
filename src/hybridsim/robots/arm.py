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
    """Parameters of one joint in the classical (distal) convention: Rz(θ) Tz(d) Tx(a) Rx(α)."""

    a: float
    """Link length [m]."""
    alpha: float
    """Link twist [rad]."""
    d: float
    """Link offset [m]; added to the coordinate of a prismatic joint."""
    theta: float = 0.0
    """Joint angle offset [rad]; added to the coordinate of a revolute joint."""
    prismatic: bool = False


def arm_from_dh(
    parameters: Sequence[DH],
    *,
    inertials: Sequence[Inertial] | None = None,
    name: str = "arm",
    damping: float = 0.0,
) -> Model:
    """A serial arm on joints `joint1`, `joint2`, … with a frame `tool` at its end.

    Body i is `link<i>`; its frame turns with joint i and sits at the end of link i−1, before `d`, `a` and `alpha` of
    its own row: the joint's axis is its z axis.

    Args:
        parameters: one row per joint.
        inertials: mass properties of each link in its body frame; by default a slender cylinder of 3 kg per metre from
            the joint to the next one.
        name: of the model.
        damping: of every joint [N·m·s/rad or N·s/m].
    """
    if inertials is not None and len(inertials) != len(parameters):
        raise ValueError(f"{len(parameters)} joints need as many inertials, not {len(inertials)}")
    arm = ModelBuilder(name)
    nowhere = (0.0, 0.0, 0.0)
    parent, X_PJ = "world", pose(nowhere)
    for i, row in enumerate(parameters):
        body = f"link{i + 1}"
        # offsets of the joint's own coordinate act before the joint, the rest of the row after it
        X_PJ = X_PJ @ (pose((0.0, 0.0, row.d)) if row.prismatic else pose(nowhere, (0.0, 0.0, row.theta)))
        after = pose(nowhere, (0.0, 0.0, row.theta)) if row.prismatic else pose((0.0, 0.0, row.d))
        tip = after @ pose((row.a, 0.0, 0.0), (row.alpha, 0.0, 0.0))
        kind = JointKind.PRISMATIC if row.prismatic else JointKind.REVOLUTE
        joint = JointSpec(f"joint{i + 1}", kind, np.array([0.0, 0.0, 1.0]), damping=damping)
        inertial = inertials[i] if inertials is not None else _rod(np.asarray(tip.p))
        arm.spec.bodies.append(BodySpec(body, parent, joint, X_PJ, inertial))
        parent, X_PJ = body, tip
    arm.spec.frames.append(FrameSpec("tool", parent, X_PJ))
    return arm.build()


def planar_arm() -> Model:
    """Three links of 0.4, 0.3 and 0.2 m in a vertical plane that turns about the vertical."""
    rows = [DH(a=0.4, alpha=0.0, d=0.0), DH(a=0.3, alpha=0.0, d=0.0), DH(a=0.2, alpha=0.0, d=0.0)]
    upright = DH(a=0.0, alpha=np.pi / 2, d=0.2)
    return arm_from_dh([upright, *rows], name="arm", damping=0.1)


def _rod(tip: np.ndarray, radius: float = 0.03, mass_per_length: float = 3.0) -> Inertial:
    """A cylinder from the origin to `tip`; a short one along z where the two coincide."""
    length = float(np.linalg.norm(tip))
    if length < radius:
        return solid_cylinder(mass_per_length * radius, radius, 0.5 * radius)
    from scipy.spatial.transform import Rotation  # takes a while to load

    direction = tip / length
    R = Rotation.align_vectors(direction[None], np.array([[0.0, 0.0, 1.0]]))[0].as_matrix()
    return solid_cylinder(mass_per_length * length, radius, 0.5 * length).transform(Pose(R, 0.5 * tip))
