"""Initial values for a fit, by constrained least squares on known torques, without simulation or local minima.

Known torques are linear in the inertial parameters of all bodies and in armature, damping and dry friction of all
joints (`torque_regression.py`). These are estimated with a ridge penalty, which draws parameters that the data hardly
determine towards the model's values; these are listed. The bodies are constrained to be physically consistent
(`physical_consistency.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from hybridsim.core.warnings import warn_user
from hybridsim.data.run import Run
from hybridsim.dynamics.regressor import inertial_parameters
from hybridsim.identify.physical_consistency import (
    MAX_ITERATIONS,
    TOLERANCE,
    ConsistentInertias,
    consistent_least_squares,
)
from hybridsim.identify.torque_regression import TorqueRegression, measured_motion, torque_regression
from hybridsim.identify.windows import ChannelRoles
from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.model import Model
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.spatial.inertia import SYMMETRIC_ORDER

Array = np.ndarray
MIN_DATA_FRACTION = 0.5
"""Fraction of an estimate due to data, not to the ridge penalty, below which a parameter is weak."""
BODY_PARAMETERS = (
    "body.mass[{}]",
    *(f"body.com[{{}}].{axis}" for axis in "xyz"),
    *(f"body.inertia[{{}}].{entry}" for entry in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
JOINT_PARAMETERS = ("joint.armature[{}]", "joint.damping[{}]", "joint.friction[{}]")


@dataclass(frozen=True, eq=False)
class InverseDynamicsFit:
    """Estimate from known torques."""

    setup: Setup
    """Setup with the estimated parameters."""
    weak: tuple[str, ...]
    """Parameters that the data hardly determine; the ridge penalty draws them towards the model's values."""
    inconsistent: tuple[str, ...]
    """Bodies whose unconstrained estimate is not physically consistent."""
    error_before: Float[Array, " nv"]
    error_after: Float[Array, " nv"]
    """Root mean square torque error [N·m or N], with the model's parameters and with the estimate."""
    residual: float
    """Residual of the constrained least squares: see `ConsistentEstimate`."""
    has_converged: bool
    """Whether the constrained least squares converged; otherwise the estimate is consistent, but not the best fit."""

    def theta(self, space: ParameterSpace) -> Float[Array, " n"]:
        """θ of the estimate, clipped to the bounds of a space."""
        return np.clip(space.theta_of(self.setup), space.lower, space.upper)


def fit_inverse_dynamics(
    setup: Setup,
    recordings: Sequence[Run],
    channel_roles: ChannelRoles,
    *,
    filter_samples: int | None = None,
    ridge: float = 1e-2,
) -> InverseDynamicsFit:
    """Fit parameters of bodies and joints to known torques.

    Args:
        setup: simulator and sensors; every joint is single-axis, and its coordinate is measured.
        recordings: runs, each without gaps.
        channel_roles: roles of the channels.
        filter_samples: length of the differentiation filters in samples; by default 0.03 s, at least 7. Noise biases
            masses downwards; a longer filter reduces that bias, until it smooths the motion itself.
        ridge: weight of the ridge penalty. A parameter to which the torques have this sensitivity, relative to their
            magnitude, is determined by data and penalty in equal parts.

    Warns if the constrained least squares do not converge.

    Raises:
        HybridsimError: the model or its sensors are not supported.
    """
    sim, model = setup.sim, setup.sim.model
    regression = torque_regression(sim, measured_motion(setup, recordings, channel_roles, filter_samples))
    # bodies between the parts of a compound joint are massless and remain so
    has_mass = np.asarray(model.body.mass) > 0.0
    nominal = _parameters(model, has_mass)
    bodies = ConsistentInertias.from_model(model, nominal[: 10 * has_mass.sum()].reshape(-1, 10), has_mass)
    scales = _scales(bodies, regression)
    A = _regressor(regression, has_mass)
    magnitude = np.sqrt(np.mean(np.square((np.abs(A) * np.abs(nominal)).sum(axis=2)), axis=0))
    weight = 1.0 / np.maximum(magnitude, 1e-12)
    weighted = (A * weight[:, None] * scales).reshape(-1, len(nominal)) / np.sqrt(len(A))
    residual = ((regression.known - A @ nominal) * weight).ravel() / np.sqrt(len(A))
    information = weighted.T @ weighted
    gram, rhs = information + ridge**2 * np.eye(len(nominal)), weighted.T @ residual
    unconstrained = nominal + scales * np.linalg.solve(gram, rhs)
    consistent = consistent_least_squares(bodies, gram, rhs, nominal, scales)
    if not consistent.has_converged:
        warn_user(
            f"the constrained least squares of the inverse-dynamics fit of model {model.name!r} did not converge in "
            f"{MAX_ITERATIONS} iterations: the residual of the constraints, relative to the typical magnitude of the "
            f"parameters, is {consistent.residual:.2g} instead of {TOLERANCE:g}; the estimate is physically "
            "consistent, but not quite the one that fits the torques best"
        )
    estimate = consistent.parameters
    errors = [np.sqrt(np.mean(np.square(regression.known - A @ x), axis=0)) for x in (nominal, estimate)]
    names = np.array(model.topology.body_names)[has_mass]
    is_consistent = bodies.is_consistent(unconstrained[: 10 * has_mass.sum()].reshape(-1, 10))
    data_fraction = np.diagonal(np.linalg.solve(gram, information))
    return InverseDynamicsFit(
        eqx.tree_at(lambda s: s.sim.model, setup, _with_parameters(model, estimate, has_mass)),
        tuple(
            n
            for n, fraction in zip(_names(model, has_mass), data_fraction, strict=True)
            if fraction < MIN_DATA_FRACTION
        ),
        tuple(names[~is_consistent].tolist()),
        errors[0],
        errors[1],
        consistent.residual,
        consistent.has_converged,
    )


