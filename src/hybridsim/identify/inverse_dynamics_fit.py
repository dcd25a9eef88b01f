"""A start for a fit by linear least squares, where torques are known: no simulation, no way to get stuck.

Inertial parameters of all bodies, and armature, damping and dry friction of all joints, are what known torques are
linear in (`torques.py`). They are found around the model's own values, each held to its own by its size: what the data
cannot see stays as it was, and is named. Only bodies that can exist are considered (`possible_bodies.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.data.recording import Recording
from hybridsim.dynamics.regressor import inertial_parameters
from hybridsim.identify.physical_consistency import ConsistentInertias, least_squares
from hybridsim.identify.torque_regression import TorqueRegression, measured_motion, torque_regression
from hybridsim.identify.windows import Measurements
from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.model import Model
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.spatial.inertia import SYMMETRIC_ORDER

Array = np.ndarray
SEEN = 0.5
"""Share of a parameter's change that must come from the data, not from the model's own value, to call it seen."""
BODY_NAMES = (
    "body.mass[{}]",
    *(f"body.com[{{}}].{axis}" for axis in "xyz"),
    *(f"body.inertia[{{}}].{entry}" for entry in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
JOINT_NAMES = ("joint.armature[{}]", "joint.damping[{}]", "joint.friction[{}]")


@dataclass(frozen=True, eq=False)
class InverseDynamicsFit:
    """What known torques say."""

    setup: Setup
    """To start from."""
    unseen: tuple[str, ...]
    """Parameters that the data tell too little about; they are near the model's own values."""
    at_the_edge: tuple[str, ...]
    """Bodies that would be none at all if the data were believed alone."""
    error_before: Float[Array, " nv"]
    error_after: Float[Array, " nv"]
    """Root mean square of what is left of the torques [N·m or N], with the model's own numbers and with these."""

    def theta(self, space: ParameterSpace) -> Float[Array, " n"]:
        """θ of a space whose numbers are those found here, within its bounds."""
        return np.clip(space.theta_of(self.setup), space.lower, space.upper)


def fit_inverse_dynamics(
    setup: Setup,
    recordings: Sequence[Recording],
    measured: Measurements,
    *,
    window: int | None = None,
    ridge: float = 1e-2,
) -> InverseDynamicsFit:
    """Numbers of bodies and joints that explain known torques.

    Args:
        setup: simulator and sensors; every joint turns or slides, and its coordinate is measured.
        recordings: runs, each without gaps.
        measured: what drives the model.
        window: samples that velocities and accelerations are taken over; by default those of 0.03 s, or 7. Noise makes
            bodies lighter than they are; a longer window helps, until it rounds off the motion.
        ridge: by which share of the torques' size a number may be told before it leaves the model's own value.

    Raises:
        HybridsimError: the model or its sensors are not such.
    """
    sim, model = setup.sim, setup.sim.model
    rows = torque_regression(sim, measured_motion(setup, recordings, measured, window))
    # bodies between the parts of a compound joint have no mass, and none is looked for
    heavy = np.asarray(model.body.mass) > 0.0
    own = _own_numbers(model, heavy)
    bodies = ConsistentInertias.of(model, own[: 10 * heavy.sum()].reshape(-1, 10), heavy)
    sizes = _sizes(bodies, rows)
    A = _columns(rows, heavy)
    scale = 1.0 / np.maximum(np.sqrt(np.mean(np.square((np.abs(A) * np.abs(own)).sum(axis=2)), axis=0)), 1e-12)
    weighted = (A * scale[:, None] * sizes).reshape(-1, len(own)) / np.sqrt(len(A))
    off = ((rows.known - A @ own) * scale).ravel() / np.sqrt(len(A))
    seen = weighted.T @ weighted
    gram, right = seen + ridge**2 * np.eye(len(own)), weighted.T @ off
    alone = own + sizes * np.linalg.solve(gram, right)
    found = least_squares(bodies, gram, right, own, sizes)
    errors = [np.sqrt(np.mean(np.square(rows.known - A @ x), axis=0)) for x in (own, found)]
    names = np.array(model.topology.body_names)[heavy]
    exist = bodies.exist(alone[: 10 * heavy.sum()].reshape(-1, 10))
    share = np.diagonal(np.linalg.solve(gram, seen))
    return InverseDynamicsFit(
        eqx.tree_at(lambda s: s.sim.model, setup, _with_numbers(model, found, heavy)),
        tuple(name for name, told in zip(_names(model, heavy), share, strict=True) if told < SEEN),
        tuple(names[~exist].tolist()),
        errors[0],
        errors[1],
    )


def _columns(rows: TorqueRegression, heavy: Bool[Array, " nb"]) -> Float[Array, "K nv c"]:
    """One matrix of all columns: a joint's own numbers act on its own torque only."""
    K, nv = rows.known.shape
    of_joints = rows.of_joints[:, :, None, :] * np.eye(nv)[:, :, None]
    return np.concatenate([rows.of_bodies[:, :, heavy].reshape(K, nv, -1), of_joints.reshape(K, nv, -1)], axis=2)


def _own_numbers(model: Model, heavy: Bool[Array, " nb"]) -> Float[Array, " c"]:
    joint = model.joint
    with jax.enable_x64(True):
        of_bodies = np.asarray(inertial_parameters(model))[heavy]
    of_joints = np.stack([joint.armature, joint.damping, joint.friction], axis=1)
    return np.concatenate([of_bodies.ravel(), of_joints.ravel()])


def _sizes(bodies: ConsistentInertias, rows: TorqueRegression) -> Float[Array, " c"]:
    """What is a large change of each number: of a body by mass and reach, of a joint by torques and speeds."""
    m, r = bodies.mass, bodies.reach
    of_bodies = np.stack([m, *[m * r] * 3, *[m * r * r] * 6], axis=1)
    usual = np.sqrt(np.mean(np.square(rows.known), axis=0)) + 1e-3 * np.abs(rows.known).max()
    speeds = np.sqrt(np.mean(np.square(rows.of_joints), axis=0))
    of_joints = usual[:, None] / np.maximum(speeds, 1e-9 + 1e-3 * speeds.max(axis=0))
    return np.concatenate([of_bodies.ravel(), of_joints.ravel()])


def _with_numbers(model: Model, numbers: Float[Array, " c"], heavy: Bool[Array, " nb"]) -> Model:
    """The model with other bodies and joints."""
    phi, joints = numbers[: 10 * heavy.sum()].reshape(-1, 10), numbers[10 * heavy.sum() :].reshape(-1, 3)
    mass, com, inertia = (np.array(x, dtype=float) for x in (model.body.mass, model.body.com, model.body.inertia))
    for body, own in zip(np.flatnonzero(heavy), phi, strict=True):
        c = own[1:4] / own[0]
        about_com = inertia_matrix(own[4:]) - own[0] * (c @ c * np.eye(3) - np.outer(c, c))
        mass[body], com[body], inertia[body] = own[0], c, [about_com[i, j] for i, j in SYMMETRIC_ORDER]
    return eqx.tree_at(
        lambda m: (m.body.mass, m.body.com, m.body.inertia, m.joint.armature, m.joint.damping, m.joint.friction),
        model,
        (mass, com, inertia, *joints.T.copy()),
    )


def _names(model: Model, heavy: Bool[Array, " nb"]) -> list[str]:
    topology = model.topology
    bodies = [name for name, chosen in zip(topology.body_names, heavy, strict=True) if chosen]
    of_bodies = [one.format(body) for body in bodies for one in BODY_NAMES]
    return of_bodies + [one.format(dof) for dof in topology.dof_names for one in JOINT_NAMES]
