"""Real MJCF files: all values agree with those of MuJoCo."""

import mujoco
import numpy as np
import pytest

from hybridsim.model.joints import ElementaryJointType
from support.mujoco_import import (
    BothImports,
    assert_same_actuation,
    assert_same_kinematics,
    body_name,
    import_both,
    joint_name,
)
from support.real_models import BULLET_MJCF, SUITE, bullet_file, suite_file

FILES = {f"suite-{name}": (suite_file, name) for name in SUITE}
FILES |= {f"bullet-{name}": (bullet_file, f"mjcf/{name}.xml") for name in BULLET_MJCF}


@pytest.fixture(scope="module", params=FILES)
def imported(request) -> BothImports:
    find, name = FILES[request.param]
    return import_both(find(name))


def test_real_models_have_the_same_kinematics_masses_and_names(imported):
    assert_same_kinematics(imported)
    m, model, merged = imported.mujoco, imported.model, imported.merged
    joint_names = [joint_name(m, j) for j in range(m.njnt)]
    assert [n for n in model.topology.joint_names if not n.endswith("_fixed")] == joint_names
    assert [n for n in model.topology.body_names if ":" not in n] == [body_name(m, b) for b in range(1, m.nbody)]
    np.testing.assert_allclose(model.body.mass.sum(), m.body_mass.sum(), rtol=1e-14)
    moving = m.body_weldid != 0
    np.testing.assert_allclose(merged.body.mass.sum(), m.body_mass[moving].sum(), rtol=1e-13)
    kinds = [ElementaryJointType(name) for name in ("free", "spherical", "prismatic", "revolute")]
    for name, kind in zip(model.topology.joint_names, model.topology.joint_types, strict=True):
        if name in joint_names:
            assert kind is kinds[int(m.jnt_type[joint_names.index(name)])]
    for b in range(1, m.nbody):
        i = model.topology.body_index(body_name(m, b))
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, m.body_iquat[b])
        inertia = R.reshape(3, 3) @ np.diag(m.body_inertia[b]) @ R.reshape(3, 3).T
        entries = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        np.testing.assert_allclose(model.body.inertia[i], entries, rtol=0, atol=1e-13 * m.body_inertia[b].max())
        np.testing.assert_array_equal(model.body.com[i], m.body_ipos[b])
        assert model.body.mass[i] == m.body_mass[b]
    np.testing.assert_array_equal(model.home, m.qpos0)


def test_real_models_have_the_same_joint_parameters_and_actuators(imported):
    m, model, problems = imported.mujoco, imported.merged, imported.problems
    off = m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    np.testing.assert_array_equal(model.joint.damping, m.dof_damping)
    np.testing.assert_array_equal(model.joint.armature, m.dof_armature)
    np.testing.assert_array_equal(model.joint.friction, 0.0 if off else m.dof_frictionloss)
    hinges = [j for j in range(m.njnt) if m.jnt_type[j] >= 2]
    dofs = m.jnt_dofadr[hinges]
    ours = [model.topology.joint_index(joint_name(m, j)) for j in hinges]
    coordinates = [model.topology.q_slices[i][0] for i in ours]
    limited = (m.jnt_limited[hinges] != 0) & (not off)
    np.testing.assert_array_equal(model.joint.lower[dofs], np.where(limited, m.jnt_range[hinges, 0], -np.inf))
    np.testing.assert_array_equal(model.joint.upper[dofs], np.where(limited, m.jnt_range[hinges, 1], np.inf))
    np.testing.assert_array_equal(model.joint.stiffness[dofs], m.jnt_stiffness[hinges])
    np.testing.assert_array_equal(model.joint.rest[coordinates], m.qpos_spring[m.jnt_qposadr[hinges]])
    assert_same_actuation(imported)
    left_out = [p for p in problems if p.code == "unsupported.actuator"]
    assert model.nu + len(left_out) == m.nu
    assert all(p.line > 0 and p.file for p in problems if p.code.startswith("unsupported"))
