"""Assembly of a `Model` from a `ModelSpec`: expands compound joints and fills the arrays."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hybridsim.model.apparent_inertia import apparent_inertias, unit_vector
from hybridsim.model.compound_joints import elementary_chain
from hybridsim.model.coordinates import zero_configuration
from hybridsim.model.geometry import Geometry, GeomInfo
from hybridsim.model.inertial import Inertial
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Actuators, Bodies, Joints, Model
from hybridsim.model.specs import (
    WORLD_NAME,
    ActuatorSpec,
    BodySpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
    identity_pose,
)
from hybridsim.model.topology import WORLD, Topology
from hybridsim.spatial.transform import Pose

LIMIT_STOP_FREQUENCY = 100.0
"""Upper bound on the natural frequency of the default limit stops [rad/s]; under its own weight a link then penetrates
its stop by about g/(length·10⁴) rad."""
LIMIT_STOP_OMEGA_DT = 0.1
"""Upper bound on the natural frequency of the default limit stops times the model's time step; with it a simulation is
stable even if a dozen joints are at their stops simultaneously."""
MIN_FRICTION_WIDTH = 0.01
"""Lower bound on the default `friction_width` [rad/s or m/s]."""
FRICTION_STEP_FRACTION = 0.5
"""Fraction of a joint's speed, within `friction_width`, that dry friction may remove in one time step: above 1 it
overshoots, and the joint chatters about zero velocity instead of stopping."""


def assemble(spec: ModelSpec) -> Model:
    """Model of a validated description; bodies keep their order, in which parents must precede children."""
    bodies = [part for body in spec.bodies for part in _expand_joint(body)]
    index = {WORLD_NAME: WORLD} | {body.name: i for i, body in enumerate(bodies)}
    joint_index = {body.joint.name: i for i, body in enumerate(bodies)}
    topology = Topology(
        body_names=tuple(body.name for body in bodies),
        parents=tuple(index[body.parent] for body in bodies),
        joint_names=tuple(body.joint.name for body in bodies),
        joint_types=tuple(body.joint.kind.elementary_type for body in bodies),
        masters=tuple(joint_index[body.joint.mimic] if body.joint.mimic else -1 for body in bodies),
        frame_names=tuple(frame.name for frame in spec.frames),
        frame_bodies=tuple(index[frame.body] for frame in spec.frames),
        name=spec.name,
    )
    return Model(
        topology=topology,
        body=Bodies(
            mass=np.array([b.inertial.mass for b in bodies]).reshape(-1),
            com=_stack_rows([b.inertial.com for b in bodies], 3),
            inertia=_stack_rows([b.inertial.entries() for b in bodies], 6),
        ),
        joint=_joints(bodies, topology, float(spec.timestep)),
        actuator=_actuators(spec, bodies, topology, joint_index),
        geometry=_geometry(spec, index),
        frame_placement=_stack_poses([frame.placement for frame in spec.frames]),
        gravity=np.array(spec.gravity, dtype=float),
        home=_home(spec, topology, joint_index),
        timestep=float(spec.timestep),
    )


def _expand_joint(body: BodySpec) -> list[BodySpec]:
    """The body itself; for a compound joint, a chain of massless bodies ending in it."""
    joints = elementary_chain(body.joint)
    chain, parent, placement = [], body.parent, body.placement
    for k, joint in enumerate(joints):
        last = k == len(joints) - 1
        name = body.name if last else f"{body.name}:{joint.name}"
        inertial = body.inertial if last else Inertial()
        chain.append(replace(body, name=name, parent=parent, joint=joint, placement=placement, inertial=inertial))
        parent, placement = name, identity_pose()
    return chain


def _joints(bodies: Sequence[BodySpec], topology: Topology, timestep: float) -> Joints:
    def per_dof(value) -> np.ndarray:
        values = [value(body.joint) for body in bodies]
        return np.repeat(np.array(values, dtype=float), [kind.nv for kind in topology.joint_types])

    def with_default(field: str, default: np.ndarray) -> np.ndarray:
        specified = per_dof(lambda j: np.nan if getattr(j, field) is None else getattr(j, field))
        return np.where(np.isnan(specified), default, specified)

    inertia = apparent_inertias(bodies, topology)
    frequency = min(LIMIT_STOP_FREQUENCY, LIMIT_STOP_OMEGA_DT / timestep)
    friction_level = per_dof(lambda j: j.friction + j.stribeck_friction)
    width = np.maximum(MIN_FRICTION_WIDTH, friction_level * timestep / (FRICTION_STEP_FRACTION * inertia))
    return Joints(
        placement=_stack_poses([body.placement for body in bodies]),
        axis=_stack_rows([unit_vector(body.joint.axis) for body in bodies], 3),
        anchor=_stack_rows([body.joint.anchor for body in bodies], 3),
        armature=per_dof(lambda j: j.armature),
        stiffness=per_dof(lambda j: j.stiffness),
        rest=np.concatenate([_rest(b.joint, k) for b, k in zip(bodies, topology.joint_types, strict=True)] or [[]]),
        damping=per_dof(lambda j: j.damping),
        friction=per_dof(lambda j: j.friction),
        stribeck_friction=per_dof(lambda j: j.stribeck_friction),
        stribeck_velocity=per_dof(lambda j: j.stribeck_velocity),
        friction_width=with_default("friction_width", width),
        lower=per_dof(lambda j: -np.inf if j.kind is JointKind.CONTINUOUS else j.lower),
        upper=per_dof(lambda j: np.inf if j.kind is JointKind.CONTINUOUS else j.upper),
        limit_stiffness=with_default("limit_stiffness", frequency**2 * inertia),
        limit_damping=with_default("limit_damping", frequency * inertia),
        effort_limit=per_dof(lambda j: j.effort_limit),
        mimic_ratio=np.array([body.joint.mimic_ratio for body in bodies], dtype=float),
        mimic_offset=np.array([body.joint.mimic_offset for body in bodies], dtype=float),
    )


def _rest(joint: JointSpec, kind: ElementaryJointType) -> np.ndarray:
    if kind.joint.is_euclidean:
        return np.full(kind.nq, joint.rest, dtype=float)
    rest = np.asarray(joint.rest, dtype=float)
    return rest if rest.shape == (kind.nq,) else kind.joint.zero_coordinates()


def _actuators(
    spec: ModelSpec, bodies: Sequence[BodySpec], topology: Topology, joint_index: dict[str, int]
) -> Actuators:
    actuators = spec.actuators
    if not actuators and not spec.is_unactuated:
        # a torque actuator on every independent joint with one degree of freedom
        actuators = [
            ActuatorSpec(name=body.joint.name, joint=body.joint.name)
            for body, kind, master in zip(bodies, topology.joint_types, topology.masters, strict=True)
            if kind.nv == 1 and master < 0
        ]
    return Actuators(
        names=tuple(a.name for a in actuators),
        joints=tuple(joint_index[a.joint] for a in actuators),
        gear=np.array([a.gear for a in actuators], dtype=float),
        gain=np.array([a.gain for a in actuators], dtype=float),
        bias=_stack_rows([np.array(a.bias, dtype=float) for a in actuators], 3),
        command_lower=np.array([a.command_range[0] for a in actuators], dtype=float),
        command_upper=np.array([a.command_range[1] for a in actuators], dtype=float),
        force_lower=np.array([a.force_range[0] for a in actuators], dtype=float),
        force_upper=np.array([a.force_range[1] for a in actuators], dtype=float),
    )


def _geometry(spec: ModelSpec, index: dict[str, int]) -> Geometry:
    geoms = spec.geoms
    data_indices = np.cumsum([g.data is not None for g in geoms]) - 1
    infos = tuple(
        GeomInfo(
            g.name,
            index[g.body],
            g.shape,
            g.mesh_file,
            g.group,
            g.mask,
            g.link or g.body,
            g.priority,
            int(data_index) if g.data is not None else -1,
            g.faces,
            g.is_friction_specified,
        )
        for g, data_index in zip(geoms, data_indices, strict=True)
    )

    def per_geom(value: Callable[[GeomSpec], float]) -> np.ndarray:
        return np.array([value(g) for g in geoms], dtype=float)

    return Geometry(
        infos=infos,
        placement=_stack_poses([g.placement for g in geoms]),
        size=_stack_rows([g.size for g in geoms], 3),
        friction=per_geom(lambda g: g.friction),
        restitution=per_geom(lambda g: g.restitution),
        recovery_time=per_geom(lambda g: g.recovery_time),
        softness=per_geom(lambda g: g.softness),
        stiffness=per_geom(lambda g: g.stiffness),
        damping=per_geom(lambda g: g.damping),
        data=tuple(np.asarray(g.data, dtype=float) for g in geoms if g.data is not None),
        excluded_pairs=tuple(spec.excluded_pairs),
        explicit_pairs=tuple(spec.explicit_pairs),
        parent_child_pairs=tuple(spec.parent_child_pairs),
        friction_pairs=tuple(spec.pair_friction),
        pair_friction=np.array(list(spec.pair_friction.values()), dtype=float),
    )


def _home(spec: ModelSpec, topology: Topology, joint_index: dict[str, int]) -> np.ndarray:
    home = zero_configuration(topology)
    for name, value in spec.home.items():
        # coordinates of a compound joint: those of its elementary joints, in order
        parts = [name] if name in joint_index else [joint for joint in joint_index if joint.startswith(f"{name}.")]
        indices = [q for part in parts for q in range(*topology.q_slices[joint_index[part]])]
        home[indices] = value
    return home


def _stack_rows(rows, width: int) -> np.ndarray:
    return np.array([np.asarray(row, dtype=float) for row in rows]).reshape(len(rows), width)


def _stack_poses(poses: Sequence[Pose]) -> Pose:
    return Pose(
        np.array([np.asarray(X.R, dtype=float) for X in poses]).reshape(len(poses), 3, 3),
        _stack_rows([X.p for X in poses], 3),
    )
