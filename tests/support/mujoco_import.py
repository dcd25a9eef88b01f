"""Comparison of MJCF files as imported by hybridsim and as compiled by MuJoCo."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.mjcf.read_mjcf import read_mjcf
from hybridsim.model.assemble import assemble
from hybridsim.model.geometry import Shape
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose


@dataclass(frozen=True)
class BothImports:
    """A file as imported and as compiled by MuJoCo."""

    mujoco: mujoco.MjModel
    model: Model
    """Imported model without merging."""
    merged: Model
    """Imported model with bodies on fixed joints merged into their parents."""
    problems: list[Problem]


def import_both(path: Path) -> BothImports:
    """Import and compile a file without errors."""
    spec, problems = read_mjcf(path)
    assert not [p for p in problems if p.severity is Severity.ERROR]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # MjModel.from_xml_path would write a log to the working folder
        mujoco_model = mujoco.MjSpec.from_file(str(path)).compile()
    return BothImports(mujoco_model, assemble(spec), assemble(merge_fixed_joints(spec)[0]), problems)


def body_name(m: mujoco.MjModel, b: int) -> str:
    """Imported name of a MuJoCo body, which may be unnamed."""
    return m.body(b).name or f"body{b}"


def joint_name(m: mujoco.MjModel, j: int) -> str:
    """Imported name of a MuJoCo joint, which may be unnamed."""
    return m.joint(j).name or f"joint{j}"


def assert_same_kinematics(imported: BothImports, seeds: Iterable[int] = (0, 1)) -> None:
    """Compare the poses of all bodies and shapes in random configurations."""
    m, model, merged = imported.mujoco, imported.model, imported.merged
    assert model.nq == merged.nq == m.nq and model.nv == m.nv
    for seed in seeds:
        data = _random_state(m, seed)
        poses = _body_poses(model, data.qpos)
        scale = 1.0 + np.abs(data.xpos).max()
        for b in range(1, m.nbody):
            pose = poses[body_name(m, b)]
            np.testing.assert_allclose(pose.p, data.xpos[b], rtol=0, atol=1e-12 * scale)
            np.testing.assert_allclose(pose.R, data.xmat[b].reshape(3, 3), rtol=0, atol=1e-12)
        merged_poses = _body_poses(merged, data.qpos)
        for name, pose in merged_poses.items():
            np.testing.assert_allclose(pose.p, poses[name].p, rtol=0, atol=1e-12 * scale)
        for g, info in enumerate(merged.geometry.infos):
            if info.shape is Shape.MESH:
                continue
            body = merged.topology.body_names[info.body] if info.body >= 0 else None
            X_WB = merged_poses[body] if body else Pose(np.eye(3), np.zeros(3))
            position = X_WB.point(merged.geometry.placement.p[g])
            index = m.geom(info.name).id if not info.name.startswith("geom") else int(info.name[4:])
            np.testing.assert_allclose(position, data.geom_xpos[index], rtol=0, atol=1e-12 * scale)


def assert_same_actuation(imported: BothImports) -> None:
    """Compare the forces of the supported actuators."""
    m, model = imported.mujoco, imported.merged
    actuator = model.actuator
    names = [m.actuator(a).name or f"actuator{a}" for a in range(m.nactuator)]
    for seed in range(3):
        data = _random_state(m, seed)
        for k, name in enumerate(actuator.names):
            a = names.index(name)
            joint = actuator.joints[k]
            q = data.qpos[model.topology.q_slices[joint][0]]
            qd = data.qvel[model.topology.v_slices[joint][0]]
            u = np.clip(data.ctrl[m.actuator_ctrladr[a]], actuator.command_lower[k], actuator.command_upper[k])
            length, speed = actuator.gear[k] * q, actuator.gear[k] * qd
            force = actuator.gain[k] * u + actuator.bias[k] @ [1.0, length, speed]
            force = np.clip(force, actuator.force_lower[k], actuator.force_upper[k])
            np.testing.assert_allclose(force, data.actuator_force[a], rtol=1e-13, atol=1e-13)


def _random_state(m: mujoco.MjModel, seed: int) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(m)
    qpos = m.qpos0.copy()
    mujoco.mj_integratePos(m, qpos, rng.normal(size=m.nv), 1.0)
    data.qpos, data.qvel = qpos, rng.normal(size=m.nv)
    data.ctrl = 2.0 * rng.normal(size=m.nu)
    mujoco.mj_forward(m, data)
    return data


def _body_poses(model: Model, q: np.ndarray) -> dict[str, Pose]:
    topology, joint = model.topology, model.joint
    poses: list[Pose] = []
    for i, kind in enumerate(topology.joint_types):
        X_PJ = Pose(joint.placement.R[i], joint.placement.p[i])
        X_JB = _joint_transform(kind, joint.axis[i], joint.anchor[i], q[slice(*topology.q_slices[i])])
        X_WP = poses[topology.parents[i]] if topology.parents[i] >= 0 else Pose(np.eye(3), np.zeros(3))
        poses.append(X_WP @ X_PJ @ X_JB)
    return dict(zip(topology.body_names, poses, strict=True))


def _joint_transform(kind: ElementaryJointType, axis: np.ndarray, anchor: np.ndarray, q: np.ndarray) -> Pose:
    match kind:
        case ElementaryJointType.FIXED:
            return Pose(np.eye(3), np.zeros(3))
        case ElementaryJointType.PRISMATIC:
            return Pose(np.eye(3), q[0] * axis)
        case ElementaryJointType.FREE:
            return Pose(Rotation.from_quat(q[3:], scalar_first=True).as_matrix(), q[:3])
    rotation = (
        Rotation.from_rotvec(q[0] * axis)
        if kind is ElementaryJointType.REVOLUTE
        else Rotation.from_quat(q, scalar_first=True)
    )
    R = rotation.as_matrix()
    return Pose(R, anchor - R @ anchor)