def _regressor(regression: TorqueRegression, has_mass: Bool[Array, " nb"]) -> Float[Array, "K nv c"]:
    """Regressor of all parameters; those of a joint affect its own torque only."""
    K, nv = regression.known.shape
    joint_columns = regression.joint_columns[:, :, None, :] * np.eye(nv)[:, :, None]
    body_columns = regression.body_columns[:, :, has_mass]
    return np.concatenate([body_columns.reshape(K, nv, -1), joint_columns.reshape(K, nv, -1)], axis=2)


def _parameters(model: Model, has_mass: Bool[Array, " nb"]) -> Float[Array, " c"]:
    joint = model.joint
    with jax.enable_x64(True):
        bodies = np.asarray(inertial_parameters(model))[has_mass]
    joints = np.stack([joint.armature, joint.damping, joint.friction], axis=1)
    return np.concatenate([bodies.ravel(), joints.ravel()])


def _scales(bodies: ConsistentInertias, regression: TorqueRegression) -> Float[Array, " c"]:
    """Typical magnitude of each parameter: from mass and radius of gyration, or from torques and speeds of a joint."""
    m, r = bodies.mass, bodies.gyration_radius
    body_scales = np.stack([m, *[m * r] * 3, *[m * r * r] * 6], axis=1)
    torques = np.sqrt(np.mean(np.square(regression.known), axis=0)) + 1e-3 * np.abs(regression.known).max()
    speeds = np.sqrt(np.mean(np.square(regression.joint_columns), axis=0))
    joint_scales = torques[:, None] / np.maximum(speeds, 1e-9 + 1e-3 * speeds.max(axis=0))
    return np.concatenate([body_scales.ravel(), joint_scales.ravel()])


def _with_parameters(model: Model, parameters: Float[Array, " c"], has_mass: Bool[Array, " nb"]) -> Model:
    """Copy of a model with new parameters of bodies and joints."""
    phi, joints = parameters[: 10 * has_mass.sum()].reshape(-1, 10), parameters[10 * has_mass.sum() :].reshape(-1, 3)
    mass, com, inertia = (np.array(x, dtype=float) for x in (model.body.mass, model.body.com, model.body.inertia))
    for k, body in zip(np.flatnonzero(has_mass), phi, strict=True):
        c = body[1:4] / body[0]
        about_com = inertia_matrix(body[4:]) - body[0] * (c @ c * np.eye(3) - np.outer(c, c))
        mass[k], com[k], inertia[k] = body[0], c, [about_com[i, j] for i, j in SYMMETRIC_ORDER]
    return eqx.tree_at(
        lambda m: (m.body.mass, m.body.com, m.body.inertia, m.joint.armature, m.joint.damping, m.joint.friction),
        model,
        (mass, com, inertia, *joints.T.copy()),
    )


def _names(model: Model, has_mass: Bool[Array, " nb"]) -> list[str]:
    topology = model.topology
    bodies = [name for name, selected in zip(topology.body_names, has_mass, strict=True) if selected]
    body_parameters = [template.format(body) for body in bodies for template in BODY_PARAMETERS]
    return body_parameters + [template.format(dof) for dof in topology.dof_names for template in JOINT_PARAMETERS]
